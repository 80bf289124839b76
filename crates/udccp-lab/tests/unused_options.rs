//! An option that no run uses is an error, since its author expects an effect.

use std::path::Path;

use udccp_lab::document::{self, Override};
use udccp_lab::schema::Experiment;
use udccp_lab::{Diagnostics, Selection};

/// A file with a flow of this protocol and these lines.
fn file(protocol: &str, lines: &str, rest: &str) -> String {
    format!(
        "schema = 1\nid = \"x\"\nasks = \"?\"\n[topology]\nshape = \"dumbbell\"\n\
         access = {{ rate = \"100 Mbit/s\" }}\n\
         bottleneck = {{ rate = \"10 Mbit/s\", rtt = \"40 ms\", limit = \"1.0 bdp\" }}\n\
         [time]\nduration = \"60 s\"\n{rest}\n\
         [[flow]]\nname = \"first\"\nprotocol = \"{protocol}\"\ntraffic = \"bulk\"\n{lines}\n"
    )
}

fn read(protocol: &str, lines: &str, rest: &str) -> Result<Experiment, Diagnostics> {
    read_text(file(protocol, lines, rest))
}

fn read_text(text: String) -> Result<Experiment, Diagnostics> {
    let tree = document::parse("x.toml", text).expect("TOML");
    Experiment::from_node(tree, Path::new("x.toml"))
}

/// The errors of such a file.
fn errors_of(protocol: &str, lines: &str, rest: &str) -> String {
    answer(read(protocol, lines, rest))
}

fn answer<T>(result: Result<T, Diagnostics>) -> String {
    let Err(errors) = result else { return "accepted".to_owned() };
    let messages: Vec<_> = errors.0.into_iter().map(|e| e.message).collect();
    messages.join("; ")
}

#[test]
fn an_option_of_another_ccid_is_refused() {
    for (ccid, option) in [
        ("dccp/ccid3", "ack_ratio = 1"),
        ("dccp/ccid4", "max_window = \"20 packets\""),
        ("dccp/ccid3", "initial_window = \"2 packets\""),
        ("dccp/ccid3", "min_rto = \"1 s\""),
        ("dccp/cubic", "window_cut = \"30 %\""),
        ("dccp/bbr", "growth_after_cut = \"pauses\""),
        ("dccp/ccid3", "profile = \"linux-2.6.22\""),
        ("dccp/ccid2", "oscillation_reduction = false"),
        ("dccp/cubic", "history_discounting = false"),
    ] {
        let key = option.split(' ').next().unwrap();
        let found = errors_of(ccid, &format!("dccp = {{ {option} }}"), "");
        assert_eq!(found, format!("{ccid} does not use `{key}`"));
    }
}

#[test]
fn an_option_of_its_own_ccid_is_accepted() {
    for (ccid, options) in [
        ("dccp/ccid2", "ack_ratio = 1, window_cut = \"30 %\", growth_after_cut = \"pauses\""),
        ("dccp/cubic", "ack_ratio = 1, min_rto = \"1 s\", initial_window = \"2 packets\""),
        ("dccp/bbr", "max_window = \"20 packets\", sequence_window = 200"),
        ("dccp/ccid4", "oscillation_reduction = false, history_discounting = false"),
    ] {
        assert_eq!(errors_of(ccid, &format!("dccp = {{ {options} }}"), ""), "accepted", "{ccid}");
    }
}

#[test]
fn options_of_another_protocol_family_are_refused() {
    let found = errors_of("dccp/ccid2", "tcp = { max_window = \"9 packets\" }", "");
    assert_eq!(found, "dccp/ccid2 has no options of `tcp`");
    let found = errors_of("tcp/cubic", "dccp = { ecn = false }", "");
    assert_eq!(found, "tcp/cubic has no options of `dccp`");
}

#[test]
fn wakes_every_without_timers_is_refused() {
    let error = "`wakes_every` changes nothing without `timers` or `timer_tick`";
    assert_eq!(errors_of("dccp/ccid2", "dccp = { wakes_every = \"3 ms\" }", ""), error);
    for timers in ["timers = \"epoll\"", "timer_tick = \"4 ms\""] {
        let options = format!("dccp = {{ wakes_every = \"3 ms\", {timers} }}");
        assert_eq!(errors_of("dccp/ccid2", &options, ""), "accepted", "{timers}");
    }
}

#[test]
fn i_frame_ratio_needs_groups_of_several_frames() {
    let video = |options: &str| {
        let source = "kind = \"video\", every = \"40 ms\", rate = \"1 Mbit/s\"";
        format!("[flow.traffic]\n{source}{options}").replace(", ", "\n")
    };
    let two_flows = |options: &str, rest: &str| {
        let other = "[[flow]]\nname = \"second\"\nprotocol = \"udp\"\n";
        errors_of("tcp/cubic", &format!("{other}{}", video(options)), rest)
    };
    let error = "`ratio` has no effect in a group of one frame";
    assert_eq!(two_flows(", ratio = 4.0", ""), error);
    assert_eq!(two_flows(", group = 1, ratio = 4.0", ""), error);
    assert_eq!(two_flows(", group = 2, ratio = 4.0", ""), "accepted");
    let group = ", group = \"$group\", ratio = 4.0";
    assert_eq!(two_flows(group, "[grid]\ngroup = [1, 12]"), "accepted");
    assert_eq!(two_flows(group, "[grid]\ngroup = [1]"), error);
}

#[test]
fn mark_below_needs_ecn() {
    let queue = |options: &str| {
        let new = format!("limit = \"1.0 bdp\", queue = {{ kind = \"pie\", {options} }}");
        let text = file("tcp/cubic", "", "").replace("limit = \"1.0 bdp\"", &new);
        answer(read_text(text))
    };
    let error = "`mark_below` has no effect without `ecn`";
    assert_eq!(queue("mark_below = \"20 %\""), error);
    assert_eq!(queue("mark_below = \"20 %\", ecn = false"), error);
    assert_eq!(queue("mark_below = \"20 %\", ecn = true"), "accepted");
    assert_eq!(queue("target = \"20 ms\""), "accepted");
}

#[test]
fn equal_axis_values_in_two_units_are_refused() {
    for (values, again) in [
        ("\"100 ms\", \"0.1 s\"", "\"0.1 s\", which is \"100 ms\" again"),
        ("\"1 Mbit/s\", \"1000 kbit/s\"", "\"1000 kbit/s\", which is \"1 Mbit/s\" again"),
        ("\"64 kB\", \"64000 B\"", "\"64000 B\", which is \"64 kB\" again"),
        ("\"1 %\", \"1.0 %\"", "\"1.0 %\", which is \"1 %\" again"),
        ("\"1 bdp\", \"1.0 bdp\"", "\"1.0 bdp\", which is \"1 bdp\" again"),
        ("\"1 %\", \"1 %\"", "\"1 %\" twice"),
    ] {
        let found = errors_of("udp", "", &format!("[grid]\nx = [{values}]"));
        assert!(found.contains(&format!("axis `x` has {again}")), "{found}");
    }
    let found = errors_of("udp", "", "[grid]\nx = [\"100 ms\", \"100 s\", \"100 kB\", \"100 %\"]");
    assert!(!found.contains("again"), "{found}");
}

#[test]
fn option_used_at_one_grid_point_is_not_unused() {
    let lines = "dccp = { ack_ratio = 1 }\ntcp = { timestamps = false }";
    let grid = |protocols: &str| format!("[grid]\nprotocol = [{protocols}]");
    let all = "\"tcp/cubic\", \"dccp/ccid3\", \"dccp/ccid2\", \"tcp/newreno\"";
    assert_eq!(errors_of("$protocol", lines, &grid(all)), "accepted");
    let found = errors_of("$protocol", lines, &grid("\"dccp/ccid3\", \"tcp/cubic\""));
    assert_eq!(found, "dccp/ccid3 does not use `ack_ratio`");
}

#[test]
fn a_change_for_one_run_may_leave_options_unused() {
    let file = read("dccp/ccid3", "", "").expect("a file");
    let changed = |text| {
        let change = Override::parse(text).expect("a change");
        answer(file.scenario_with(&Vec::new(), &[change]))
    };
    assert_eq!(changed("flow.first.dccp.ack_ratio=1"), "dccp/ccid3 does not use `ack_ratio`");
    assert_eq!(changed("flow.first.dccp.history_discounting=false"), "accepted");
}

#[test]
fn a_selection_may_leave_out_the_points_that_use_what_the_file_says() {
    let lines = "dccp = { ack_ratio = 1 }";
    let narrowed = |set: &[&str]| {
        let grid = "[grid]\nprotocol = [\"dccp/ccid2\", \"tcp/cubic\"]";
        let mut file = read("$protocol", lines, grid).expect("a file");
        let set = set.iter().map(|text| (*text).to_owned()).collect();
        answer(file.narrow(&Selection { tables: Vec::new(), set }))
    };
    assert_eq!(narrowed(&["protocol=tcp/cubic"]), "accepted");
    assert_eq!(narrowed(&["flow.first.tcp.timestamps=false"]), "accepted");
    let change = "flow.first.tcp.timestamps=false";
    let error = "dccp/ccid2 has no options of `tcp`";
    assert_eq!(narrowed(&["protocol=dccp/ccid2", change]), error);
}
