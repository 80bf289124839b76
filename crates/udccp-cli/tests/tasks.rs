//! Tasks for remote workers: planned, run and imported one by one, they give a campaign's results.

mod common;

use common::lab::Lab;
use common::{stdout, udccp};

fn place<'a>(lab: &Lab, store: &str, command: &'a [&'a str]) -> Vec<String> {
    let mut args: Vec<String> = ["lab"].iter().chain(command).map(|s| (*s).to_owned()).collect();
    args.extend(["--experiments".to_owned(), lab.path("experiments")]);
    args.extend(["--store".to_owned(), lab.path(store)]);
    args
}

fn out(args: &[String], stdin: &str) -> String {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let output = udccp(&args).write_stdin(stdin).output().expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn tasks_run_one_by_one_give_the_tables_of_a_campaign() {
    let lab = Lab::new();
    let whole = lab.run("run", "whole.sqlite", &["small"]);
    let plan = out(&place(&lab, "tasks.sqlite", &["plan", "small", "--json"]), "");
    let tasks: Vec<serde_json::Value> = serde_json::from_str(&plan).expect("JSON");
    assert_eq!(tasks.len(), 8);
    assert_eq!(tasks[0]["point"]["rtt"], "20 ms");
    assert_eq!(tasks[0]["scenario"]["topology"]["bottleneck"]["rtt"], "20 ms");

    // A worker has neither experiment files nor a store.
    let nowhere = lab.path("nowhere");
    std::fs::create_dir(&nowhere).expect("a folder");
    let mut results = String::new();
    for task in &tasks[1..] {
        let output = udccp(&["lab", "task", "-"])
            .current_dir(&nowhere)
            .write_stdin(task.to_string())
            .output()
            .expect("the program runs");
        results.push_str(&String::from_utf8(output.stdout).expect("text"));
    }
    out(&place(&lab, "tasks.sqlite", &["import"]), &results);
    let missing = out(&place(&lab, "tasks.sqlite", &["plan", "small", "--missing"]), "");
    let key = tasks[0]["key"].as_str().expect("a key");
    assert!(missing.starts_with(key) && missing.lines().count() == 1, "{missing}");

    // Run one task by its key, read from a file; importing everything again changes nothing.
    let one = out(&place(&lab, "tasks.sqlite", &["task", &key[..8]]), "");
    let file = lab.path("results.jsonl");
    std::fs::write(&file, one + &results).expect("a file");
    out(&place(&lab, "tasks.sqlite", &["import", &file]), "");
    assert_eq!(lab.run("run", "tasks.sqlite", &["small"]), whole);
    let csv = |store| lab.run("export", store, &["small", "--csv"]);
    assert_eq!(csv("tasks.sqlite"), csv("whole.sqlite"));
}

#[test]
fn plan_text_lists_what_is_to_be_done() {
    let lab = Lab::new();
    let plan = lab.run("plan", "s.sqlite", &["small", "--runs", "1"]);
    assert_eq!(plan.lines().count(), 4);
    assert!(plan.lines().all(|l| l.contains("small: rtt ")), "{plan}");
    lab.run("run", "s.sqlite", &["small", "--runs", "1"]);
    let json = lab.run("plan", "s.sqlite", &["small", "--runs", "1", "--missing", "--json"]);
    assert_eq!(json, "[\n]\n");
    assert!(stdout(&["lab", "plan", "--help"]).contains("Examples:"));
}

#[test]
fn pruning_removes_what_no_report_uses() {
    let lab = Lab::new();
    lab.run("run", "s.sqlite", &["small", "--runs", "1"]);
    lab.run("prune", "s.sqlite", &[]);
    let status = lab.run("status", "s.sqlite", &["--json"]);
    assert!(status.contains("\"stored\":4"), "results of this version stay: {status}");
}
