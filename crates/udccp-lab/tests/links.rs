//! The network behaves as a link's description says.

mod common;

use std::path::Path;

use udccp_lab::document::Override;
use udccp_lab::schema::{Experiment, Scenario};
use udccp_lab::{Record, RunOptions, document};

/// Runs a constant rate of UDP over a bottleneck with these lines, followed by `changes`.
fn run(bottleneck: &str, changes: &str) -> Record {
    run_with("50 packets", bottleneck, changes)
}

fn run_with(limit: &str, bottleneck: &str, changes: &str) -> Record {
    let text = format!(
        r#"
[topology]
shape = "dumbbell"
access = {{ rate = "100 Mbit/s" }}

[topology.bottleneck]
{bottleneck}
rtt = "40 ms"
limit = "{limit}"
{changes}
[time]
duration = "20 s"
measure = {{ from = "0 s", to = "20 s", every = "1 s" }}

[[flow]]
name = "only"
protocol = "udp"
traffic = {{ kind = "constant-rate", rate = "8 Mbit/s", size = "1000 B" }}
"#
    );
    let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/test.toml");
    let tree = document::parse(name, text).expect("TOML");
    let scenario = Scenario::read(&tree).unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { check: true, ..RunOptions::default() };
    udccp_lab::run("test", &scenario, 1, options).expect("a run")
}

fn change(at: u64, what: &str) -> String {
    format!("[[topology.change]]\nat = \"{at} s\"\nlink = \"bottleneck\"\n{what}\n")
}

/// Mean wire rate over whole seconds.
fn mean(record: &Record, seconds: core::ops::Range<usize>) -> f64 {
    let series = &record.flows[0].series.throughput_mbps[seconds.clone()];
    series.iter().sum::<f64>() / seconds.len() as f64
}

#[test]
fn a_schedule_of_rates_is_followed() {
    let changes = change(5, "rate = \"4 Mbit/s\"") + &change(10, "rate = \"2 Mbit/s\"");
    let record = run("rate = \"10 Mbit/s\"", &changes);
    assert!(mean(&record, 1..5) > 8.0);
    assert!((mean(&record, 6..10) - 4.0).abs() < 0.01, "{}", mean(&record, 6..10));
    assert!((mean(&record, 11..20) - 2.0).abs() < 0.01, "{}", mean(&record, 11..20));
}

#[test]
fn a_limit_in_bdp_is_that_of_the_first_rate_whatever_the_rate_is_later() {
    let record = run_with("1.0 bdp", "rate = \"6 Mbit/s\"", &change(1, "rate = \"1.5 Mbit/s\""));
    // 6 Mbit/s times 40 ms are 20 packets of 1500 bytes, here of 1028: 110 ms at 1.5 Mbit/s. If the
    // limit followed the rate, it would be 5 packets: 27 ms.
    let full = record.system.queue_delay_ms.p95.expect("a delay");
    assert!((full - 110.0).abs() < 6.0, "{full}");
}

#[test]
fn a_link_that_is_down_carries_nothing_and_its_record_says_why() {
    let changes = change(5, "down = true") + &change(8, "down = false");
    let record = run("rate = \"10 Mbit/s\"", &changes);
    assert!(mean(&record, 6..8) < 1e-9);
    assert!(mean(&record, 9..20) > 8.0);
    let link = record.links.iter().find(|l| l.name == "bottleneck forward").expect("a link");
    // Three seconds at 1000 packets per second.
    let lost = link.dropped_by["link down"];
    assert!(lost.abs_diff(3_000) < 10, "{lost}");
    // At the end, 20 ms of 1000 packets per second are in flight.
    assert!(link.packets_arrived.abs_diff(link.packets_departed + lost) <= 21);
}

#[test]
fn a_change_of_loss_is_one_of_the_forward_direction() {
    let record = run("rate = \"10 Mbit/s\"", &change(10, "loss = \"50 %\""));
    let lost = record.flows[0].loss_percent.expect("a loss");
    assert!((lost - 25.0).abs() < 1.0, "{lost}");
    assert!(!record.links.iter().any(|l| l.name.ends_with("reverse") && l.packets_dropped > 0));
}

/// Each packet counts on three links. Relative to the flow's own packets this is a third of its
/// loss; relative to those of two flows, it is less according to the other's share.
#[test]
fn a_loss_on_all_links_is_one_of_all_packets() {
    let record = run("rate = \"10 Mbit/s\"", &change(10, "loss = \"50 %\""));
    let flow = &record.flows[0];
    let (own, all) = (flow.loss_percent.unwrap(), flow.loss_on_all_links_percent.unwrap());
    assert!((3.0 * all - own).abs() < 1e-9, "{all} and {own}");
    let path = "rate = \"10 Mbit/s\", rtt = \"20 ms\", limit = \"30 packets\", loss = \"1 %\"";
    let record = common::bulk_flows(path, 20, &["tcp/newreno", "dccp/ccid2"]);
    let part = |f: &udccp_lab::FlowRecord| {
        3.0 * f.loss_on_all_links_percent.unwrap() / f.loss_percent.unwrap()
    };
    let parts: Vec<f64> = record.flows.iter().map(part).collect();
    assert!(parts.iter().all(|part| (0.05..0.95).contains(part)), "{parts:?}");
    assert!((parts.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{parts:?}");
}

#[test]
fn a_mahimahi_trace_sets_the_rate() {
    let record = run("trace = \"steady.trace\"", "");
    assert!((mean(&record, 1..20) - 4.8).abs() < 0.01, "{}", mean(&record, 1..20));
    assert!(record.system.utilisation_percent.expect("a value") > 99.0);
}

#[test]
fn a_trace_of_delays_adds_to_the_delay() {
    let step = "delay_distribution = { kind = \"trace\", file = \"step.txt\" }";
    let record = run(&format!("rate = \"10 Mbit/s\"\n{step}"), "");
    // 20 ms, and 40 ms after 10 s; serialisation takes 0.9 ms.
    let delay = record.flows[0].delay_ms.expect("a delay");
    assert!((delay - 30.9).abs() < 0.5, "{delay}");
}

#[test]
fn copies_corruption_and_the_mtu_are_in_the_record() {
    let record = run("rate = \"20 Mbit/s\"\nduplicate = \"10 %\"\ncorrupt = \"5 %\"", "");
    let link = record.links.iter().find(|l| l.name == "bottleneck forward").expect("a link");
    assert!(link.packets_duplicated.abs_diff(2_000) < 170, "{}", link.packets_duplicated);
    assert!(link.dropped_by["corrupted"].abs_diff(1_100) < 130, "{:?}", link.dropped_by);
    let record = run("rate = \"20 Mbit/s\"\nmtu = \"1000 B\"", "");
    assert_eq!(record.flows[0].packets_delivered, 0);
}

#[test]
fn the_contents_of_a_trace_are_part_of_the_key() {
    let key = |file: &str| {
        let name = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/records/test.toml");
        let text = format!(
            "[topology]\nshape = \"dumbbell\"\naccess = {{ rate = \"1 Gbit/s\" }}\n\
             bottleneck = {{ trace = \"{file}\", rtt = \"40 ms\", limit = \"50 packets\" }}\n\
             [time]\nduration = \"20 s\"\n\
             [[flow]]\nname = \"a\"\nprotocol = \"tcp/cubic\"\ntraffic = \"bulk\"\n"
        );
        let tree = document::parse(name, text).expect("TOML");
        let scenario = Scenario::read(&tree).unwrap_or_else(|errors| panic!("{errors}"));
        udccp_lab::key(&scenario, 1)
    };
    assert_ne!(key("steady.trace"), key("slower.trace"), "the same mean rate, other times");
    assert_eq!(key("steady.trace"), key("steady-copy.trace"), "the same times");
}

#[test]
fn the_example_of_a_wireless_link_runs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/wireless.toml");
    let experiment = Experiment::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    let duration = Override::parse("time.duration=66 s").expect("a change");
    let to = Override::parse("time.measure.to=66 s").expect("a change");
    let scenario = experiment
        .scenario_with(&Vec::new(), &[duration, to])
        .unwrap_or_else(|errors| panic!("{errors}"));
    let record = udccp_lab::run("wireless", &scenario, 1, RunOptions::default()).expect("a run");
    let link = record.links.iter().find(|l| l.name == "bottleneck forward").expect("a link");
    for reason in ["random loss", "queue management", "link down"] {
        assert!(link.dropped_by.contains_key(reason), "{reason}: {:?}", link.dropped_by);
    }
    assert!(record.flows.iter().all(|f| f.goodput_bytes > 1_000_000));
}

/// The channel turns bad after 1 % of the good packets and good after 10 % of the bad ones, so it
/// loses one in eleven: by default, all bad and no good ones.
#[test]
fn the_chances_of_a_channel_are_percents() {
    let model = "{ kind = \"gilbert-elliott\", p = \"1 %\", r = \"10 %\" }";
    let record = run(&format!("rate = \"10 Mbit/s\"\nloss = {model}"), "");
    let lost = record.flows[0].loss_percent.expect("a loss");
    // 20,000 packets in some 180 bursts of 10: the standard deviation is 0.9 points.
    assert!((lost - 100.0 / 11.0).abs() < 3.0, "{lost}");
}
