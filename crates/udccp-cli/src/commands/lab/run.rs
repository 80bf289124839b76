//! `udccp lab run`: runs one campaign over all requested experiments.

use udccp_lab::analysis::Analysis;
use udccp_lab::schema::Experiment;
use udccp_lab::{CampaignError, CampaignSummary, PlanOptions, SIM, Task, campaign, plan, report};

use super::backend;
use super::files::{Amount, LabFiles, Part, store_failure};
use super::progress::{Bars, cores};
use crate::commands::numbers::whole;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};
use crate::{interrupt, output};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Experiments: names, or paths of files
    #[arg(value_name = "EXPERIMENT")]
    names: Vec<String>,
    /// All experiments of the folder, or all built-in ones if there is no folder
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    amount: Amount,
    #[command(flatten)]
    part: Part,
    /// Backend: sim, emu (this machine's kernel, in real time), emu-netem (also with its queues as
    /// the path), linux (a Linux with DCCP, in virtual time), linux-udccp (our DCCP in it) or ns2
    /// (the simulator ns-2)
    #[arg(long, value_name = "ID", default_value = SIM)]
    backend: String,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=1024))]
    jobs: Option<u64>,
    #[command(flatten)]
    files: LabFiles,
}

/// Runs the missing tasks, and prints the tables.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    if args.names.is_empty() && !args.all {
        let none = Failure::new(Exit::Usage, "no experiment is named");
        return Err(none.hint("`udccp lab list` shows them; `--all` runs all of them"));
    }
    let experiments = args.part.of_all(args.files.experiments(&args.names)?)?;
    // Some backends must start before there are threads.
    let backend = backend::ready(&args.backend)?;
    let options = PlanOptions::from(args.amount);
    let mut tasks: Vec<Task> = Vec::new();
    for experiment in &experiments {
        tasks.extend(plan(experiment, options).map_err(bad_input)?);
    }
    if options.quick && tasks.is_empty() {
        let left_out =
            Failure::new(Exit::Usage, "`--quick` leaves out everything that was selected");
        return Err(
            left_out.hint("leave out `--quick`, or add `--runs 1` for one run of each point")
        );
    }
    let jobs = args.jobs.map_or_else(cores, |n| n as usize);
    let store = args.files.open()?;
    let ids: Vec<&str> = experiments.iter().map(|e| e.id.as_str()).collect();
    let bars = Bars::new(&experiments, &args.files, options, jobs);
    let leave = bars.leave();
    interrupt::on_interrupt(move || {
        leave();
        backend::stop_all();
    })?;
    let outcome = campaign(&tasks, store, backend.as_ref(), jobs, &bars);
    bars.end();
    let outcome = outcome.map_err(failure)?;
    done(&ids, &outcome, &args.files);
    print_failed_runs(&outcome, backend.id());
    for experiment in &experiments {
        tables(experiment, &args.files, options, experiments.len() > 1)?;
    }
    Ok(Exit::Success)
}

/// Prints how many runs a campaign did, and how many were already done.
pub(super) fn done(what: &[&str], outcome: &CampaignSummary, files: &LabFiles) {
    let found = match outcome.found {
        0 => String::new(),
        n => format!(", {n} were done by another campaign"),
    };
    output::note(&format!(
        "{}: {} runs done, {} were in the store{found} ({})",
        what.join(", "),
        outcome.ran,
        outcome.stored,
        files.store.display()
    ));
}

/// Prints which runs the backend refused, and which were invalid.
fn print_failed_runs(outcome: &CampaignSummary, backend: &str) {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    let words: Vec<String> = outcome.unsupported.iter().map(|r| r.error.to_string()).collect();
    for word in &words {
        match reasons.iter_mut().find(|(reason, _)| reason == word) {
            Some((_, n)) => *n += 1,
            None => reasons.push((word, 1)),
        }
    }
    for (reason, n) in reasons {
        let runs = if n == 1 { "run" } else { "runs" };
        output::note(&format!("{backend} skips {n} {runs}: {reason}"));
    }
    let Some(why) = outcome.invalid.first() else { return };
    let (runs, why) = match outcome.invalid.len() {
        1 => ("1 run is invalid".to_owned(), why.clone()),
        n => (format!("{n} runs are invalid"), format!("{why} (the first of them)")),
    };
    output::note(&format!("{runs}: {why}; the same command repeats the invalid runs"));
}

fn tables(
    experiment: &Experiment,
    files: &LabFiles,
    options: PlanOptions,
    heading: bool,
) -> CliResult<()> {
    if heading {
        output::line(&format!("\n== {}: {}\n", experiment.id, experiment.asks))?;
    }
    let results = files.results(experiment, options)?;
    output::line(report::text(&Analysis::of(experiment, results)).trim_end())
}

pub(super) fn failure(error: CampaignError) -> Failure {
    match error {
        CampaignError::Store(error) => store_failure(error),
        CampaignError::Runs(runs) => {
            let shown = runs.iter().take(10).map(|r| format!("\n  {}: {}", r.label, r.error));
            let message = format!("{} runs failed:{}", runs.len(), shown.collect::<String>());
            let hint = runs.iter().find_map(|r| r.error.hint.clone());
            let failure = Failure::new(Exit::Failure, message);
            if let Some(hint) = hint {
                return failure.hint(hint);
            }
            failure.hint("all other runs are done and stored; the same command repeats these")
        }
        CampaignError::Workers { .. } => {
            Failure::new(Exit::Failure, error.to_string()).hint("use fewer: --jobs N")
        }
    }
}
