//! Parts of an experiment: they have the same runs as the whole file, and command line changes.

mod common;

use std::path::Path;

use udccp_lab::schema::Experiment;
use udccp_lab::{PlanOptions, Selection, Task, plan};

fn asked(tables: &[&str], set: &[&str]) -> Selection {
    let owned = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    Selection { tables: owned(tables), set: owned(set) }
}

fn narrowed(tables: &[&str], set: &[&str]) -> Experiment {
    let mut experiment = common::small();
    experiment.narrow(&asked(tables, set)).unwrap_or_else(|errors| panic!("{errors}"));
    experiment
}

fn tasks(experiment: &Experiment, quick: bool) -> Vec<Task> {
    plan(experiment, PlanOptions { quick, runs: None }).expect("a plan")
}

#[test]
fn narrowed_tasks_keep_the_keys_of_the_whole() {
    let whole: Vec<String> =
        tasks(&common::small(), false).into_iter().map(|task| task.key).collect();
    let part = tasks(&narrowed(&["fairness"], &["rtt=50 ms"]), false);
    assert_eq!(part.len(), 4, "two protocols, two runs, no variant");
    assert!(part.iter().all(|task| whole.contains(&task.key)));
    let both = narrowed(&[], &["rtt=50 ms", "rtt=25 ms"]);
    assert_eq!(tasks(&both, false).len(), whole.len(), "every value is none less");
}

#[test]
fn tables_bring_their_claims_and_figures_and_nothing_else() {
    let experiment = narrowed(&["fairness"], &[]);
    assert_eq!(experiment.tables.len(), 1);
    assert!(experiment.claims.iter().all(|claim| claim.table == "fairness"));
    let figures: Vec<&str> = experiment.figures.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(figures, ["against"], "the one over time needs runs that no table has");
    assert!(experiment.variants.is_empty());
    assert!(narrowed(&["rates"], &[]).figures.is_empty());
}

#[test]
fn repeated_narrowing_intersects() {
    let mut experiment = narrowed(&["fairness"], &["rtt=25 ms", "time.duration=9 s"]);
    experiment.narrow(&asked(&[], &["second=tcp/cubic", "time.duration=10 s"])).expect("a part");
    assert_eq!(experiment.tables.len(), 1);
    let tasks = tasks(&experiment, false);
    assert_eq!(tasks.len(), 2, "one point, two runs");
    assert!(tasks.iter().all(|task| task.scenario.time.duration.as_secs_f64() > 9.5));
    let arguments = " --table fairness --set rtt=\"25 ms\" --set second=tcp/cubic \
                 --set time.duration=\"10 s\"";
    assert_eq!(experiment.narrowed.arguments(), arguments);
    let gone = experiment.narrow(&asked(&["rates"], &[])).expect_err("it was left out");
    assert!(gone.to_string().contains("no table"), "{gone}");
}

#[test]
fn a_changed_key_is_another_run_however_short() {
    let whole: Vec<String> =
        tasks(&common::small(), false).into_iter().map(|task| task.key).collect();
    let shorter = narrowed(&[], &["time.duration=6 s", "time.measure.to=6 s"]);
    for quick in [false, true] {
        let tasks = tasks(&shorter, quick);
        assert!(tasks.iter().all(|task| task.scenario.time.duration.as_secs_f64() < 6.5));
        assert!(tasks.iter().all(|task| !whole.contains(&task.key)));
    }
}

#[test]
fn selection_prints_as_valid_arguments() {
    let arguments = asked(&["a", "b"], &["rtt=50 ms", "flow.first.ecn=true"]).arguments();
    assert_eq!(arguments, " --table a --table b --set rtt=\"50 ms\" --set flow.first.ecn=true");
}

#[test]
fn unknown_names_are_reported_with_the_nearest() {
    let error = |tables: &[&str], set: &[&str]| {
        let mut experiment = common::small();
        experiment.narrow(&asked(tables, set)).expect_err("an error").to_string()
    };
    for (error, expected) in [
        (error(&["fairnes"], &[]), ["no table \"fairnes\"", "did you mean `fairness`?"]),
        (error(&[], &["rtt=51 ms"]), ["no value \"51 ms\"", "50 ms"]),
        (error(&[], &["tim.duration=6 s"]), ["neither an axis nor a key", "`time`"]),
        (error(&[], &["time.duration=2 s"]), ["measuring ends", "the run ends"]),
        (error(&[], &["time.durations=2 s"]), ["unknown key `durations`", "`duration`"]),
        (error(&[], &["rtt"]), ["expected KEY=VALUE", "--set"]),
    ] {
        assert!(expected.iter().all(|word| error.contains(word)), "{error}");
    }
}

/// The cases of an experiment share most values of an axis.
#[test]
fn each_axis_value_is_listed_once() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments/bhatti-2008.toml");
    let mut experiment = Experiment::load(&path).unwrap_or_else(|errors| panic!("{errors}"));
    let error = experiment.narrow(&asked(&[], &["rtt=9 ms"])).expect_err("an error").to_string();
    assert_eq!(error.matches("125 ms").count(), 1, "{error}");
}
