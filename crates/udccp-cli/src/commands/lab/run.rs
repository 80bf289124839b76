//! `udccp lab run`: one campaign over all the experiments that were asked for.

use udccp_lab::analysis::Analysis;
use udccp_lab::schema::Experiment;
use udccp_lab::{CampaignError, PlanOptions, Task, campaign, plan, report};

use super::place::{Amount, Place, store_failure};
use super::progress::{Bars, cores};
use crate::commands::sim::bad_input;
use crate::exit::{Exit, Failure, Outcome};
use crate::{interrupt, output};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Experiments: names, or paths of files
    #[arg(value_name = "EXPERIMENT", required_unless_present = "all")]
    names: Vec<String>,
    /// Every experiment of the folder
    #[arg(long, conflicts_with = "names")]
    all: bool,
    #[command(flatten)]
    amount: Amount,
    /// Worker threads; all cores where absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    #[command(flatten)]
    place: Place,
}

/// Runs what is missing, and prints the tables.
pub(super) fn run(args: &Args) -> Outcome<Exit> {
    let experiments = args.place.experiments(&args.names)?;
    let options = PlanOptions::from(args.amount);
    let mut tasks: Vec<Task> = Vec::new();
    for experiment in &experiments {
        tasks.extend(plan(experiment, options).map_err(bad_input)?);
    }
    let jobs = args.jobs.map_or_else(cores, |n| n as usize);
    let store = args.place.open()?;
    let ids: Vec<&str> = experiments.iter().map(|e| e.id.as_str()).collect();
    let bars = Bars::new(&experiments, &args.place, options, jobs);
    interrupt::on_interrupt(bars.leave())?;
    let outcome = campaign(&tasks, store, jobs, &bars);
    bars.end();
    let outcome = outcome.map_err(failure)?;
    let found = match outcome.found {
        0 => String::new(),
        n => format!(", {n} were done by another campaign"),
    };
    output::note(&format!(
        "{}: {} runs done, {} were in the store{found} ({})",
        ids.join(", "),
        outcome.ran,
        outcome.stored,
        args.place.store.display()
    ));
    for experiment in &experiments {
        tables(experiment, &args.place, options, experiments.len() > 1)?;
    }
    Ok(Exit::Success)
}

fn tables(
    experiment: &Experiment,
    place: &Place,
    options: PlanOptions,
    heading: bool,
) -> Outcome<()> {
    if heading {
        output::line(&format!("\n== {}: {}\n", experiment.id, experiment.asks))?;
    }
    let results = place.results(experiment, options)?;
    output::line(report::text(&Analysis::of(experiment, results)).trim_end())
}

fn failure(error: CampaignError) -> Failure {
    match error {
        CampaignError::Store(error) => store_failure(error),
        CampaignError::Runs(runs) => {
            let shown = runs.iter().take(10).map(|r| format!("\n  {}: {}", r.label, r.error));
            let message = format!("{} runs failed:{}", runs.len(), shown.collect::<String>());
            Failure::new(Exit::Failure, message)
                .hint("all other runs are done and stored; the same command tries these again")
        }
        CampaignError::Workers { .. } => {
            Failure::new(Exit::Failure, error.to_string()).hint("ask for fewer: --jobs N")
        }
    }
}
