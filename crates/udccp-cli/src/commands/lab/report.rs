//! `udccp lab report`: writes pages from the store, without running anything.

use std::path::PathBuf;

use udccp_lab::analysis::Analysis;
use udccp_lab::{PlanOptions, report};

use super::about;
use super::files::{Amount, LabFiles, Part};
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Experiments: names or paths of files [default: all of the folder]
    #[arg(value_name = "EXPERIMENT")]
    names: Vec<String>,
    /// Folder to write to
    #[arg(short, long, value_name = "DIR", default_value = "out/report")]
    output: PathBuf,
    #[command(flatten)]
    amount: Amount,
    /// Print the tables as Markdown instead of writing pages
    #[arg(long, conflicts_with = "output")]
    markdown: bool,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    files: LabFiles,
}

/// Writes the pages and prints the path of the index.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let options = PlanOptions::from(args.amount);
    let experiments = args.part.of_all(args.files.to_report(&args.names, options)?)?;
    let mut analyses = Vec::new();
    for experiment in &experiments {
        let results = args.files.results(experiment, options)?;
        if results.runs.is_empty() {
            let id = &experiment.id;
            output::note(&format!("{id}: no runs of this version; start `udccp lab run {id}`"));
        }
        analyses.push(Analysis::of(experiment, results));
    }
    if args.markdown {
        let texts: Vec<String> = analyses.iter().map(report::markdown).collect();
        return output::line(texts.concat().trim_end()).map(|()| Exit::Success);
    }
    let index = report::write(&args.output, &analyses, &about::about()).map_err(|e| {
        Failure::new(Exit::Failure, e.to_string()).hint("-o names another folder to write to")
    })?;
    output::line(&index.display().to_string())?;
    Ok(Exit::Success)
}
