//! A backend that agrees with a whole table explains the simulator's differences; one that agrees
//! with only a part of it explains nothing.

mod common;

use common::made_up;
use udccp_lab::analysis::{Analysis, Results};
use udccp_lab::schema::Experiment;
use udccp_lab::{Task, report};

/// The published index of a point, minus `off` for CUBIC at 50 ms.
fn published(task: &Task, off: f64) -> f64 {
    match (made_up::label(task, "second"), made_up::label(task, "rtt")) {
        ("tcp/cubic", "50 ms") => 0.80 - off,
        (_, "50 ms") => 0.96,
        _ => 0.94,
    }
}

/// The simulator differs from all published values but one. Another backend is near them, except
/// for a difference of `off` for CUBIC at 50 ms.
fn results(experiment: &Experiment, off: f64) -> Results {
    let near = |task: &Task| made_up::fairness(published(task, off));
    let far = |task: &Task| match made_up::label(task, "second") {
        "tcp/cubic" => made_up::fairness(published(task, 0.0)),
        _ => made_up::fairness(0.55),
    };
    let ns2 = made_up::results(experiment, "ns2", near);
    Results { others: vec![ns2], ..made_up::results(experiment, "", far) }
}

fn agreeing_backends(analysis: &Analysis<'_>) -> Vec<Option<String>> {
    analysis.tables[0].cells().map(|cell| cell.agreeing_backend.clone()).collect()
}

#[test]
fn a_backend_that_agrees_with_the_whole_table_explains_differing_cells() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, 0.04));
    let ns2 = Some("ns-2".to_owned());
    assert_eq!(
        agreeing_backends(&analysis),
        [ns2.clone(), ns2, None, None],
        "cells that agree need none"
    );
    assert_eq!(analysis.cells().filter(|c| c.is_explained()).count(), 2);
    let page = report::page(&analysis);
    assert!(page.contains("ns-2 agrees with every published value of this table"), "{page}");
}

#[test]
fn a_backend_with_one_differing_value_explains_nothing() {
    let experiment = common::small();
    let analysis = Analysis::of(&experiment, results(&experiment, 0.07));
    assert!(agreeing_backends(&analysis).iter().all(Option::is_none));
    assert!(!report::page(&analysis).contains("agrees with every published value"));
}

#[test]
fn a_backend_with_a_missing_run_explains_nothing() {
    let experiment = common::small();
    let mut results = results(&experiment, 0.0);
    let is_last = |task: &Task| {
        made_up::label(task, "second") == "tcp/cubic" && made_up::label(task, "rtt") == "50 ms"
    };
    results.others[0].runs.retain(|(task, _)| !is_last(task));
    assert!(agreeing_backends(&Analysis::of(&experiment, results)).iter().all(Option::is_none));
}

#[test]
fn as_many_runs_as_the_study_made_are_enough_to_judge_a_backend() {
    let one_run = |witness_runs: &str| {
        let text = common::SMALL
            .replace("stddev = \"stddev\"\n", &format!("stddev = \"stddev\"\n{witness_runs}"));
        let experiment = common::read(&text);
        let mut results = results(&experiment, 0.04);
        results.others[0].runs.retain(|(task, _)| task.run == 1);
        agreeing_backends(&Analysis::of(&experiment, results))
    };
    assert!(one_run("").iter().all(Option::is_none), "one of two runs is not judged");
    assert_eq!(one_run("witness_runs = 1\n").iter().flatten().count(), 2);
    assert!(one_run("witness_runs = 2\n").iter().all(Option::is_none));
}
