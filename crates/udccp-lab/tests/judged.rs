//! Too few or shortened runs give no verdict: not in tables, claims or reasons.

mod common;

use udccp_lab::analysis::{Agreement, Analysis, Basis, Results};
use udccp_lab::report::{About, write};
use udccp_lab::schema::Experiment;
use udccp_lab::{FlowRecord, PlanOptions, Record, SystemRecord, Task, plan, report};

/// A run of the small experiment far from the published values, so that every verdict would be bad.
fn record(task: &Task) -> Record {
    let flow = |name: &str, protocol: &str| FlowRecord {
        name: name.to_owned(),
        protocol: protocol.to_owned(),
        goodput_mbps: Some(2.0 + task.run as f64 * 0.1),
        ..FlowRecord::default()
    };
    let second = task.scenario.flows[1].protocol.name;
    Record {
        seed: task.seed,
        measured_s: [1.0, 3.0],
        flows: vec![flow("first", "dccp/ccid2"), flow("second", second)],
        system: SystemRecord {
            jain: Some(0.5 + task.run as f64 * 0.01),
            ..SystemRecord::default()
        },
        ..Record::default()
    }
}

fn results(experiment: &Experiment, change: impl Fn(&mut Task) -> bool) -> Results {
    let tasks = plan(experiment, PlanOptions::default()).expect("a plan");
    let planned = tasks.len();
    let runs = tasks.into_iter().filter_map(|mut task| {
        let record = record(&task);
        change(&mut task).then_some((task, record))
    });
    Results { runs: runs.collect(), planned, ..Results::default() }
}

/// Words and signs of verdicts on a page or terminal.
const VERDICTS: [&str; 6] = ["✗", "✓", "Unexplained", "unexplained", "FAILS", " holds"];

fn no_verdict(analysis: &Analysis<'_>, words: &str) {
    let compared = analysis.tables[0].cells();
    assert!(compared.map(|c| c.agreement).all(|a| a == Agreement::Unjudged));
    assert!(analysis.claims.iter().all(|c| c.ours.holds.is_none() && c.ours.early.is_some()));
    assert!(analysis.cells().all(|c| !c.needs_reason() && c.reasons.is_empty()));
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = write(folder.path(), core::slice::from_ref(analysis), &About::default());
    let index = std::fs::read_to_string(path.expect("a report")).expect("its index");
    for (name, text) in [("text", report::text(analysis)), ("index", index)] {
        // The paper's own numbers are judged: more runs would not change them.
        let ours: Vec<&str> = text.lines().filter(|l| !l.contains("paper's own")).collect();
        for verdict in VERDICTS {
            let line = ours.iter().find(|l| l.contains(verdict));
            assert_eq!(line, None, "the {name} judges");
        }
        assert!(text.contains("not judged yet") && text.contains(words), "{name}: {text}");
    }
    let page = report::page(analysis);
    let (tables, rest) = page.split_once("<h2 id=\"claims\"").expect("claims");
    let (_, tables) = tables.split_once("<h2 id=\"tables\"").expect("tables");
    for verdict in VERDICTS {
        assert!(!tables.contains(verdict), "a table says {verdict}");
    }
    assert!(tables.matches(words).count() > 4, "each cell says how many runs it has: {tables}");
    let claims = rest.split("<li id=\"claim-").skip(1);
    for claim in claims.map(|c| c.split("own numbers").next().unwrap_or_default()) {
        assert!(claim.contains("not judged yet</span>") && claim.contains(words), "{claim}");
    }
}

#[test]
fn fewer_runs_than_the_file_asks_for_give_no_verdict() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |task| task.run == 1));
    no_verdict(&analysis, "1 of 2 runs");
}

#[test]
fn shortened_runs_give_no_verdict_however_many_they_are() {
    let experiment = common::small();
    let short = |task: &mut Task| {
        task.shortened = true;
        true
    };
    let analysis = Analysis::of(&experiment, results(&experiment, short));
    no_verdict(&analysis, "2 of 2 runs, shortened");
}

#[test]
fn all_runs_at_full_length_are_judged() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, |_| true));
    assert!(analysis.tables[0].cells().all(|c| c.agreement == Agreement::Differs));
    assert!(analysis.claims.iter().all(|c| c.ours.holds.is_some()));
    assert!(report::page(&analysis).contains("Unexplained"));
    assert!(!report::text(&analysis).contains("not judged"));
}

#[test]
fn explanations_with_too_few_runs_explain_nothing() {
    let experiment = common::small();
    let one = |task: &mut Task| task.variant.is_none() || task.run == 1;
    let analysis = Analysis::of(&experiment, results(&experiment, one));
    let reasons: Vec<_> = analysis.cells().flat_map(|c| &c.reasons).collect();
    assert!(!reasons.is_empty() && reasons.iter().all(|r| r.support.is_none()));
}

#[test]
fn a_claim_over_a_cell_that_lacks_a_run_is_not_judged_and_others_are() {
    let experiment = common::small();
    let lacks = |task: &mut Task| {
        let at = |label: &str| task.point.iter().any(|(_, l)| l == label);
        task.run == 1 || !(at("tcp/cubic") && at("50 ms"))
    };
    let analysis = Analysis::of(&experiment, results(&experiment, lacks));
    let early: Vec<_> = analysis.claims.iter().map(|c| c.ours.early).collect();
    let basis = Some(Basis { runs: 1, asked: 2, shortened: false });
    assert_eq!(early, [None, basis, basis], "the first claim is about NewReno alone");
    let agreements = analysis.tables[0].cells().map(|c| c.agreement == Agreement::Unjudged);
    assert_eq!(agreements.collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn a_claim_over_a_cell_without_any_run_is_not_judged() {
    let experiment = common::small();
    let at_25 = |task: &mut Task| task.point.iter().any(|(_, label)| label == "25 ms");
    let analysis = Analysis::of(&experiment, results(&experiment, at_25));
    let basis = Some(Basis { runs: 0, asked: 2, shortened: false });
    assert!(analysis.claims.iter().all(|c| c.ours.holds.is_none() && c.ours.early == basis));
}

/// The pair's runs are complete; the runs of flows among their own kind are missing.
#[test]
fn a_claim_over_weights_that_were_not_run_is_not_judged() {
    let weights = r#"
[[table]]
id = "nru"
metric = "nru-unfair"
of = "goodput"
weights = { case = "self", axis = "protocol" }
rows = "second"
columns = "rtt"

[[claim]]
says = "nobody has less than it expects"
table = "nru"
every = { exists = false }
"#;
    let experiment = common::read(&format!("{}{}{weights}", common::SMALL, common::SELF));
    let pairs = |task: &mut Task| task.case.is_none();
    let analysis = Analysis::of(&experiment, results(&experiment, pairs));
    let claim = analysis.claims.last().expect("the claim");
    let basis = Some(Basis { runs: 0, asked: 2, shortened: false });
    assert_eq!((claim.ours.holds, claim.ours.early), (None, basis));
}

#[test]
fn another_backend_is_judged_by_its_own_runs() {
    let experiment = common::small();
    let linux = Results {
        backend: "linux".to_owned(),
        ..results(&experiment, |task| task.variant.is_none() && task.run == 1)
    };
    let all = Results { others: vec![linux], ..results(&experiment, |_| true) };
    let analysis = Analysis::of(&experiment, all);
    assert!(analysis.claims.iter().all(|c| c.ours.holds.is_some()));
    let [linux] = analysis.others.as_slice() else { panic!("one other backend") };
    assert!(linux.claims.iter().all(|c| c.ours.holds.is_none()));
    assert!(linux.tables[0].cells().all(|c| c.agreement == Agreement::Unjudged));
    assert!(report::markdown(&analysis).contains("Linux not judged yet (1 of 2 runs)"));
}
