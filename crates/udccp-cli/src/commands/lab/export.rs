//! `udccp lab export`: stored runs for other programs.

use udccp_lab::schema::Experiment;
use udccp_lab::{PlanOptions, export};

use super::place::Place;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The experiment: a name, or the path of a file
    #[arg(value_name = "EXPERIMENT")]
    name: String,
    /// As CSV, a line for each flow of each run (as JSON where absent)
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    place: Place,
}

/// Prints the stored runs.
pub(super) fn run(args: &Args) -> Outcome<Exit> {
    let experiments: Vec<Experiment> = args.place.experiments(std::slice::from_ref(&args.name))?;
    for experiment in &experiments {
        let results = args.place.results(experiment, PlanOptions::default())?;
        let text = if args.csv {
            export::csv(&results)
        } else {
            export::json(&results).map_err(|e| Failure::new(Exit::Failure, e.to_string()))?
        };
        output::line(text.trim_end())?;
    }
    Ok(Exit::Success)
}
