//! `udccp lab`: experiments as campaigns, stored results, reports.

mod about;
mod backend;
mod calibrate;
mod export;
mod files;
mod import;
mod keep;
mod list;
mod new;
mod plan;
mod progress;
mod prune;
mod report;
mod run;
mod task;
mod verify;

use crate::exit::{CliResult, Exit};

/// Flags of `udccp lab`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List experiments, their questions and their stored runs
    List(list::Args),
    /// Run what the store does not have yet; can be stopped and resumed
    Run(run::Args),
    /// Create an experiment: a commented file that already runs
    New(new::Args),
    /// Show finished and missing runs of each experiment, and the time left
    Status(list::Args),
    /// Write a page for each experiment, and an index
    Report(report::Args),
    /// Export stored runs as CSV, Parquet or JSON
    Export(export::Args),
    /// List the runs as tasks for workers
    Plan(plan::Args),
    /// Run one task and print its result, on any machine
    Task(task::Args),
    /// Add results of tasks to the store
    Import(import::Args),
    /// Run the quick part of each study and compare it with the committed results
    Verify(verify::Args),
    /// Fit what a study leaves open to some of its tables, and test the fit on the others
    Calibrate(calibrate::Args),
    /// Keep results of real kernels next to an experiment's file, for later reports
    Keep(keep::Args),
    /// Delete the results of other versions of this program
    Prune(prune::Args),
}

const EXAMPLES: &str = "\
Examples:
  udccp lab list
  udccp lab run bhatti-2008 --quick
  udccp lab run --all --jobs 4
  udccp lab report -o out/report
  udccp lab new smith-2026
  udccp lab export bhatti-2008 --csv > runs.csv";

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    match args.command {
        Command::List(args) => list::run(&args, false),
        Command::New(args) => new::run(&args),
        Command::Status(args) => list::run(&args, true),
        Command::Run(args) => run::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Task(args) => task::run(&args),
        Command::Import(args) => import::run(&args),
        Command::Verify(args) => verify::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Keep(args) => keep::run(&args),
        Command::Prune(args) => prune::run(&args),
    }
}
