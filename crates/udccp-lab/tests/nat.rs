//! Hosts behind NATs connect (RFC 5596 and RFC 5597) in the simulator.

use std::path::Path;

use udccp_lab::schema::Experiment;
use udccp_lab::{Record, RunOptions, document};

/// A transfer of 10 kB over a path of 100 ms, from hosts behind `nat`.
fn run(dccp: &str) -> Record {
    let text = format!(
        r#"schema = 1
id = "nat"
asks = "Do hosts behind NATs find each other?"
[topology]
shape = "dumbbell"
access = {{ rate = "1 Gbit/s" }}
bottleneck = {{ rate = "10 Mbit/s", rtt = "100 ms", limit = "100 packets" }}
[time]
duration = "60 s"
phase = "0 s"
measure = {{ from = "0 s", to = "60 s", every = "1 s" }}
[[flow]]
name = "call"
protocol = "dccp/ccid2"
traffic = {{ kind = "transfer", size = "4 kB" }}
start = "1 s"
dccp = {{ {dccp} }}
"#
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/nat.toml");
    let root = document::parse("nat.toml", text).expect("TOML");
    let experiment = Experiment::from_node(root, &path).unwrap_or_else(|f| panic!("{f}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).unwrap_or_else(|f| panic!("{f}"));
    udccp_lab::run("nat", &scenario, 7, RunOptions { check: true, ..RunOptions::default() })
        .expect("a run")
}

/// Seconds until the last byte of the transfer; `None` if it never arrived.
fn seconds(record: &Record) -> Option<f64> {
    let transfers = record.flows[0].transfers.as_ref()?;
    (record.flows[0].goodput_bytes >= 4_000).then(|| transfers.mean_ms.unwrap() / 1e3)
}

//= 5597-4.2-2 test
#[test]
fn client_behind_a_nat_server_behind_a_nat_or_both_connect_at_once() {
    let direct = seconds(&run("")).unwrap();
    assert!(direct < 0.2, "{direct} s");
    for place in ["sender", "receiver", "both"] {
        let took = seconds(&run(&format!(r#"nat = "{place}", invite = true"#))).unwrap();
        assert!(took < direct + 0.05, "behind NATs ({place}) {took} s, else {direct} s");
    }
}

#[test]
fn without_an_invitation_a_server_behind_a_nat_is_never_reached() {
    assert!(seconds(&run(r#"nat = "sender""#)).is_some());
    for place in ["receiver", "both"] {
        assert_eq!(seconds(&run(&format!(r#"nat = "{place}""#))), None, "{place}");
    }
}
