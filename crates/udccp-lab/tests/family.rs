//! The TCP family in the laboratory: how its members share a path, and the effect of options.

use std::path::Path;

use udccp_lab::document::Override;
use udccp_lab::schema::Experiment;
use udccp_lab::{Record, RunOptions};

/// Runs the two flows of the short scenario with these changes.
fn run(changes: &[&str]) -> Record {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/two-flows-short.toml");
    let experiment = Experiment::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    let modern = ["flow.second.tcp.profile=modern", "time.duration=20 s", "time.measure.to=20 s"];
    let changes: Vec<Override> =
        modern.iter().chain(changes).map(|c| Override::parse(c).expect("a change")).collect();
    let scenario =
        experiment.scenario_with(&Vec::new(), &changes).unwrap_or_else(|errors| panic!("{errors}"));
    udccp_lab::run("family", &scenario, 3, RunOptions::default()).expect("a run")
}

/// The second flow's share of the path, and the path's use in percent.
fn share(first: &str, second: &str, more: &[&str]) -> (f64, f64) {
    let first = format!("flow.first.protocol=tcp/{first}");
    let second = format!("flow.second.protocol=tcp/{second}");
    let mut changes = vec![first.as_str(), second.as_str()];
    changes.extend(more);
    let record = run(&changes);
    let [a, b] = [0, 1].map(|i| record.flows[i].goodput_mbps.expect("a goodput"));
    (b / (a + b), record.system.utilisation_percent.expect("a utilisation"))
}

#[test]
fn lp_leaves_the_path_to_newreno() {
    let (share, used) = share("newreno", "lp", &[]);
    assert!(share < 0.15 && used > 90.0, "LP has {share} of {used} %");
}

/// Vegas keeps few packets queued and gets little. BBR v1 keeps two BDP in flight and gets most.
/// BIC gets most too: next to it, NewReno of Linux 6.1 has 28 % at 25 ms and 12 % at 100 ms with a
/// queue of one BDP (docs/reference/sharing.md).
#[test]
fn newreno_shares_with_other_algorithms_as_published() {
    let found = ["bic", "compound", "vegas", "bbr"].map(|name| share("newreno", name, &[]));
    assert!(found.iter().all(|(_, used)| *used > 90.0), "{found:?}");
    let [bic, compound, vegas, bbr] = found.map(|(share, _)| share);
    assert!((0.6..0.88).contains(&bic) && (0.4..0.75).contains(&compound), "{found:?}");
    assert!(vegas < 0.35 && bbr > 0.5, "{found:?}");
}

/// 160 ms at 10 Mbit/s are 133 packets.
#[test]
fn fast_algorithms_win_on_long_paths() {
    for name in ["scalable", "highspeed", "hybla"] {
        let (share, _) = share("newreno", name, &["topology.bottleneck.rtt=160 ms"]);
        assert!(share > 0.6, "{name}: {share}");
    }
}

/// 20 packets of 1000 bytes in 40 ms are 4 Mbit/s.
#[test]
fn a_window_bound_limits_the_rate() {
    let record = run(&[
        "flow.second.protocol=tcp/newreno",
        "flow.second.packet=1000 B",
        "flow.second.tcp.max_window=20 packets",
        "flow.first.start=19 s",
        "flow.second.start=0 s",
    ]);
    let rate = record.flows[1].throughput_mbps.expect("a throughput");
    assert!((3.6..4.01).contains(&rate), "{rate} Mbit/s");
}

#[test]
fn a_smaller_cut_takes_more() {
    let (wide, _) = share("newreno", "newreno", &[]);
    let (narrow, _) = share("newreno", "newreno", &["flow.second.tcp.window_cut=5 %"]);
    assert!(narrow > wide + 0.1, "{wide} and {narrow}");
}
