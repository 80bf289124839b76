//! Quick-Start (RFC 5634) in the simulator, whose routers support it.

use std::path::Path;

use udccp_lab::schema::Experiment;
use udccp_lab::{Record, RunOptions, document};

/// A transfer over a path of 10 Mbit/s and 200 ms, next to `others`.
fn run(protocol: &str, dccp: &str, path: &str, others: &str) -> Record {
    let text = format!(
        r#"schema = 1
id = "quick-start"
asks = "Does a short transfer end sooner?"
[topology]
shape = "dumbbell"
access = {{ rate = "1 Gbit/s" }}
bottleneck = {{ {path} }}
[time]
duration = "30 s"
phase = "0 s"
measure = {{ from = "0 s", to = "30 s", every = "1 s" }}
{others}
[[flow]]
name = "short"
protocol = "{protocol}"
traffic = {{ kind = "transfer", size = "200 kB" }}
start = "5 s"
dccp = {{ {dccp} }}
"#
    );
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/quick-start.toml");
    let root = document::parse("quick-start.toml", text).expect("TOML");
    let experiment = Experiment::from_node(root, &file).unwrap_or_else(|f| panic!("{f}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).unwrap_or_else(|f| panic!("{f}"));
    udccp_lab::run("quick-start", &scenario, 7, RunOptions { check: true, ..RunOptions::default() })
        .expect("a run")
}

const PATH: &str = r#"rate = "10 Mbit/s", rtt = "200 ms", limit = "1.0 bdp""#;
const ASK: &str = r#"quick_start = "5 Mbit/s""#;

fn seconds(record: &Record) -> f64 {
    let flow = record.flow("short").unwrap();
    flow.transfers.as_ref().unwrap().mean_ms.expect("the transfer ended") / 1e3
}

#[test]
fn a_short_transfer_ends_sooner_with_both_ccids() {
    for protocol in ["dccp/ccid2", "dccp/ccid3"] {
        let [without, with] = ["", ASK].map(|dccp| run(protocol, dccp, PATH, ""));
        let (slow, fast) = (seconds(&without), seconds(&with));
        assert!(fast < 0.75 * slow, "{protocol}: {fast} s, without {slow} s");
        // A round-trip time for the handshake, one direction, and the bytes at the approved 5.12
        // Mbit/s.
        assert!(fast > 0.2 + 0.1 + 0.2, "{protocol}: no faster than was approved: {fast}");
        assert_eq!(with.flow("short").unwrap().loss_percent.unwrap_or(0.0), 0.0);
    }
}

#[test]
fn busy_link_rejects_quick_start_without_other_effects() {
    let busy = "[[flow]]\nname = \"busy\"\nprotocol = \"udp\"\n\
        traffic = { kind = \"constant-rate\", rate = \"9.5 Mbit/s\", size = \"1000 B\" }\n";
    let [without, with] = ["", ASK].map(|dccp| run("dccp/ccid2", dccp, PATH, busy));
    let goodput = |record: &Record| record.flow("short").unwrap().goodput_bytes;
    assert_eq!(goodput(&without), goodput(&with));
    let [a, b] = [without, with].map(|r| r.flow("short").unwrap().packets_sent);
    assert_eq!(a, b);
}

/// The path approves the request and then loses packets. The sender falls back and completes.
#[test]
fn losses_on_an_approved_path_end_quick_start() {
    let lossy = r#"rate = "10 Mbit/s", rtt = "200 ms", limit = "1.0 bdp", loss = "5 %""#;
    for protocol in ["dccp/ccid2", "dccp/ccid3"] {
        let with = run(protocol, ASK, lossy, "");
        let flow = with.flow("short").unwrap();
        assert!(flow.goodput_bytes > 180_000, "{protocol}: {}", flow.goodput_bytes);
        assert!(flow.congestion_events + flow.timeouts > 0, "{protocol}");
    }
}
