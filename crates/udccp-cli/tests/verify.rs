//! `udccp lab verify`: committed results are compared run by run, and a difference fails.

mod common;

use common::lab::Lab;
use common::udccp;

/// Runs `udccp lab verify` and returns its exit code and standard output.
fn verify(lab: &Lab, store: &str, more: &[&str]) -> (Option<i32>, String) {
    let args = lab.args("verify", store);
    let output = udccp(&[]).args(&args).args(more).output().expect("the program runs");
    (output.status.code(), String::from_utf8(output.stdout).expect("text"))
}

#[test]
fn a_run_that_differs_from_the_committed_one_is_found_and_named() {
    let lab = Lab::new();
    assert_eq!(verify(&lab, "a.sqlite", &["--write"]).0, Some(0));
    // With a new store, everything is run again.
    let (code, text) = verify(&lab, "b.sqlite", &[]);
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("ok        small: 8 of 8 runs equal"), "{text}");

    let path = lab.path("experiments/expected/small.csv");
    let committed = std::fs::read_to_string(&path).expect("the table");
    let hash = committed.lines().nth(1).and_then(|l| l.rsplit(',').nth(1)).expect("a hash");
    std::fs::write(&path, committed.replacen(hash, "0000000000000000", 1)).expect("a file");
    let (code, text) = verify(&lab, "b.sqlite", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("DIFFERENT small: 7 of 8 runs equal"), "{text}");
    assert!(text.contains("rtt 20 ms, run 1: expected"), "{text}");
}

#[test]
fn without_committed_results_nothing_is_verified() {
    let lab = Lab::new();
    let args = lab.args("verify", "a.sqlite");
    let output = udccp(&[]).args(&args).output().expect("the program runs");
    assert_eq!(output.status.code(), Some(4));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("there are no expected results"), "{message}");
    assert!(message.contains("--write"), "{message}");
}

/// The error comes before the runs of `gigabit`, which would take minutes, and no folder is
/// created.
#[test]
fn a_built_in_experiment_without_expected_results_is_told_at_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let verify = |more: &[&str]| {
        let args = [&["lab", "verify", "gigabit"], more].concat();
        let output = udccp(&args).current_dir(folder.path()).output().expect("the program runs");
        assert_eq!(output.status.code(), Some(4), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let message = verify(&[]);
    assert!(message.contains("gigabit comes without expected results"), "{message}");
    let message = verify(&["--write"]);
    assert!(message.contains("gigabit is built in"), "{message}");
    assert!(message.contains("`udccp lab new NAME --from gigabit`"), "{message}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is made");
}
