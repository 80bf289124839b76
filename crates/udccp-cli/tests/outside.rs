//! An installed program without a clone: experiments, published numbers and scenarios are built in,
//! and the user's files take precedence.

mod common;

use std::fs;
use std::path::Path;
use std::time::Duration;

use common::udccp;

/// Reading all experiments in a debug build takes seconds, and much longer on a busy machine.
const PATIENCE: Duration = Duration::from_secs(900);

/// Runs the program in a folder. Returns its standard output and standard error.
fn at(folder: &Path, args: &[&str]) -> (String, String) {
    let mut command = udccp(args);
    let output = command.timeout(PATIENCE).current_dir(folder).output().expect("the program runs");
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
    (String::from_utf8(output.stdout).expect("text"), message)
}

/// The messages of a command that fails in a folder.
fn fails_at(folder: &Path, args: &[&str]) -> String {
    let mut command = udccp(args);
    let output = command.timeout(PATIENCE).current_dir(folder).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(4), "{args:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn empty() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder")
}

/// One short run of a published study.
const SHORT: [&str; 12] = [
    "nor-2012",
    "--runs",
    "1",
    "--table",
    "table1",
    "--set",
    "cut=50 %",
    "--set",
    "time.duration=40 s",
    "--set",
    "time.measure.from=20 s",
    "--set=time.measure.to=40 s",
];

#[test]
fn every_experiment_is_listed_in_an_empty_folder() {
    let folder = empty();
    let (list, _) = at(folder.path(), &["lab", "list", "--json"]);
    let list: serde_json::Value = serde_json::from_str(&list).expect("JSON");
    let list = list.as_array().expect("a list");
    let clone = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let entries = fs::read_dir(clone).expect("the folder of experiments").flatten();
    let files = entries.filter(|e| e.path().extension().is_some_and(|e| e == "toml")).count();
    assert_eq!(list.len(), files, "as many as the repository has");
    assert!(list.iter().all(|l| l["built_in"] == true), "{list:?}");
    assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing is made");
}

#[test]
fn a_scenario_runs_by_its_name_or_its_path_in_the_clone() {
    let folder = empty();
    for name in ["two-flows-short", "scenarios/two-flows-short.toml"] {
        let short = ["sim", name, "--set", "time.duration=21 s", "--set", "time.measure.to=21 s"];
        let (text, message) = at(folder.path(), &short);
        assert!(text.contains("dccp/ccid2") && text.contains("goodput over time"), "{text}");
        assert!(message.contains("the built-in one is used"), "{message}");
    }
    let message = fails_at(folder.path(), &["sim", "two-flow"]);
    assert!(message.contains("did you mean `two-flows`?"), "{message}");
    // A scenario that reads another file: both are built in.
    let media = ["sim", "media", "--set", "time.duration=32 s", "--set", "time.measure.to=32 s"];
    at(folder.path(), &media);
}

#[test]
fn a_published_study_runs_and_is_reported_beside_its_published_numbers() {
    let folder = empty();
    let run = [&["lab", "run"], SHORT.as_slice()].concat();
    let (_, message) = at(folder.path(), &run);
    assert!(message.contains("nor-2012: the built-in one is used"), "{message}");
    let report = [&["lab", "report", "--markdown"], SHORT.as_slice()].concat();
    let (tables, _) = at(folder.path(), &report);
    assert!(tables.contains("| 282.46 |"), "Table I has the published throughput of TCP: {tables}");
}

#[test]
fn a_calibration_says_once_that_the_study_is_built_in() {
    let folder = empty();
    let settings = [
        "rtt=25 ms",
        "topology.bottleneck.rate=1 Mbit/s",
        "time.duration=36 s",
        "time.measure.from=34 s",
        "time.measure.to=36 s",
    ];
    let mut calibrate = vec!["lab", "calibrate", "bhatti-2008", "--quick", "--runs", "1"];
    settings.iter().for_each(|setting| calibrate.extend(["--set", setting]));
    let (_, message) = at(folder.path(), &calibrate);
    assert_eq!(message.matches("the built-in one is used").count(), 1, "{message}");
}

#[test]
fn user_files_take_precedence_with_a_note() {
    let folder = empty();
    let (written, _) = at(folder.path(), &["lab", "new", "--from", "nor-2012"]);
    let paths: Vec<&str> = written.lines().collect();
    assert_eq!(
        paths,
        ["experiments/nor-2012.toml", "reference/002_table1_window_drop.csv"],
        "with the published numbers"
    );
    let path = folder.path().join(paths[0]);
    let (_, message) = at(folder.path(), &["lab", "plan", "nor-2012", "--quick"]);
    assert!(!message.contains("taken"), "an equal copy is nothing to speak of: {message}");

    let text = fs::read_to_string(&path).expect("the copy");
    fs::write(&path, text.replace("asks = \"", "asks = \"Mine: ")).expect("a change");
    let (_, message) = at(folder.path(), &["lab", "plan", "nor-2012", "--quick"]);
    assert!(
        message.contains("experiments/nor-2012.toml is used, not the built-in one"),
        "{message}"
    );
    let (list, message) = at(folder.path(), &["lab", "list"]);
    assert!(list.contains("Mine: ") && list.contains("bhatti-2008-fairness"), "{list}");
    let built_in = message.lines().find(|l| l.starts_with("built in: ")).expect("which are");
    assert!(!built_in.contains("nor-2012") && built_in.contains("ecn"), "{built_in}");
    // If a folder is given, only its experiments are listed.
    let (list, _) = at(folder.path(), &["lab", "list", "--experiments", "experiments"]);
    assert_eq!(list.lines().count(), 2, "{list}");
}

#[test]
fn renamed_copy_overwrites_nothing() {
    let folder = empty();
    let (written, _) = at(folder.path(), &["lab", "new", "mine", "--from", "bhatti-2008"]);
    assert!(written.starts_with("experiments/mine.toml\nreference/"), "{written}");
    let (plan, _) = at(folder.path(), &["lab", "plan", "mine", "--quick"]);
    assert!(plan.contains("  mine: "), "the copy has its own name: {plan}");
    let message = fails_at(folder.path(), &["lab", "new", "mine", "--from", "ecn"]);
    assert!(message.contains("already exists"), "{message}");
    let reference = folder.path().join(written.lines().nth(1).expect("a reference"));
    fs::write(&reference, "my,numbers\n").expect("a change");
    at(folder.path(), &["lab", "new", "other", "--from", "bhatti-2008"]);
    let kept = fs::read_to_string(&reference).expect("the reference");
    assert_eq!(kept, "my,numbers\n", "each copy has numbers of its own");
    let message = fails_at(folder.path(), &["lab", "new", "--from", "bhati-2008"]);
    assert!(message.contains("did you mean `bhatti-2008`?"), "{message}");
}

/// In a row of links, none of them is *the* bottleneck.
#[test]
fn a_row_is_described_hop_by_hop() {
    let folder = empty();
    let short = ["--set", "time.duration=10 s", "--set=time.measure.from=5 s"];
    let shorter = [&["sim", "parking-lot"][..], &short, &["--set=time.measure.to=10 s"]].concat();
    let (text, _) = at(folder.path(), &shorter);
    let line = text.lines().nth(1).expect("the set-up");
    assert!(line.starts_with("3 hops of 10 Mbit/s, RTT 64 ms, queue 50 packets;"), "{line}");
    assert!(text.contains("\nhop 1 busy ") && text.contains("\nhop 3 busy "), "{text}");
    assert!(!text.contains("bottleneck busy"), "{text}");
}
