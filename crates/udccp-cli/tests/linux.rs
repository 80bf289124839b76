//! `udccp linux`: errors where it is impossible, and, if the guest's kernel is installed, that a
//! seed determines the record. Otherwise those tests skip with a message.

#![cfg(target_os = "linux")]

mod common;

use std::fs;
use std::path::PathBuf;

use common::{TWO_FLOWS, fails, udccp};

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let with_loss = TWO_FLOWS.replace("limit =", "loss = \"0.5 %\", limit =");
        fs::write(folder.path().join("small.toml"), with_loss).unwrap();
        Self(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    /// Whether a guest can run here.
    #[expect(clippy::print_stderr, reason = "a test that skips says so")]
    fn has_guest(&self) -> bool {
        let output = udccp(&["doctor", "--json"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found: serde_json::Value = serde_json::from_str(&text).unwrap();
        let checks = found["checks"].as_array().unwrap();
        let is_ok = |name: &str| {
            let check = checks.iter().find(|c| c["name"] == name);
            check.is_some_and(|c| c["state"] == "ok")
        };
        let there = is_ok("guest's kernel") && is_ok("guest's tools");
        if !there {
            eprintln!("no kernel for guests (udccp linux --setup): this test skips");
        }
        there
    }

    fn record(&self, more: &[&str]) -> serde_json::Value {
        let scenario = self.path("small.toml");
        let mut args = vec!["linux", scenario.as_str(), "--json"];
        args.extend(more);
        let output = udccp(&args).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{args:?}: {said}");
        let mut record: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        record["cost"]["cpu_s"] = 0.into();
        record
    }
}

#[test]
fn unsupported_linux_features_are_reported_without_a_guest() {
    let place = Place::new();
    let (scenario, cache) = (place.path("small.toml"), place.path("cache"));
    let with = |set: &str, code, message: &[&str]| {
        fails(&["linux", &scenario, "--cache", &cache, "--set", set], code, message);
    };
    with("flow.second.protocol=tcp/compound", 4, &["flow \"second\"", "tcp/compound", "hint:"]);
    with("flow.first.protocol=dccp/ccid4", 4, &["flow \"first\"", "dccp/ccid4"]);
    with("topology.bottleneck.mtu=576 B", 4, &["MTU", "`udccp guide linux-backend`"]);
    assert!(!PathBuf::from(cache).exists());
}

#[test]
fn missing_guest_kernel_is_reported_with_advice() {
    let place = Place::new();
    let (scenario, cache) = (place.path("small.toml"), place.path("cache"));
    let message = ["is not built", "udccp linux --setup"];
    fails(&["linux", &scenario, "--cache", &cache], 10, &message);
    let setup = ["linux", "--setup", "--no-install", "--cache", &cache, "--source", "/no/such.tar"];
    fails(&setup, 10, &["hint:"]);
    fails(&["linux"], 2, &["SCENARIO"]);
    fails(&["linux", "--setup", &scenario], 2, &["--setup"]);
}

#[test]
fn a_seed_gives_one_record_and_another_seed_another() {
    let place = Place::new();
    if !place.has_guest() {
        return;
    }
    let first = place.record(&[]);
    assert_eq!(first["backend"], "linux");
    assert_eq!(first, place.record(&[]));
    assert_ne!(first["event_hash"], place.record(&["--seed", "2"])["event_hash"]);
    for flow in first["flows"].as_array().unwrap() {
        assert!(flow["throughput_mbps"].as_f64().unwrap() > 0.5, "{flow}");
    }
    let ours = place.record(&["--dccp", "udccp"]);
    assert_eq!(ours["backend"], "linux-udccp");
    assert!(ours["flows"][0]["throughput_mbps"].as_f64().unwrap() > 0.5);
}

#[test]
fn large_socket_buffers_do_not_starve_a_guest() {
    let place = Place::new();
    if !place.has_guest() {
        return;
    }
    let set = |which: &str| format!("flow.second.tcp.{which}_buffer=32 MiB");
    let (send, receive) = (set("send"), set("receive"));
    let record = place.record(&["--set", &send, "--set", &receive]);
    let flows = record["flows"].as_array().unwrap();
    let rates: Vec<f64> = flows.iter().map(|f| f["throughput_mbps"].as_f64().unwrap()).collect();
    assert!(rates.iter().all(|rate| *rate > 0.5), "{rates:?}");
    assert!(rates.iter().sum::<f64>() > 8.0, "{rates:?} of 10 Mbit/s");
}

#[test]
fn a_guest_that_does_not_end_in_time_is_killed_and_leaves_nothing() {
    let place = Place::new();
    if !place.has_guest() {
        return;
    }
    let tmp = place.path("tmp");
    fs::create_dir(&tmp).unwrap();
    let scenario = place.path("small.toml");
    let args = ["linux", &scenario, "--set", "time.duration=1000 s", "--deadline", "1"];
    let output = udccp(&args).env("TMPDIR", &tmp).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("did not end within 1 s"), "{said}");
    assert_eq!(fs::read_dir(&tmp).unwrap().count(), 0, "{said}");
}
