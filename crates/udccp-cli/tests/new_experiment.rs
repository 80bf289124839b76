//! `udccp lab new`: its files run unchanged, and it overwrites nothing.

mod common;

use std::path::Path;

use common::{fails, udccp};

#[test]
fn a_new_experiment_runs_as_it_stands() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lab = |args: &[&str]| {
        let output = udccp(args).current_dir(folder.path()).output().expect("the program runs");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{args:?}: {message}");
        String::from_utf8(output.stdout).expect("text")
    };
    let paths = lab(&["lab", "new", "smith-2026"]);
    assert!(paths.lines().all(|p| folder.path().join(p).exists()), "{paths}");
    let text = std::fs::read_to_string(folder.path().join("experiments/smith-2026.toml"));
    assert!(!text.expect("a file").contains("docs/"), "it names no file that only a clone has");
    let tables = lab(&["lab", "run", "smith-2026", "--quick", "--runs", "1"]);
    assert!(tables.contains("Table 1: fairness"), "{tables}");
    let index = lab(&["lab", "report", "smith-2026"]);
    let page = Path::new(index.trim()).with_file_name("smith-2026.html");
    assert!(folder.path().join(page).exists());
}

/// Copies a user's experiment and a built-in one. With a shared file, a change would affect both.
#[test]
fn a_copy_has_published_numbers_of_its_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let lab = |args: &[&str]| {
        let output = udccp(args).current_dir(folder.path()).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(0), "{args:?}: {output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let read = |path| std::fs::read_to_string(folder.path().join(path)).expect("a file");
    lab(&["lab", "new", "own"]);
    let paths = lab(&["lab", "new", "copy", "--from", "own"]);
    assert_eq!(paths, "experiments/copy.toml\nreference/copy.csv\n");
    assert_eq!(read("reference/copy.csv"), read("reference/own.csv"));
    let mut other = read("experiments/own.toml").replace("id = \"own\"", "id = \"copy\"");
    assert!(other.contains("reference/own.csv"), "{other}");
    other = other.replace("\"reference/own.csv\"", "\"reference/copy.csv\"");
    assert_eq!(read("experiments/copy.toml"), other, "and is otherwise the same");
    let paths = lab(&["lab", "new", "cuts", "--from", "nor-2012"]);
    let table = "reference/cuts-002_table1_window_drop.csv";
    assert_eq!(paths, format!("experiments/cuts.toml\n{table}\n"));
    for name in ["copy", "cuts"] {
        lab(&["lab", "plan", name, "--quick"]);
    }
}

#[test]
fn nothing_is_overwritten_and_names_are_plain() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let experiments = folder.path().join("experiments");
    let place = experiments.display().to_string();
    let new = |name, message: &[&str]| {
        fails(&["lab", "new", name, "--experiments", &place], 4, message);
    };
    std::fs::create_dir_all(folder.path().join("reference")).expect("a folder");
    std::fs::write(folder.path().join("reference/mine.csv"), "kept").expect("a file");
    new("mine", &["mine.csv already exists", "hint: choose another name"]);
    assert!(!experiments.join("mine.toml").exists(), "nothing is written then");
    let text = std::fs::read_to_string(folder.path().join("reference/mine.csv"));
    assert_eq!(text.expect("the file"), "kept");
    new("Smith 2026.toml", &["not a valid name for an experiment", "hint:", "smith-2026"]);
    new("../up", &["not a valid name for an experiment", "up"]);
    let long = "a".repeat(300);
    new(&long, &["cannot write", "hint: choose a shorter name"]);
}
