//! `udccp lab calibrate`: finds the set-up that reproduces a study's tables.

use std::path::Path;

use udccp_lab::calibrate::{Fit, SetUp, Trial, calibration, text, whole_points};
use udccp_lab::schema::{Calibration, Experiment};
use udccp_lab::{PlanOptions, Simulator, campaign};

use super::files::{Amount, LabFiles, Part, store_failure};
use super::progress::{Bars, cores};
use super::run::failure;
use crate::commands::numbers::whole;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit};
use crate::{interrupt, output};

#[derive(Debug, clap::Args)]
#[command(after_long_help = NOTES)]
pub(super) struct Args {
    /// The experiment: a name, or the path of a file with [calibrate]
    #[arg(value_name = "EXPERIMENT")]
    name: String,
    #[command(flatten)]
    amount: Amount,
    /// Run and judge the tables of `fit` only, not those of `test`
    #[arg(long)]
    fit_only: bool,
    /// Run every set-up over all tables, and list those that make more points agree and lose none
    #[arg(long, conflicts_with = "fit_only")]
    explain: bool,
    #[command(flatten)]
    part: Part,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=1024))]
    jobs: Option<u64>,
    #[command(flatten)]
    files: LabFiles,
}

const NOTES: &str = "\
Runs every combination of the knobs' values over the tables of `fit`. The nearest one and the file
as it stands are then run over the tables of `test`. The runs are stored: an interrupted calibration
resumes where it stopped.

With --explain, nothing is fitted: every set-up is run over the tables of `fit` and of `test`. A
set-up can explain the differences in a table if more points agree with it, each in all its values,
and none that agreed is lost.

Examples:
  udccp lab calibrate bhatti-2008 --quick
  udccp lab calibrate bhatti-2008 --set time.duration=\"120 s\" --set time.measure.to=\"120 s\"";

/// Fits, tests and prints the result.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let options = PlanOptions::from(args.amount);
    let path = args.files.find(&args.name)?;
    let own = load(args, &path)?;
    let plan = calibration(&own).map_err(bad_input)?;
    let set_ups = plan.set_ups();
    if args.explain {
        let tables: Vec<String> = plan.fit.iter().chain(&plan.test).cloned().collect();
        let found = run_and_judge(args, &path, plan, &tables, &set_ups, options)?;
        output::line(whole_points(&own, plan, &found).trim_end())?;
        return Ok(Exit::Success);
    }
    let fit = Fit::of(run_and_judge(args, &path, plan, &plan.fit, &set_ups, options)?);
    let Some(best) = fit.best() else { return Ok(Exit::Success) };
    let mut tested = None;
    if !args.fit_only && !plan.test.is_empty() {
        let stands = vec![0; plan.knobs.len()];
        let both = [stands, best.values.clone()];
        let found = run_and_judge(args, &path, plan, &plan.test, &both, options)?;
        tested = <[SetUp; 2]>::try_from(found).ok();
    }
    output::line(text(&own, plan, &fit, tested.as_ref()).trim_end())?;
    Ok(Exit::Success)
}

fn load(args: &Args, path: &Path) -> CliResult<Experiment> {
    args.part.of(Experiment::load(path).map_err(bad_input)?)
}

/// Runs the tables with each set-up, and judges the results.
fn run_and_judge(
    args: &Args,
    path: &Path,
    plan: &Calibration,
    tables: &[String],
    set_ups: &[Vec<usize>],
    options: PlanOptions,
) -> CliResult<Vec<SetUp>> {
    let trial = Trial::new(load(args, path)?, plan, tables, set_ups).map_err(bad_input)?;
    let tasks = trial.tasks(options).map_err(bad_input)?;
    let jobs = args.jobs.map_or_else(cores, |n| n as usize);
    let bars = Bars::new(&[], &args.files, options, jobs);
    let leave = bars.leave();
    interrupt::on_interrupt(leave)?;
    let outcome = campaign(&tasks, args.files.open()?, &Simulator, jobs, &bars);
    bars.end();
    let outcome = outcome.map_err(failure)?;
    let what: Vec<&str> = tables.iter().map(String::as_str).collect();
    super::run::done(&what, &outcome, &args.files);
    let store = args.files.open_if_there()?;
    let Some(store) = store else { return Ok(Vec::new()) };
    let results = trial.results(&store, &tasks).map_err(store_failure)?;
    Ok(trial.judge(&results))
}
