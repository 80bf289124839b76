//! The same scenario and seed give the same packets at the same nanosecond: repeatedly, in debug
//! and release builds, on every machine.

use std::path::Path;

use udccp_lab::document::Override;
use udccp_lab::schema::Experiment;
use udccp_lab::{Record, RunOptions};

fn run(second: &str, seed: u64, check: bool) -> Record {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows-short.toml");
    let experiment = Experiment::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    let change = Override::parse(&format!("flow.second.protocol={second}")).expect("a change");
    let scenario = experiment
        .scenario_with(&Vec::new(), &[change])
        .unwrap_or_else(|errors| panic!("{errors}"));
    let options = RunOptions { check, ..RunOptions::default() };
    udccp_lab::run(&experiment.id, &scenario, seed, options).expect("a run")
}

/// Any change of a protocol, a link or the simulator changes these hashes. Check what changed in
/// the results before you accept the new ones.
#[test]
fn the_same_seed_gives_the_committed_hashes() {
    let hash = |second| {
        let [first, again] = [1, 1].map(|seed| run(second, seed, true).event_hash);
        assert_eq!(first, again, "the same run twice");
        format!("dccp/ccid2 and {second}: {first}")
    };
    let found = ["tcp/newreno", "tcp/cubic", "dccp/ccid2"].map(hash).join("\n");
    insta::assert_snapshot!(found);
}

#[test]
fn invariant_checker_does_not_change_results() {
    let [mut watched, mut alone] = [true, false].map(|check| run("tcp/cubic", 5, check));
    (watched.cost.cpu_s, alone.cost.cpu_s) = (0.0, 0.0);
    assert_eq!(watched, alone);
}

#[test]
fn another_seed_gives_other_phases() {
    let [a, b] = [1, 2].map(|seed| run("tcp/cubic", seed, false));
    assert_ne!(a.event_hash, b.event_hash);
    assert_ne!(a.flows[0].start_s, b.flows[0].start_s);
    assert!(a.flows.iter().all(|f| f.start_s < 4.0));
}

#[test]
fn both_flows_share_the_path() {
    let record = run("tcp/newreno", 1, true);
    assert!(record.undefined.is_empty(), "{:?}", record.undefined);
    for flow in &record.flows {
        let goodput = flow.goodput_mbps.expect("a goodput");
        let throughput = flow.throughput_mbps.expect("a throughput");
        assert!(goodput > 1.0, "{}: {goodput} Mbit/s", flow.name);
        assert!(goodput < throughput, "headers cost something");
        assert!(flow.delay_ms.expect("a delay") > 20.0, "half of the RTT is the least");
    }
    assert!(record.system.utilisation_percent.expect("a utilisation") > 90.0);
}
