//! Other programs can read the simulator's captures: tshark finds no malformed packet, no bad
//! checksum and no protocol error. Skips with a message if tshark is not installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use udccp_lab::RunOptions;
use udccp_lab::document;
use udccp_lab::schema::Experiment;

/// All three families, with random losses so that recovery is captured, at both ends of each flow:
/// including handshake and close.
const SCENARIO: &str = r#"schema = 1
id = "captured"

[topology]
shape = "dumbbell"
access = { rate = "100 Mbit/s" }
bottleneck = { rate = "4 Mbit/s", rtt = "40 ms", limit = "20 packets", loss = "0.5 %" }

[time]
duration = "8 s"

[[flow]]
name = "ccid2"
protocol = "dccp/ccid2"
stop = "6 s"
traffic = "bulk"

[[flow]]
name = "newreno"
protocol = "tcp/newreno"
start = "100 ms"
stop = "6 s"
traffic = "bulk"

[[flow]]
name = "telemetry"
protocol = "udp"
start = "200 ms"
stop = "6 s"
traffic = { kind = "constant-rate", rate = "200 kbit/s", size = "333 B" }
"#;

/// Verifies every kind of checksum, whatever tshark's defaults are.
fn tshark(file: &Path, filter: &str) -> usize {
    let mut command = Command::new("tshark");
    for protocol in ["ip", "tcp", "udp", "dccp"] {
        command.args(["-o", &format!("{protocol}.check_checksum:TRUE")]);
    }
    let output = command
        .args(["-T", "fields", "-e", "frame.number", "-Y", filter, "-r"])
        .arg(file)
        .output()
        .expect("tshark runs");
    let says = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "tshark on {}: {says}", file.display());
    output.stdout.iter().filter(|b| **b == b'\n').count()
}

fn captures() -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let root = document::parse("captured.toml", SCENARIO.to_owned()).expect("TOML");
    let experiment = Experiment::from_node(root, Path::new("captured.toml"));
    let experiment = experiment.unwrap_or_else(|errors| panic!("{errors}"));
    let scenario = experiment.scenario_with(&Vec::new(), &[]).expect("a scenario");
    let options = RunOptions { check: true, pcap: Some(folder.path()), ..RunOptions::default() };
    let record = udccp_lab::run("captured", &scenario, 1, options).expect("a run");
    assert!(record.system.packets_dropped > 0, "nothing was lost, so nothing was recovered");
    let entries = std::fs::read_dir(folder.path()).expect("the folder");
    let mut files: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    files.sort();
    (folder, files)
}

#[test]
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn tshark_finds_nothing_wrong_in_captures() {
    if Command::new("tshark").arg("--version").output().is_err() {
        eprintln!("skipped: tshark is not installed");
        return;
    }
    let (_folder, files) = captures();
    assert_eq!(files.len(), 7, "two hosts of three flows, and the bottleneck: {files:?}");
    for file in &files {
        let count = |filter| tshark(file, filter);
        let packets = count("ip");
        assert!(packets > 200, "{}: {packets} packets", file.display());
        let verified = count("ip.checksum.status == 1").min(count(
            "tcp.checksum.status == 1 || udp.checksum.status == 1 || dccp.checksum.status == 1",
        ));
        assert_eq!(verified, packets, "{}: right checksums", file.display());
        for wrong in ["_ws.malformed", "_ws.expert.severity == error"] {
            assert_eq!(count(wrong), 0, "{}: {wrong}", file.display());
        }
    }
}
