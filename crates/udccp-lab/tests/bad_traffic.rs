//! Invalid topologies and traffic: each test changes one thing in a valid file.

use std::path::Path;

use udccp_lab::document;
use udccp_lab::schema::Experiment;

const GOOD: &str = r#"schema = 1
id = "row"

[topology]
shape = "parking-lot"
access = { rate = "100 Mbit/s", delay = "1 ms" }
bottleneck = { rate = "10 Mbit/s", delay = "10 ms", limit = "50 packets" }
hops = 3
reverse = { rate = "1 Mbit/s" }

[time]
duration = "60 s"

[[flow]]
name = "long"
protocol = "tcp/newreno"
access = { delay = "5 ms" }

[flow.traffic]
kind = "request-response"
request = "100 B"
response = { kind = "lognormal", mean = "20 kB", sigma = 1.0 }
think = "1 s"

[[flow]]
name = "short"
protocol = "dccp/ccid2"
count = 3
every = "1 s"
enters = 2
leaves = 3
traffic = { kind = "video", every = "40 ms", rate = "1 Mbit/s", group = 12, ratio = 4.0 }

[[flow]]
name = "call"
protocol = "udp"
direction = "reverse"
traffic = { kind = "voip", codec = "g729", silence = "p59" }
"#;

fn read(text: &str) -> Result<Experiment, udccp_lab::Diagnostics> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/row.toml");
    Experiment::from_node(document::parse("tests/row.toml", text.to_owned())?, &path)
}

fn error(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "the test no longer changes anything: {from}");
    match read(&GOOD.replacen(from, to, 1)) {
        Ok(_) => "accepted".to_owned(),
        Err(errors) => errors.to_string(),
    }
}

#[test]
fn the_good_file_is_good_and_groups_have_numbers() {
    let experiment = read(GOOD).unwrap_or_else(|errors| panic!("{errors}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).expect("a scenario");
    let flows: Vec<(&str, u64)> =
        scenario.flows.iter().map(|f| (f.name.as_str(), f.start.as_millis() / 1000)).collect();
    assert_eq!(flows, [("long", 0), ("short-1", 0), ("short-2", 1), ("short-3", 2), ("call", 0)]);
    assert_eq!(scenario.topology.routers(), 4);
    // Three hops of 10 ms and two access links, in both directions.
    assert_eq!(scenario.topology.rtt().as_millis(), 64);
}

#[test]
fn the_largest_sizes_and_windows_are_good() {
    let options = "protocol = \"dccp/ccid2\"\n\
                   dccp = { sequence_window = 70368744177663, send_queue = \"1 packets\" }";
    assert_eq!(error("protocol = \"dccp/ccid2\"", options), "accepted");
    let least = "protocol = \"dccp/ccid2\"\ndccp = { sequence_window = 32 }";
    assert_eq!(error("protocol = \"dccp/ccid2\"", least), "accepted");
    for traffic in [
        "{ kind = \"constant-rate\", rate = \"1 Gbit/s\", size = \"64 MiB\" }",
        "{ kind = \"video\", every = \"1 s\", rate = \"536 Mbit/s\" }",
        "{ kind = \"video\", every = \"1 s\", rate = \"1 Mbit/s\", group = 9, ratio = 1e308 }",
        "{ kind = \"pareto\", rate = \"1 Mbit/s\", size = \"1000 B\", on = \"1 s\", \
         off = \"1 s\", shape = 1.01 }",
    ] {
        assert_eq!(error(VIDEO, traffic), "accepted", "{traffic}");
    }
}

macro_rules! says {
    ($($name:ident: $from:expr => $to:expr;)*) => {$(
        #[test]
        fn $name() {
            insta::assert_snapshot!(error($from, $to));
        }
    )*};
}

const VIDEO: &str =
    "{ kind = \"video\", every = \"40 ms\", rate = \"1 Mbit/s\", group = 12, ratio = 4.0 }";

says! {
    a_shape_that_is_none: "\"parking-lot\"" => "\"parkinglot\"";
    a_dumbbell_with_hops: "\"parking-lot\"" => "\"dumbbell\"";
    a_row_without_hops: "hops = 3\n" => "";
    too_many_hops: "hops = 3" => "hops = 100";
    hops_said_twice: "[time]" =>
        "[[topology.hop]]\nrate = \"1 Mbit/s\"\ndelay = \"1 ms\"\nlimit = \"5 packets\"\n\n[time]";
    a_wrong_key_in_reverse: "reverse = { rate =" => "reverse = { rat =";
    a_wrong_key_of_a_flows_access: "access = { delay = \"5 ms\" }" =>
        "access = { dealy = \"5 ms\" }";
    enters_after_leaving: "enters = 2" => "enters = 3";
    a_router_that_is_not_there: "leaves = 3" => "leaves = 7";
    a_direction_that_is_none: "\"reverse\"" => "\"backwards\"";
    two_kinds_of_timers: "protocol = \"dccp/ccid2\"" =>
        "protocol = \"dccp/ccid2\"\ndccp = { timer_tick = \"4 ms\", timers = \"epoll\" }";
    a_host_that_always_wakes: "protocol = \"dccp/ccid2\"" =>
        "protocol = \"dccp/ccid2\"\ndccp = { wakes_every = \"0 s\" }";
    a_socket_without_a_buffer: "protocol = \"dccp/ccid2\"" =>
        "protocol = \"dccp/ccid2\"\ndccp = { send_buffer = \"0 B\" }";
    a_group_of_nobody: "count = 3" => "count = 0";
    every_without_count: "count = 3\n" => "";
    a_group_that_begins_after_the_end: "every = \"1 s\"" => "every = \"40 s\"";
    an_unknown_kind: "kind = \"voip\"" => "kind = \"voice\"";
    an_unknown_codec: "\"g729\"" => "\"g792\"";
    an_unknown_silence: "\"p59\"" => "\"p95\"";
    half_a_frame_of_speech: "codec = \"g729\"" => "codec = \"g729\", packet = \"25 ms\"";
    a_missing_key_of_video: "every = \"40 ms\", rate = \"1 Mbit/s\"" => "every = \"40 ms\"";
    an_unknown_key_of_video: "group = 12" => "groups = 12";
    a_trace_that_is_not_there: VIDEO =>
        "{ kind = \"video\", every = \"40 ms\", trace = \"no-frames.txt\" }";
    a_trace_with_a_wrong_line: VIDEO =>
        "{ kind = \"video\", every = \"40 ms\", trace = \"bad-frames.txt\" }";
    an_unknown_distribution: "kind = \"lognormal\"" => "kind = \"log-normal\"";
    a_missing_key_of_a_distribution: ", sigma = 1.0" => "";
    a_pareto_without_mean: "{ kind = \"lognormal\", mean = \"20 kB\", sigma = 1.0 }" =>
        "{ kind = \"pareto\", mean = \"20 kB\", shape = 1.0 }";
    requests_over_udp: "\"tcp/newreno\"" => "\"udp\"";
    video_of_rate_zero: "rate = \"1 Mbit/s\", group" => "rate = \"0 Mbit/s\", group";
    access_of_rate_zero: "access = { delay = \"5 ms\" }" => "access = { rate = \"0 kbit/s\" }";
    messages_of_no_size: VIDEO =>
        "{ kind = \"constant-rate\", rate = \"1 Mbit/s\", size = \"0 B\" }";
    messages_without_time_between_them: VIDEO =>
        "{ kind = \"constant-rate\", rate = \"9 Gbit/s\", size = \"1 B\" }";
    bursts_without_time_between_messages: VIDEO => "{ kind = \"on-off\", \
        rate = \"900 Gbit/s\", size = \"100 B\", on = \"1 s\", off = \"1 s\" }";
    bursts_of_no_length: VIDEO => "{ kind = \"on-off\", \
        rate = \"1 Mbit/s\", size = \"1000 B\", on = \"0 s\", off = \"0 s\" }";
    bursts_shorter_than_any_message: VIDEO => "{ kind = \"pareto\", \
        rate = \"1 Mbit/s\", size = \"1000 B\", on = \"1 us\", off = \"1 us\", shape = 1.5 }";
    words_of_a_nanosecond: "\"p59\"" => "{ talk = \"1 ns\", pause = \"1 ns\" }";
    a_sigma_below_zero: "sigma = 1.0" => "sigma = -1.0";
    a_sigma_beyond_all_runs: "sigma = 1.0" => "sigma = 100.0";
    a_sigma_that_is_no_number: "sigma = 1.0" => "sigma = nan";
    requests_given_up_at_once: "think = \"1 s\"" => "timeout = \"0 s\"";
    a_window_of_nothing: "protocol = \"dccp/ccid2\"" => "protocol = \"dccp/ccid2\"\n\
        dccp = { initial_window = \"0 packets\", max_window = \"0 packets\" }";
    a_tcp_without_buffers: "protocol = \"tcp/newreno\"" => "protocol = \"tcp/newreno\"\n\
        tcp = { receive_buffer = \"0 B\", send_buffer = \"0 B\", max_window = \"0 packets\" }";
    a_socket_without_a_queue: "protocol = \"dccp/ccid2\"" =>
        "protocol = \"dccp/ccid2\"\ndccp = { send_queue = \"0 packets\" }";
    a_window_smaller_than_any: "protocol = \"dccp/ccid2\"" =>
        "protocol = \"dccp/ccid2\"\ndccp = { sequence_window = 31 }";
    a_window_larger_than_any: "protocol = \"dccp/ccid2\"" =>
        "protocol = \"dccp/ccid2\"\ndccp = { sequence_window = 70368744177664 }";
    messages_beyond_counting: VIDEO => "{ kind = \"constant-rate\", \
        rate = \"1 Mbit/s\", size = \"18446744073709551615 B\" }";
    bursts_of_messages_that_are_too_long: VIDEO => "{ kind = \"on-off\", \
        rate = \"1 Mbit/s\", size = \"68 MB\", on = \"1 s\", off = \"1 s\" }";
    frames_of_a_rate_beyond_counting: "rate = \"1 Mbit/s\", group" =>
        "rate = \"18446744073709551615 bit/s\", group";
    bursts_that_mostly_have_no_length: VIDEO => "{ kind = \"pareto\", rate = \"1 Mbit/s\", \
        size = \"1000 B\", on = \"1 s\", off = \"0 s\", shape = 1.0000000000000002 }";
    bursts_of_chance_that_mostly_have_no_length: VIDEO => "{ kind = \"on-off\", \
        rate = \"1 Mbit/s\", size = \"1000 B\", off = \"0 s\", \
        on = { kind = \"lognormal\", mean = \"1 s\", sigma = 10.0 } }";
    transfers_of_nothing: VIDEO => "{ kind = \"poisson\", every = \"1 s\", size = \"0 B\" }";
    transfers_of_nothing_on_average: VIDEO => "{ kind = \"poisson\", every = \"1 s\", \
        size = { kind = \"exponential\", mean = \"0 B\" } }";
    requests_of_nothing: "request = \"100 B\"" => "request = \"0 B\"";
    responses_of_nothing: "mean = \"20 kB\"" => "mean = \"0 B\"";
    arrivals_at_no_distance: VIDEO => "{ kind = \"poisson\", every = \"0 s\", size = \"10 kB\" }";
}
