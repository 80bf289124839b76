//! `kill -9` of a campaign loses nothing: whenever it happens, the finished campaign's tables,
//! pages and exports equal those of an undisturbed one. Two campaigns may share a store.

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::lab::{Lab, SMALL};
use udccp_base::Seed;

/// Additions to the small experiment: thirty runs, two tables and a figure.
const MANY: &str = r#"[grid]
second = ["tcp/newreno", "tcp/cubic"]
rtt = ["20 ms", "30 ms", "40 ms"]
runs = 5
seed = 5
[[table]]
id = "fairness"
metric = "jain"
rows = "second"
columns = "rtt"
[[table]]
id = "shares"
metric = "goodput"
rows = "second"
columns = "rtt"
[[figure]]
id = "time"
title = "One run"
kind = "time"
at = { second = "tcp/cubic", rtt = "30 ms" }
"#;

fn lab() -> Lab {
    let lab = Lab::new();
    let (scenario, _) = SMALL.split_once("[grid]").expect("a grid");
    let scenario = scenario.replace("\"small\"", "\"many\"").replace("tcp/newreno", "$second");
    std::fs::write(lab.path("experiments/many.toml"), scenario + MANY).expect("a file");
    lab
}

fn start(lab: &Lab, store: &str) -> Child {
    let mut args = lab.args("run", store);
    args.extend(["many", "--jobs", "2"].map(str::to_owned));
    Command::new(env!("CARGO_BIN_EXE_udccp"))
        .args(&args)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// All outputs derived from a store, by name.
fn all(lab: &Lab, store: &str) -> BTreeMap<String, Vec<u8>> {
    let folder = format!("{store}.out");
    let out = lab.path(&folder);
    for format in ["--csv", "--json", "--parquet"] {
        lab.run("export", store, &["many", format, "-o", &out]);
    }
    lab.run("report", store, &["many", "-o", &out]);
    let file = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (name, std::fs::read(&path).expect("a file"))
    };
    let files = std::fs::read_dir(Path::new(&out)).expect("a folder");
    let mut all: BTreeMap<_, _> = files.map(file).collect();
    all.insert("tables".to_owned(), lab.run("run", store, &["many"]).into_bytes());
    all
}

fn assert_same(one: &BTreeMap<String, Vec<u8>>, other: &BTreeMap<String, Vec<u8>>, how: &str) {
    assert!(one.keys().eq(other.keys()), "{:?} {:?}", one.keys(), other.keys());
    assert!(one.len() >= 8, "pages, five exports and the tables: {:?}", one.keys());
    for (name, bytes) in one {
        assert!(*bytes == other[name], "{name} differs {how}");
    }
}

fn stored(lab: &Lab, store: &str) -> u64 {
    let text = lab.run("status", store, &["--json"]);
    let value: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    value[0]["stored"].as_u64().expect("a number")
}

#[test]
fn a_campaign_killed_at_ten_random_moments_ends_with_the_same_bytes() {
    let given = std::env::var("UDCCP_TEST_SEED").ok().and_then(|s| s.parse().ok());
    let seed = given.unwrap_or_else(|| u64::from(std::process::id()));
    let again = format!("(to repeat: UDCCP_TEST_SEED={seed})");
    let lab = lab();
    let begun = now();
    lab.run("run", "whole.sqlite", &["many", "--jobs", "2"]);
    let whole = begun.elapsed();

    let mut random = Seed(seed).stream("moments of death");
    let (mut moments, mut counts) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let mut child = start(&lab, "killed.sqlite");
        let share = (random.next_u64() % 1000) as u32;
        let moment = whole / 5 * share / 1000;
        pause(moment);
        // On Unix this is SIGKILL: no handler runs, nothing is flushed.
        child.kill().expect("a signal");
        child.wait().expect("an end");
        moments.push(moment.as_millis());
        counts.push(stored(&lab, "killed.sqlite"));
    }
    let found = format!("killed after {moments:?} ms with {counts:?} of 30 runs stored {again}");
    assert!(counts.is_sorted(), "a finished run was lost: {found}");
    lab.run("run", "killed.sqlite", &["many"]);
    assert_eq!(stored(&lab, "killed.sqlite"), 30, "{found}");
    assert_same(&all(&lab, "whole.sqlite"), &all(&lab, "killed.sqlite"), &found);
}

#[test]
fn two_campaigns_at_once_share_the_runs_of_a_store() {
    let lab = lab();
    lab.run("run", "alone.sqlite", &["many"]);
    let both = [start(&lab, "shared.sqlite"), start(&lab, "shared.sqlite")];
    for child in both {
        let output = child.wait_with_output().expect("an end");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_same(&all(&lab, "alone.sqlite"), &all(&lab, "shared.sqlite"), "where two share a store");
}

#[expect(clippy::disallowed_methods, reason = "the test kills a process at a moment of real time")]
fn pause(duration: Duration) {
    std::thread::sleep(duration);
}

#[expect(clippy::disallowed_methods, reason = "the moments are shares of what a campaign takes")]
fn now() -> Instant {
    Instant::now()
}
