//! Tasks as JSON: for all experiment files of this repository, a worker with only the JSON runs the
//! same scenario.

mod common;

use std::path::{Path, PathBuf};

use udccp_lab::schema::Experiment;
use udccp_lab::{PlanOptions, Record, TaskFile, TaskResult, VERSION, plan};

fn survive(experiment: &Experiment) {
    for quick in [false, true] {
        let tasks = plan(experiment, PlanOptions { quick, runs: Some(1) }).expect("a plan");
        for task in tasks {
            let file = TaskFile::new(experiment, &task, 1.5).expect("a task of the experiment");
            let text = serde_json::to_string(&file).expect("JSON");
            let back = TaskFile::parse("test", &text).expect("the same JSON");
            assert_eq!(back, file);
            let back = back.task("test").unwrap_or_else(|e| panic!("{}: {e}", experiment.id));
            assert_eq!((back.key, &back.scenario), (task.key, &task.scenario));
            assert_eq!(back.point, task.point);
        }
    }
}

#[test]
fn every_task_of_every_experiment_survives_its_json() {
    survive(&common::small());
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let entries = std::fs::read_dir(folder).expect("the experiments").flatten();
    let is_experiment = |path: &PathBuf| path.extension().is_some_and(|e| e == "toml");
    let paths: Vec<PathBuf> = entries.map(|e| e.path()).filter(is_experiment).collect();
    assert!(paths.len() > 10, "the folder of experiments: {paths:?}");
    for path in paths {
        let experiment = Experiment::load(&path).unwrap_or_else(|e| panic!("{e}"));
        survive(&experiment);
    }
}

/// A result may come from another computer. With another version, or a run with another seed, it
/// would be stored under the wrong key.
#[test]
fn a_result_of_another_version_or_seed_is_refused() {
    let experiment = common::small();
    let task = plan(&experiment, PlanOptions::default()).expect("a plan").remove(0);
    let read = |seed: u64, version: &str| {
        let task = TaskFile::new(&experiment, &task, 1.5).expect("a task");
        let record = Record { seed, version: version.to_owned(), ..Record::default() };
        let text = serde_json::to_string(&TaskResult { task, record }).expect("JSON");
        TaskResult::parse("results", 1, &text).is_ok()
    };
    assert!(read(task.seed, VERSION));
    assert!(!read(task.seed + 1, VERSION) && !read(task.seed, "0.0.0"));
}
