//! `udccp lab keep`: saves results of real kernels next to an experiment's file.

use udccp_lab::{Kept, KeptError, KeptRun, PlanOptions, library};

use super::files::LabFiles;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(super) struct Args {
    /// Experiments: names or paths of files
    #[arg(value_name = "EXPERIMENT", required = true)]
    names: Vec<String>,
    #[command(flatten)]
    files: LabFiles,
}

const HELP: &str = "\
Adds the stored runs of all backends but the simulator to kept/EXPERIMENT.csv, next to the
experiment's file. For each run, the file has the throughput of each flow in both halves of the
measured interval, which is what a table of shares and its score need. Reports use these runs where
the store has none, as long as the case in the experiment's file is unchanged.

Shortened runs, runs of variants and invalid runs are not kept.";

/// Adds the store's results.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    for experiment in args.files.experiments(&args.names)? {
        let id = &experiment.id;
        if library::is_built_in(&experiment.path) {
            let message = format!("{id} is built in: there is no folder to keep its runs in");
            return Err(
                Failure::new(Exit::BadInput, message).hint("give the path of its file in a clone")
            );
        }
        let results = args.files.results(&experiment, PlanOptions::default())?;
        let mut kept = Kept::load(&experiment).map_err(failure)?;
        let of_others = results.others.iter().flat_map(|other| &other.runs);
        let mut added = 0;
        for run in of_others.filter_map(|(task, record)| KeptRun::of(&experiment, task, record)) {
            kept.add(run);
            added += 1;
        }
        if added == 0 {
            let message = format!("{id}: the store has no run to keep");
            return Err(Failure::new(Exit::BadInput, message)
                .hint(format!("make some: udccp lab run {id} --backend linux")));
        }
        kept.write().map_err(failure)?;
        let path = kept.path().display();
        output::note(&format!("{path}: {added} runs added, {} in total", kept.len()));
    }
    Ok(Exit::Success)
}

fn failure(error: KeptError) -> Failure {
    Failure::new(Exit::BadInput, error.to_string())
}
