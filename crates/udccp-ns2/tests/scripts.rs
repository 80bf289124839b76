//! Scripts as text, and refused scenarios.

#![cfg(target_os = "linux")]
#![allow(clippy::tests_outside_test_module, reason = "all of it is tests")]

mod common;

use common::{USUAL, bulk, scenario};
use udccp_ns2::{Ns2Error, check_supported, script};
use udccp_scenario::protocol;
use udccp_scenario::schema::Scenario;

/// The part of a script that differs between scenarios.
fn own_part(scenario: &Scenario) -> String {
    check_supported(scenario).unwrap();
    let text = script(scenario, 1);
    text.split_once("# The scenario.\n").unwrap().1.to_owned()
}

fn gaps(bottleneck: &str, flows: &str) -> String {
    match check_supported(&scenario(bottleneck, flows)) {
        Err(Ns2Error::Scenario(gaps)) => gaps.join("\n"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_long_link_of_2012_is_a_script() {
    let flows = r#"
[[flow]]
name = "tcp"
protocol = "tcp/newreno"
start = "0.5 s"
packet = "1040 B"
traffic = "bulk"
tcp = { profile = "rfc", max_window = "20 packets", delayed_ack = false, timestamps = false }
[[flow]]
name = "ccid2"
protocol = "dccp/ccid2"
start = "5 s"
stop = "9 s"
traffic = { kind = "constant-rate", rate = "2 Mbit/s", size = "500 B" }
dccp = { window_cut = "25 %" }
"#;
    let bottleneck = r#"rate = "2 Mbit/s", delay = "300 ms", limit = "19 packets""#;
    insta::assert_snapshot!(own_part(&scenario(bottleneck, flows)));
}

#[test]
fn red_and_every_kind_of_flow() {
    let queue = r#"queue = { kind = "red", min = "5 packets", max = "15 packets", ecn = true }"#;
    let red = format!(r#"rate = "10 Mbit/s", rtt = "40 ms", limit = "60 packets", {queue}"#);
    let udp = r#"
[[flow]]
name = "udp"
protocol = "udp"
direction = "reverse"
traffic = { kind = "constant-rate", rate = "1 Mbit/s", size = "972 B" }
"#;
    let flows = [
        bulk("cubic", "tcp/cubic", "tcp = { profile = \"linux-2.6.22\", ecn = true }"),
        bulk("reno", "tcp/newreno", "tcp = { min_rto = \"300 ms\" }"),
        bulk("tfrc", "dccp/ccid3", "dccp = { oscillation_reduction = false }"),
        udp.to_owned(),
    ];
    insta::assert_snapshot!(own_part(&scenario(&red, &flows.concat())));
}

#[test]
fn a_path_that_holds_many_packets_ends_the_first_slow_start_of_ccid_2_early() {
    let of = |bottleneck: &str| own_part(&scenario(bottleneck, &bulk("a", "dccp/ccid2", "")));
    let large = of(r#"rate = "100 Mbit/s", rtt = "100 ms", limit = "1.0 bdp""#);
    assert!(large.contains("initial_ssthresh_ 416"), "{large}");
    let small = of(r#"rate = "2 Mbit/s", rtt = "604 ms", limit = "19 packets""#);
    assert!(!small.contains("initial_ssthresh_"), "{small}");
}

#[test]
fn windows_of_bic_and_cubic_end_a_quarter_above_what_path_and_queue_hold() {
    let of = |protocol: &str| {
        let text = own_part(&scenario(USUAL, &bulk("a", protocol, "")));
        let window = text.split_once(" window_ ").unwrap().1.split(' ').next().unwrap();
        window.parse::<u64>().unwrap()
    };
    assert_eq!([of("tcp/bic"), of("tcp/cubic")], [82; 2]);
    assert_eq!(of("tcp/hybla"), (16 << 20) / 1450);
}

#[test]
fn queues_have_the_limits_of_the_scenario() {
    let of = |limit: &str| {
        let bottleneck = format!(r#"rate = "10 Mbit/s", rtt = "40 ms", limit = "{limit}""#);
        let text = own_part(&scenario(&bottleneck, &bulk("a", "tcp/newreno", "")));
        text.lines().find(|line| line.starts_with("wire 0 1")).unwrap().to_owned()
    };
    assert!(of("19 packets").ends_with("DropTail 20 {}"));
    assert!(of("30 kB").ends_with("DropTail 30001 {queue_in_bytes_ true mean_pktsize_ 1}"));
    assert!(of("unlimited").ends_with("DropTail 1000000 {}"));
}

#[test]
fn a_seed_sets_the_generator_and_the_phases() {
    let scenario = scenario(USUAL, &bulk("a", "tcp/newreno", ""));
    let line = |seed: u64, begin: &str| {
        let text = script(&scenario, seed);
        text.lines().find(|line| line.starts_with(begin)).unwrap().to_owned()
    };
    for begin in ["$defaultRNG seed ", "$ns at 0.0"] {
        assert_eq!(line(1, begin), line(1, begin));
        assert_ne!(line(1, begin), line(2, begin));
    }
}

#[test]
fn unsupported_ns_2_keys_are_rejected_by_name() {
    let reno = bulk("a", "tcp/newreno", "");
    let link = |more: &str| {
        let bottleneck = format!(r#"rate = "10 Mbit/s", rtt = "40 ms", limit = "1 bdp", {more}"#);
        gaps(&bottleneck, &reno)
    };
    assert!(link(r#"queue = "codel""#).contains("topology.bottleneck.queue"));
    assert!(link(r#"loss = "1 %""#).contains("topology.bottleneck.loss"));
    assert!(link(r#"mtu = "576 B""#).contains("topology.bottleneck.mtu"));
    for key in ["delay_tick", "interrupt_moderation"] {
        let together = format!(r#"{key} = "1 ms""#);
        assert!(link(&together).contains(&format!("topology.bottleneck.{key}")));
        // That of a host is ignored with a note, like its noise.
        let host = bulk("a", "tcp/newreno", &format!("access = {{ {together} }}"));
        check_supported(&scenario(USUAL, &host)).unwrap();
    }
    let flow = |protocol: &str, more: &str| gaps(USUAL, &bulk("a", protocol, more));
    for (protocol, more, key) in [
        ("tcp/bbr", "", "protocol"),
        ("tcp/cubic-rfc9438", "", "protocol"),
        ("dccp/ccid4", "", "protocol"),
        ("tcp/newreno", "tcp = { window_cut = \"25 %\" }", "tcp.window_cut"),
        ("tcp/newreno", "tcp = { ack_counting = \"segments\" }", "tcp.ack_counting"),
        ("dccp/ccid2", "dccp = { ack_ratio = 2 }", "dccp.ack_ratio"),
        ("dccp/ccid2", "dccp = { max_window = \"20 packets\" }", "dccp.max_window"),
        ("dccp/ccid2", "dccp = { ecn = true }", "dccp.ecn"),
        ("dccp/ccid2", "dccp = { profile = \"linux-2.6.22\" }", "dccp.profile"),
        ("dccp/ccid2", "dccp = { growth_after_cut = \"pauses\" }", "dccp.growth_after_cut"),
        ("dccp/ccid3", "dccp = { nat = \"sender\" }", "dccp.nat"),
    ] {
        let refusal = flow(protocol, more);
        assert!(refusal.contains(&format!("flow \"a\": {key}: ")), "{protocol} {more}: {refusal}");
    }
    let transfer = reno.replace("\"bulk\"", "{ kind = \"transfer\", size = \"1 MB\" }");
    assert!(gaps(USUAL, &transfer).contains("flow \"a\": traffic: "));
}

/// A key may be in the file for the CCID of another point of the grid.
#[test]
fn keys_ignored_by_a_ccid_are_not_unsupported() {
    for (of, key, at) in [
        ("dccp/ccid2", "ack_ratio = 2", "dccp/ccid3"),
        ("dccp/ccid2", "max_window = \"20 packets\"", "dccp/ccid3"),
        ("dccp/ccid2", "growth_after_cut = \"pauses\"", "dccp/ccid3"),
        ("dccp/ccid2", "window_cut = \"25 %\"", "dccp/ccid3"),
        ("dccp/ccid2", "min_rto = \"300 ms\"", "dccp/ccid3"),
        ("dccp/ccid2", "initial_window = \"4 packets\"", "dccp/ccid3"),
        ("dccp/ccid3", "history_discounting = false", "dccp/ccid2"),
    ] {
        let mut scenario = scenario(USUAL, &bulk("a", of, &format!("dccp = {{ {key} }}")));
        scenario.flows[0].protocol = protocol::find(at).unwrap();
        check_supported(&scenario).unwrap_or_else(|gaps| panic!("{at}, {key}: {gaps}"));
    }
}
