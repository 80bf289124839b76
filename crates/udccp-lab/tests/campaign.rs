//! Campaigns: the same results for any number of workers, no run repeated, none lost.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use udccp_lab::analysis::{Analysis, Results};
use udccp_lab::schema::Experiment;
use udccp_lab::{
    PlanOptions, Progress, Record, SIM, Simulator, Start, Store, Task, WorkEstimate, campaign,
    export, plan, report,
};
use udccp_scenario::CostRecord;

/// Counts the progress messages.
#[derive(Default)]
struct Count(AtomicUsize, AtomicBool);

impl Progress for Count {
    fn begin(&self, start: Start) {
        self.1.store(start.shared, Ordering::Relaxed);
    }

    fn done(&self, _: &Task, _: &Record, _: WorkEstimate) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn found(&self, _: WorkEstimate) {}
}

fn run(tasks: &[Task], store: &Path, jobs: usize) -> (usize, usize) {
    let count = Count::default();
    let store = Store::open(store).expect("a store in a temporary folder");
    let outcome = campaign(tasks, store, &Simulator, jobs, &count).expect("runs that end well");
    assert_eq!(outcome.ran, count.0.into_inner());
    (outcome.ran, outcome.stored)
}

/// A reader's view: the text of the tables, and every number except processor time.
fn read(experiment: &Experiment, store: &Path) -> (String, String) {
    let store = Store::open(store).expect("the store");
    let results = Results::load(experiment, &store, PlanOptions::default()).expect("results");
    let csv = export::csv(&results);
    (report::text(&Analysis::of(experiment, results)), csv)
}

#[test]
fn results_are_the_same_for_any_number_of_workers_and_after_any_interruption() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (one, two, pieces) =
        (folder.path().join("1"), folder.path().join("2"), folder.path().join("deep/er/3"));
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    assert_eq!(tasks.len(), 12, "four points and two of a variant, two runs each");

    assert_eq!(run(&tasks, &one, 1), (12, 0));
    assert_eq!(run(&tasks, &two, 2), (12, 0));
    assert_eq!(run(&tasks[3..5], &pieces, 1), (2, 0));
    assert_eq!(run(&tasks, &pieces, 2), (10, 2));
    assert_eq!(run(&tasks, &pieces, 2), (0, 12), "nothing is done twice");

    let reference = read(&experiment, &one);
    assert_eq!(read(&experiment, &two), reference);
    assert_eq!(read(&experiment, &pieces), reference);
}

/// The expected duration comes from earlier runs of the same scenario.
#[test]
fn store_records_the_duration_of_runs() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tasks = plan(&common::small(), PlanOptions::default()).expect("a plan");
    let store = Store::open(&folder.path().join("store")).expect("a store in a temporary folder");
    // Two runs of one point.
    for (run, cpu_s) in [(&tasks[0], 1000.0), (&tasks[1], 3000.0)] {
        let cost = CostRecord { cpu_s, ..CostRecord::default() };
        let (seed, backend) = (run.seed, SIM.to_owned());
        let record = Record { seed, backend, cost, ..Record::default() };
        store.put(run, &record).expect("stored");
    }
    let found = store.costs(SIM).expect("costs").expected_s(&tasks[0]);
    assert!((found - 2000.0).abs() < 1e-6, "{found}");
}

#[test]
fn concurrent_campaign_on_a_store_is_reported() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    let first = Store::open(&path).expect("a store");
    let mark = first.mark().expect("a file").expect("the first mark");
    let tasks = plan(&common::small(), PlanOptions::default()).expect("a plan");
    let count = Count::default();
    campaign(&tasks[..1], Store::open(&path).expect("the store"), &Simulator, 1, &count)
        .expect("a run");
    assert!(count.1.load(Ordering::Relaxed));
    drop(mark);
    campaign(&tasks[..1], Store::open(&path).expect("the store"), &Simulator, 1, &count)
        .expect("no run");
    assert!(!count.1.load(Ordering::Relaxed), "the mark goes with the process that holds it");
}

#[test]
fn older_store_is_upgraded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    let tasks = plan(&common::small(), PlanOptions::default()).expect("a plan");
    run(&tasks[..1], &path, 1);
    let record = Store::open(&path).and_then(|s| s.get(&tasks[0].key)).expect("a store");
    let text = serde_json::to_string(&record).expect("JSON");
    let old = folder.path().join("old");
    let database = rusqlite::Connection::open(&old).expect("a database");
    let sql = "CREATE TABLE runs (key TEXT PRIMARY KEY, version TEXT NOT NULL,
        seed INTEGER NOT NULL, scenario TEXT NOT NULL, record TEXT NOT NULL) WITHOUT ROWID;
        PRAGMA user_version = 1;";
    database.execute_batch(sql).expect("tables");
    let row = "INSERT INTO runs VALUES (?1, 'any', 1, '{}', ?2)";
    database.execute(row, rusqlite::params![tasks[0].key, text]).expect("a row");
    drop(database);
    let store = Store::open(&old).expect("a store");
    assert_eq!(store.get(&tasks[0].key).expect("a record"), record);
    assert_eq!(store.count().expect("a number"), (0, 1), "it is of another version");
}

#[test]
fn simulator_only_store_is_upgraded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    run(&tasks[..2], &path, 1);
    let database = rusqlite::Connection::open(&path).expect("a database");
    let sql = "DROP INDEX records_by_task; DROP INDEX records_by_scenario;
        ALTER TABLE records DROP COLUMN task; ALTER TABLE records DROP COLUMN backend;
        CREATE INDEX records_by_scenario ON records (scenario, cpu_s);
        PRAGMA user_version = 2;";
    database.execute_batch(sql).expect("the tables of version 2");
    drop(database);
    let store = Store::open(&path).expect("a store");
    assert_eq!(store.count_by_backend().expect("numbers"), [("sim".to_owned(), 2)]);
    let results = Results::load(&experiment, &store, PlanOptions::default()).expect("results");
    assert_eq!((results.runs.len(), results.others.len()), (2, 0));
    assert_eq!(run(&tasks[..3], &path, 1), (1, 2), "nothing is done twice");
}

#[test]
fn a_key_names_the_scenario_and_the_seed_and_nothing_else() {
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    let mut keys: Vec<&str> = tasks.iter().map(|t| t.key.as_str()).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), tasks.len());
    let again = plan(&experiment, PlanOptions { runs: Some(1), quick: false }).expect("a plan");
    assert_eq!(again[0].key, tasks[0].key, "the number of runs is not in it");
    assert_eq!(again.len(), 6);
}

#[test]
fn a_store_of_a_newer_program_is_refused() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("store");
    drop(Store::open(&path).expect("a new store"));
    let database = rusqlite::Connection::open(&path).expect("a database");
    database.pragma_update(None, "user_version", 9).expect("a pragma");
    drop(database);
    let error = Store::open(&path).expect_err("a newer store").to_string();
    assert!(error.contains("version 9"), "{error}");
}

/// An archive, or another user's folder: the database cannot create files next to the store. Here a
/// dangling link has the file's name.
#[cfg(unix)]
#[test]
fn a_store_in_a_folder_that_cannot_be_written_is_read() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("50 % of? #1.sqlite");
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    run(&tasks[..2], &path, 1);
    let blocked = folder.path().join("50 % of? #1.sqlite-shm");
    std::os::unix::fs::symlink("/nowhere/at all", &blocked).expect("a link");
    let store = Store::open_existing(&path).expect("the store");
    assert_eq!(store.count().expect("a number"), (2, 0));
    assert!(store.get(&tasks[1].key).expect("a record").is_some());
    let error = Store::open(&path).expect_err("it cannot be written");
    assert!(error.is_of_the_place(), "{error}");

    // Data that are only in the log would be missing.
    std::fs::write(folder.path().join("50 % of? #1.sqlite-wal"), "runs").expect("a file");
    let error = Store::open_existing(&path).expect_err("a part of the store");
    assert!(error.is_of_the_place(), "{error}");
}

#[test]
fn a_file_that_is_no_store_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "these are notes, not a database, and long enough to be read as one")
        .expect("a file");
    let error = Store::open(&path).expect_err("no store").to_string();
    assert!(error.contains("notes.txt"), "{error}");
}
