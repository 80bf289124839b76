//! `udccp ns2` and campaigns on ns-2: errors where it is missing, and a run where it is installed.

#![cfg(target_os = "linux")]

mod common;

use std::fs;

use common::{TWO_FLOWS, fails, udccp};

fn small(folder: &tempfile::TempDir) -> String {
    let file = folder.path().join("small.toml");
    fs::write(&file, TWO_FLOWS).unwrap();
    file.display().to_string()
}

#[test]
fn unsupported_ns_2_keys_are_reported_without_ns_2_installed() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = small(&folder);
    let with = |set: &str, message: &[&str]| {
        fails(&["ns2", &scenario, "--set", set], 4, message);
    };
    with("flow.second.protocol=tcp/bbr", &["flow \"second\"", "tcp/bbr", "`udccp guide ns2`"]);
    with("topology.bottleneck.loss=1 %", &["topology.bottleneck.loss"]);
    with("flow.first.dccp.ack_ratio=2", &["flow \"first\"", "dccp.ack_ratio"]);
}

#[test]
fn missing_ns_2_is_reported_with_its_package() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = small(&folder);
    let store = folder.path().join("store").display().to_string();
    for args in [
        vec!["ns2", scenario.as_str()],
        vec!["lab", "run", scenario.as_str(), "--backend", "ns2", "--store", store.as_str()],
    ] {
        let output = udccp(&args).env("PATH", folder.path()).output().unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(10), "{printed}");
        assert!(printed.contains("apt-get install ns2"), "{printed}");
    }
}

#[test]
fn the_script_is_printed_without_ns_2() {
    let folder = tempfile::tempdir().unwrap();
    let args = ["ns2", &small(&folder), "--script"];
    let output = udccp(&args).env("PATH", folder.path()).output().unwrap();
    let script = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success());
    assert!(script.contains("Agent/DCCP/TCPlike") && script.ends_with("$ns run\n"), "{script}");
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that skips says so")]
fn a_campaign_on_ns_2_stands_beside_the_simulated_one() {
    let folder = tempfile::tempdir().unwrap();
    let scenario = small(&folder);
    let output = udccp(&["ns2", &scenario, "--json"]).output().unwrap();
    if output.status.code() == Some(10) {
        eprintln!("no program `ns` (apt-get install ns2): this test skips");
        return;
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(record["backend"], "ns2");
    assert!(record["flows"][0]["throughput_mbps"].as_f64().unwrap() > 0.5, "{record}");
    let store = folder.path().join("store").display().to_string();
    let run = ["lab", "run", &scenario, "--store", &store, "--backend", "ns2"];
    let output = udccp(&run).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && printed.contains("1 runs done"), "{printed}");
}
