//! Runs of real kernels that are kept next to an experiment's file.

mod common;

use std::path::{Path, PathBuf};

use common::made_up::{flow, label, record};
use udccp_lab::analysis::{Analysis, Results, ResultsError, Scored, scores};
use udccp_lab::schema::{Experiment, Scenario};
use udccp_lab::{
    Backend, BackendError, Kept, KeptRun, PlanOptions, Progress, Record, Start, Store, Task,
    WorkEstimate, campaign, export, plan, report,
};
use udccp_scenario::TimingRecord;

/// A folder with the small experiment and a table of shares.
struct Place {
    folder: tempfile::TempDir,
    text: String,
}

impl Place {
    fn new() -> Self {
        let (head, _) = common::SMALL.split_once("[[table]]").expect("tables");
        let table = "[[table]]\nid = \"shares\"\nmetric = \"share\"\nclose = \"10 %\"\n\
                     where = { flow = \"first\" }\nrows = \"second\"\ncolumns = \"rtt\"\n\
                     against = \"linux\"\n";
        let place = Self {
            folder: tempfile::tempdir().expect("a temporary folder"),
            text: format!("{head}{table}"),
        };
        place.write(&place.text);
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, text: &str) {
        std::fs::write(self.path("small.toml"), text).expect("a file");
    }

    fn experiment(&self) -> Experiment {
        Experiment::load(&self.path("small.toml")).expect("an experiment")
    }

    fn results(&self) -> Result<Results, ResultsError> {
        let store = Store::open(&self.path("store")).expect("a store");
        Results::load(&self.experiment(), &store, PlanOptions::default())
    }

    /// Keeps runs with these shares of the first flow in both halves of the measured interval.
    fn keep(&self, share: impl Fn(&Task) -> [f64; 2]) -> usize {
        let experiment = self.experiment();
        let mut kept = Kept::load(&experiment).expect("what is kept");
        for task in self.tasks() {
            let run = KeptRun::of(&experiment, &task, &of_linux(share(&task)));
            kept.add(run.expect("a run to keep"));
        }
        kept.write().expect("a file");
        kept.len()
    }

    /// Two runs of four points, without the variant's.
    fn tasks(&self) -> Vec<Task> {
        let mut tasks = plan(&self.experiment(), PlanOptions::default()).expect("a plan");
        tasks.retain(|task| task.variant.is_none());
        tasks
    }

    /// The scores if the first flow has this share in each simulated run.
    fn scored(&self, share: f64) -> Vec<Vec<Scored>> {
        let experiment = self.experiment();
        let mut results = self.results().expect("results");
        let simulated = self.tasks().into_iter().map(|task| (task, of_linux([share, share])));
        results.runs = simulated.collect();
        let analysis = Analysis::of(&experiment, results);
        let all = [report::page(&analysis), report::text(&analysis)];
        assert!(all.iter().all(|text| text.contains("of Linux came with the experiment's file")));
        scores(&analysis).into_iter().map(|score| score.cells).collect()
    }
}

fn of_linux([early, late]: [f64; 2]) -> Record {
    let flows = vec![flow("first", early, late), flow("second", 100.0 - early, 100.0 - late)];
    Record { backend: "linux".to_owned(), ..record(flows) }
}

struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: Start) {}
    fn done(&self, _: &Task, _: &Record, _: WorkEstimate) {}
    fn found(&self, _: WorkEstimate) {}
}

/// A kernel in which the first flow gets 80 %.
struct Linux;

impl Backend for Linux {
    fn id(&self) -> &str {
        "linux"
    }

    fn version(&self) -> String {
        "6.1".to_owned()
    }

    fn run(&self, _: &str, _: &Scenario, seed: u64) -> Result<Record, BackendError> {
        Ok(Record { seed, ..of_linux([80.0, 80.0]) })
    }
}

#[test]
fn shares_are_compared_with_kept_runs() {
    let place = Place::new();
    let kept = place.keep(|task| match (label(task, "second"), label(task, "rtt")) {
        ("tcp/newreno", "25 ms") => [60.0, 60.0],
        ("tcp/newreno", _) => [55.0, 65.0],
        (_, "25 ms") => [70.0, 70.0],
        _ => [58.0, 62.0],
    });
    assert_eq!(kept, 8, "two runs of four points");
    let found = place.scored(61.0);
    assert_eq!(found, [[Scored::Near, Scored::Unsteady, Scored::Off, Scored::Near]]);

    let results = place.results().expect("results");
    let [linux] = results.others.as_slice() else { panic!("one other backend") };
    assert_eq!((linux.runs.len(), linux.kept.len()), (0, 8));
    assert!(!export::csv(&results).contains("linux"), "what is kept has not all that a run has");
}

#[test]
fn stored_runs_replace_kept_ones() {
    let place = Place::new();
    place.keep(|_| [60.0, 60.0]);
    let store = Store::open(&place.path("store")).expect("a store");
    campaign(&place.tasks()[..2], store, &Linux, 1, &Quiet).expect("two runs");
    let results = place.results().expect("results");
    assert_eq!((results.others[0].runs.len(), results.others[0].kept.len()), (2, 6));
    let found = place.scored(60.0);
    assert_eq!(found, [[Scored::Off, Scored::Near, Scored::Near, Scored::Near]]);
}

#[test]
fn kept_runs_of_another_set_up_are_not_compared() {
    let place = Place::new();
    place.keep(|_| [60.0, 60.0]);
    for (from, to, is_same) in [
        ("asks = \"", "asks = \"Now: ", true),
        ("runs = 2", "runs = 1", true),
        ("rate = \"5 Mbit/s\"", "rate = \"6 Mbit/s\"", false),
        ("to = \"8 s\"", "to = \"7 s\"", false),
    ] {
        let changed = place.text.replacen(from, to, 1);
        assert_ne!(changed, place.text, "{from}");
        place.write(&changed);
        assert_eq!(place.results().expect("results").others.is_empty(), !is_same, "{to}");
    }
}

#[test]
fn only_whole_measurements_of_kernels_are_kept() {
    let place = Place::new();
    let experiment = place.experiment();
    let (task, run) = (&place.tasks()[0], of_linux([60.0, 60.0]));
    let is_kept = |task: &Task, record: &Record| KeptRun::of(&experiment, task, record).is_some();
    assert!(is_kept(task, &run));
    assert!(!is_kept(task, &Record { backend: "sim".to_owned(), ..run.clone() }));
    assert!(!is_kept(&Task { shortened: true, ..task.clone() }, &run));
    assert!(!is_kept(&Task { variant: Some("every-ack".to_owned()), ..task.clone() }, &run));
    assert!(!is_kept(task, &Record { measured_s: [8.0, 9.0], ..run.clone() }), "no samples there");
    let late = TimingRecord { valid: false, ..TimingRecord::default() };
    assert!(!is_kept(task, &Record { timing: Some(late), ..run }));
}

#[test]
fn errors_in_the_kept_file_are_reported() {
    let place = Place::new();
    place.keep(|_| [60.0, 60.0]);
    let path = place.path("kept/small.csv");
    let text = std::fs::read_to_string(&path).expect("the file");
    for (from, to, says) in [
        (",linux,", ",linux,x", "line: 2"),
        (",3 7,", ",3,", "`measured_s` needs two numbers"),
        (",60.0000 40.0000,", ",60.0000,", "each half needs a rate for each flow"),
        (",60.0000 40.0000,", ",60.0000 NaN,", "a rate must be a number"),
    ] {
        std::fs::write(&path, text.replacen(from, to, 1)).expect("the file");
        let error = place.results().expect_err("no results").to_string();
        assert!(error.contains("kept/small.csv") && error.contains(says), "{error}");
    }
    std::fs::write(&path, [0xff, b'\n']).expect("the file");
    let error = place.results().expect_err("no text").to_string();
    assert!(error.starts_with("cannot read ") && error.contains("kept/small.csv"), "{error}");
}

/// A change of an experiment's file invalidates its kept runs, which must then be made again.
#[test]
fn every_kept_run_of_this_repository_is_compared() {
    let experiments = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = Store::open(&folder.path().join("store")).expect("a store");
    let mut files = 0;
    for file in std::fs::read_dir(experiments.join("kept")).expect("a folder") {
        let name = file.expect("a file").file_name();
        let path = experiments.join(&name).with_extension("toml");
        let experiment = Experiment::load(&path).expect("the experiment of kept runs");
        let kept = Kept::load(&experiment).expect("its kept runs");
        let results = Results::load(&experiment, &store, PlanOptions::default()).expect("results");
        let used: usize = results.others.iter().map(|other| other.kept.len()).sum();
        assert_eq!((used, kept.is_empty()), (kept.len(), false), "{}", kept.path().display());
        files += 1;
    }
    assert!(files > 0);
}
