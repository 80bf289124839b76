//! Several backends: their results do not collide, appear side by side, and are judged separately.

mod common;

use std::path::Path;

use udccp_lab::analysis::{Agreement, Analysis, Results};
use udccp_lab::schema::{Experiment, Scenario};
use udccp_lab::{
    Backend, BackendError, CampaignSummary, PlanOptions, Progress, Record, Simulator, Start, Store,
    Task, WorkEstimate, campaign, document, export, key_of, plan, report,
};
use udccp_scenario::TimingRecord;

struct Quiet;

impl Progress for Quiet {
    fn begin(&self, _: Start) {}
    fn done(&self, _: &Task, _: &Record, _: WorkEstimate) {}
    fn found(&self, _: WorkEstimate) {}
}

/// The simulator times a factor, which a report cannot distinguish from another kernel.
struct Kernel {
    id: &'static str,
    version: &'static str,
    factor: f64,
    /// Runs with this seed do not keep time.
    late: Option<u64>,
}

const LINUX: Kernel = Kernel { id: "linux", version: "6.1", factor: 0.5, late: None };

impl Backend for Kernel {
    fn id(&self) -> &str {
        self.id
    }

    fn version(&self) -> String {
        self.version.to_owned()
    }

    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError> {
        if scenario.flows.iter().any(|f| f.protocol.name == "tcp/bic") {
            return Err(BackendError::of_scenario("no kernel has BIC"));
        }
        let mut record = Simulator.run(name, scenario, seed)?;
        for flow in &mut record.flows {
            flow.throughput_mbps = flow.throughput_mbps.map(|x| x * self.factor);
            flow.goodput_mbps = flow.goodput_mbps.map(|x| x * self.factor);
        }
        record.system.jain = record.system.jain.map(|x| x * self.factor);
        let valid = self.late != Some(seed);
        let why = (!valid).then(|| "too late".to_owned());
        record.timing = Some(TimingRecord { valid, why, ..TimingRecord::default() });
        Ok(record)
    }
}

fn run(tasks: &[Task], store: &Path, backend: &dyn Backend) -> CampaignSummary {
    let store = Store::open(store).expect("a store");
    campaign(tasks, store, backend, 2, &Quiet).expect("runs that end well")
}

fn load(experiment: &Experiment, store: &Path) -> Results {
    let store = Store::open(store).expect("the store");
    Results::load(experiment, &store, PlanOptions::default()).expect("results")
}

#[test]
fn results_of_backends_and_their_versions_do_not_collide() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    assert_eq!(key_of(&tasks[0], &Simulator), tasks[0].key, "the simulator's key is the task's");
    let newer = Kernel { version: "6.12", factor: 0.25, ..LINUX };
    let keys = [&LINUX as &dyn Backend, &newer].map(|backend| key_of(&tasks[0], backend));
    assert!(keys[0] != keys[1] && !keys.contains(&tasks[0].key));

    assert_eq!(run(&tasks[..2], &store, &Simulator).ran, 2);
    assert_eq!(run(&tasks[..2], &store, &LINUX).ran, 2);
    assert_eq!(run(&tasks[..2], &store, &LINUX).stored, 2, "nothing is done twice");
    assert_eq!(run(&tasks[..1], &store, &newer).ran, 1);

    let results = load(&experiment, &store);
    let [linux] = results.others.as_slice() else { panic!("one other backend") };
    assert_eq!((results.runs.len(), linux.runs.len()), (2, 2));
    let rate = |r: &Results, i: usize| r.runs[i].1.flows[0].throughput_mbps.expect("a rate");
    assert_eq!(rate(linux, 0), rate(&results, 0) * 0.25, "the newest result counts");
    assert_eq!(rate(linux, 1), rate(&results, 1) * 0.5);
    assert_eq!(linux.runs[0].1.backend, "linux");

    let csv = export::csv(&results);
    assert!(csv.lines().next().is_some_and(|head| head.contains(",run,backend,")), "{csv}");
    assert_eq!(csv.matches(",linux,").count(), 4, "two flows of two runs: {csv}");
    let counts = Store::open(&store).and_then(|s| s.count_by_backend()).expect("numbers");
    assert_eq!(counts, [("sim".to_owned(), 2), ("linux".to_owned(), 3)]);
}

#[test]
fn invalid_runs_are_not_averaged_and_are_repeated() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    let late = Kernel { id: "emu", late: Some(tasks[0].seed), ..LINUX };
    let outcome = run(&tasks[..2], &store, &late);
    assert_eq!((outcome.ran, outcome.invalid), (2, vec!["too late".to_owned()]));
    let results = load(&experiment, &store);
    assert_eq!((results.others[0].runs.len(), results.others[0].invalid.len()), (1, 1));
    let page = report::page(&Analysis::of(&experiment, results));
    let says = "1 run of emulated is not valid, and left out of every number: too late.";
    assert!(page.contains(says), "{page}");

    let on_time = Kernel { late: None, ..late };
    assert_eq!(run(&tasks[..2], &store, &on_time).ran, 1, "the late one alone");
    let results = load(&experiment, &store);
    assert_eq!((results.others[0].runs.len(), results.others[0].invalid.len()), (2, 0));
}

#[test]
fn unsupported_runs_are_reported_and_shown_as_not_run() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let text = common::SMALL.replace("tcp/cubic", "tcp/bic");
    let experiment = common::read(&text);
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    run(&tasks, &store, &Simulator);
    let outcome = run(&tasks, &store, &LINUX);
    assert!(!outcome.unsupported.is_empty());
    assert_eq!(outcome.ran + outcome.unsupported.len(), tasks.len());
    let results = load(&experiment, &store);
    let analysis = Analysis::of(&experiment, results);
    let linux = &analysis.others[0].tables[0];
    let bic = linux.cells().filter(|c| c.labels.iter().any(|(_, l)| l == "tcp/bic"));
    let agreements: Vec<Agreement> = bic.map(|c| c.agreement).collect();
    assert!(!agreements.is_empty());
    assert!(agreements.iter().all(|a| *a == Agreement::Missing), "{agreements:?}");
    assert!(report::page(&analysis).contains("not run yet"));
}

#[test]
fn a_table_shows_every_backend_and_every_one_is_judged() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let experiment = common::small();
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    run(&tasks, &store, &Simulator);
    run(&tasks, &store, &LINUX);
    let analysis = Analysis::of(&experiment, load(&experiment, &store));
    assert_eq!(analysis.others[0].claims.len(), analysis.claims.len());
    let page = report::page(&analysis);
    for title in ["published", "simulated", "Linux"] {
        assert!(page.contains(&format!("class=\"of\">{title}</th>")), "{title}: {page}");
    }
    assert!(page.contains("Agree with the published value: simulated"), "{page}");
    assert!(page.contains("--backend linux"));
    assert!(report::text(&analysis).contains("\n  Linux"));
    if let Some(folder) = std::env::var_os("UDCCP_REPORT_DIR") {
        report::write(Path::new(&folder), &[analysis], &report::About::default())
            .expect("a folder that can be written");
    }
}

#[test]
fn table_can_be_compared_with_a_backend() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let store = folder.path().join("store");
    let (head, rest) = common::SMALL.split_once("[table.reference]").expect("a reference");
    let (_, rest) = rest.split_once("\n\n").expect("its end");
    let experiment = common::read(&format!("{head}against = \"linux\"\n\n{rest}"));
    let tasks = plan(&experiment, PlanOptions::default()).expect("a plan");
    run(&tasks, &store, &Simulator);
    run(&tasks, &store, &Kernel { factor: 0.999, ..LINUX });
    let analysis = Analysis::of(&experiment, load(&experiment, &store));
    let ours: Vec<Agreement> = analysis.tables[0].cells().map(|c| c.agreement).collect();
    assert!(ours.iter().all(|a| *a == Agreement::Close), "{ours:?}");
    let theirs = analysis.others[0].tables[0].cells().map(|c| c.agreement);
    assert!(theirs.into_iter().all(|a| a == Agreement::Alone), "nothing to compare it with");
    let page = report::page(&analysis);
    assert!(page.contains("Agree with Linux: simulated"), "{page}");
    assert!(!page.contains("published"), "{page}");
    assert!(analysis.claims.iter().all(|c| c.published.holds.is_none()));

    let unknown = format!("{head}against = \"linx\"\n\n{rest}");
    let root = document::parse("small.toml", unknown).expect("TOML");
    let errors = Experiment::from_node(root, &common::path()).expect_err("no such backend");
    assert!(errors.to_string().contains("linux"), "{errors}");
}
