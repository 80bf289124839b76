//! `udccp lab verify`: checks that this machine reproduces the committed results, event by event.

use std::path::{Path, PathBuf};

use udccp_lab::schema::Experiment;
use udccp_lab::verify::{Comparison, ExpectedRun, from_csv, to_csv};
use udccp_lab::{PlanOptions, SIM, Task, campaign, library, plan};

use super::backend;
use super::files::{LabFiles, store_failure};
use super::progress::{Bars, cores};
use super::run::failure;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};
use crate::{interrupt, output};

/// Most differences to print for an experiment.
const SHOWN: usize = 5;

#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(super) struct Args {
    /// Experiments: names or paths of files [default: all with expected results]
    #[arg(value_name = "EXPERIMENT")]
    names: Vec<String>,
    /// Write the expected results instead of comparing with them
    #[arg(long)]
    write: bool,
    #[command(flatten)]
    files: LabFiles,
}

const HELP: &str = "\
The runs are those of `udccp lab run EXPERIMENT --quick`. Their expected results are in
expected/EXPERIMENT.csv, next to the experiment's file. The same seed gives the same events on every
machine, so each run must be equal event by event. Runs in the store are not repeated.

Exit code 0: all runs are equal. Exit code 1: at least one is not.";

/// Runs the missing tasks and compares.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let mut experiments = args.files.experiments(&args.names)?;
    if args.names.is_empty() && !args.write {
        experiments.retain(|e| library::read(&expected_path(e)).is_ok());
    }
    if experiments.is_empty() {
        return Err(Failure::new(Exit::BadInput, "there are no expected results".to_owned())
            .hint("name an experiment and add --write to create them"));
    }
    // Read before the runs, which may take long.
    let mut expected = Vec::new();
    for experiment in &experiments {
        match args.write {
            true => check_own(experiment)?,
            false => expected.push(read(experiment)?),
        }
    }
    let options = PlanOptions { quick: true, runs: None };
    let mut plans: Vec<(&Experiment, Vec<Task>)> = Vec::new();
    for experiment in &experiments {
        plans.push((experiment, plan(experiment, options).map_err(bad_input)?));
    }
    run_all(args, &experiments, options, &plans)?;
    let store = args.files.open()?;
    let mut all_equal = true;
    let mut expected = expected.into_iter();
    for (experiment, tasks) in &plans {
        let mut found = Vec::new();
        for task in tasks {
            let record = store.get(&task.key).map_err(store_failure)?;
            found.extend(record.map(|record| ExpectedRun::of(task, &record)));
        }
        match expected.next() {
            Some(expected) => all_equal &= compare(experiment, expected, found)?,
            None => write(experiment, &found)?,
        }
    }
    Ok(if all_equal { Exit::Success } else { Exit::Failure })
}

fn run_all(
    args: &Args,
    experiments: &[Experiment],
    options: PlanOptions,
    plans: &[(&Experiment, Vec<Task>)],
) -> CliResult<()> {
    let backend = backend::ready(SIM)?;
    let bars = Bars::new(experiments, &args.files, options, cores());
    let leave = bars.leave();
    interrupt::on_interrupt(leave)?;
    let tasks: Vec<Task> = plans.iter().flat_map(|(_, tasks)| tasks.clone()).collect();
    let outcome = campaign(&tasks, args.files.open()?, backend.as_ref(), cores(), &bars);
    bars.end();
    outcome.map(|_| ()).map_err(failure)
}

/// The file of an experiment's expected results.
fn expected_path(experiment: &Experiment) -> PathBuf {
    let folder = experiment.path.parent().unwrap_or(Path::new(""));
    folder.join("expected").join(format!("{}.csv", experiment.id))
}

/// Refuses to write next to a built-in experiment, which has no file on disk.
fn check_own(experiment: &Experiment) -> CliResult<()> {
    if !library::is_built_in(&experiment.path) {
        return Ok(());
    }
    let id = &experiment.id;
    let message = format!("{id} is built in: there is no file to write expected results next to");
    Err(Failure::new(Exit::BadInput, message)
        .hint(format!("`udccp lab new NAME --from {id}` makes one of your own")))
}

fn write(experiment: &Experiment, found: &[ExpectedRun]) -> CliResult<()> {
    let path = expected_path(experiment);
    let cannot = |error: String| {
        Failure::new(Exit::BadInput, format!("cannot write {}: {error}", path.display()))
    };
    let text = to_csv(found).map_err(|e| cannot(e.to_string()))?;
    path.parent()
        .map_or(Ok(()), std::fs::create_dir_all)
        .and_then(|()| std::fs::write(&path, text))
        .map_err(|e| cannot(e.to_string()))?;
    output::note(&format!("{}: {} runs written", path.display(), found.len()));
    Ok(())
}

/// The expected results of an experiment.
fn read(experiment: &Experiment) -> CliResult<Vec<ExpectedRun>> {
    let (path, id) = (expected_path(experiment), &experiment.id);
    if library::is_built_in(&path) && library::read(&path).is_err() {
        let message = format!("{id} comes without expected results");
        return Err(Failure::new(Exit::BadInput, message).hint(
            "`udccp lab verify` without a name checks all experiments that have expected results",
        ));
    }
    let text = library::read(&path).map_err(|e| {
        let message = format!("cannot read the expected results {}: {e}", path.display());
        Failure::new(Exit::BadInput, message)
            .hint(format!("`udccp lab verify {id} --write` creates them"))
    })?;
    from_csv(&text).map_err(|e| Failure::new(Exit::BadInput, format!("{}: {e}", path.display())))
}

fn compare(
    experiment: &Experiment,
    expected: Vec<ExpectedRun>,
    found: Vec<ExpectedRun>,
) -> CliResult<bool> {
    let all = expected.len();
    let comparison = Comparison::of(expected, found);
    let verdict = if comparison.is_equal() { "ok" } else { "DIFFERENT" };
    let id = &experiment.id;
    output::line(&format!("{verdict:<9} {id}: {} of {all} runs equal", comparison.equal))?;
    for (wanted, got) in comparison.different.iter().take(SHOWN) {
        let (was, is) = (&wanted.goodput_mbps, &got.goodput_mbps);
        output::line(&format!("  {}: expected {was} Mbit/s, found {is}", wanted.run))?;
    }
    let more = comparison.different.len().saturating_sub(SHOWN);
    if more > 0 {
        output::line(&format!("  and {more} more"))?;
    }
    for (what, runs) in
        [("not in the plan", &comparison.missing), ("not expected", &comparison.unexpected)]
    {
        if let Some(first) = runs.first() {
            output::line(&format!("  {} {what}, such as {}", runs.len(), first.run))?;
        }
    }
    Ok(comparison.is_equal())
}
