//! `udccp lab export`: exports stored runs for other programs.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use udccp_lab::analysis::Results;
use udccp_lab::export::Frame;
use udccp_lab::{PlanOptions, export};

use super::files::{Amount, LabFiles, Part};
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Experiments: names or paths of files [default: all of the folder]
    #[arg(value_name = "EXPERIMENT")]
    names: Vec<String>,
    #[command(flatten)]
    format: Format,
    /// Export samples over time instead of runs (with --csv or --parquet); -o writes both
    #[arg(long, requires = "as_tables")]
    series: bool,
    /// Write files to this folder instead of one table to standard output
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    amount: Amount,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    files: LabFiles,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct Format {
    /// Print whole records as JSON (the default)
    #[arg(long)]
    json: bool,
    /// Print tables as CSV, with one line for each flow of each run
    #[arg(long, group = "as_tables")]
    csv: bool,
    /// Write tables as Parquet
    #[arg(long, group = "as_tables")]
    parquet: bool,
}

const EXAMPLES: &str = "\
Examples:
  udccp lab export bhatti-2008 --csv > runs.csv
  udccp lab export bhatti-2008 --csv --series > series.csv
  udccp lab export --parquet -o out/tables
  udccp lab export bhatti-2008 --csv --series -o out/tables
  udccp lab export bhatti-2008 --json | jq '.[0].flows[0].goodput_mbps'";

/// Exports what was requested.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let experiments = args.part.of_all(args.files.experiments(&args.names)?)?;
    if args.output.is_none() && experiments.len() > 1 {
        let message = "several experiments do not fit into one table";
        return Err(Failure::new(Exit::Usage, message).hint("name one, or a folder: -o DIR"));
    }
    for experiment in &experiments {
        let results = args.files.results(experiment, PlanOptions::from(args.amount))?;
        if results.runs.is_empty() {
            let id = &experiment.id;
            output::note(&format!("{id}: no runs of this version; start `udccp lab run {id}`"));
        }
        match &args.output {
            Some(folder) => write(folder, &experiment.id, &results, &args.format)?,
            None => print(&results, args)?,
        }
    }
    Ok(Exit::Success)
}

fn print(results: &Results, args: &Args) -> CliResult<()> {
    if !args.format.csv && !args.format.parquet {
        return output::line(&json(results)?);
    }
    let frame = if args.series { export::series(results) } else { export::runs(results) };
    if args.format.csv {
        return output::line(frame.csv().trim_end());
    }
    let mut out = std::io::stdout().lock();
    if out.is_terminal() {
        let message = "Parquet cannot be printed on a terminal";
        return Err(Failure::new(Exit::Usage, message).hint("name a folder: -o DIR"));
    }
    let bytes = parquet(&frame)?;
    output::printed(out.write_all(&bytes).and_then(|()| out.flush()))
}

/// Writes the files of one experiment, and prints their paths.
fn write(folder: &Path, id: &str, results: &Results, format: &Format) -> CliResult<()> {
    let cannot = |path: &Path, error: std::io::Error| {
        let message = format!("cannot write {}: {error}", path.display());
        Failure::new(Exit::Failure, message).hint("-o names another folder to write to")
    };
    std::fs::create_dir_all(folder).map_err(|e| cannot(folder, e))?;
    let put = |name: String, bytes: &[u8]| {
        let path = folder.join(name);
        std::fs::write(&path, bytes).map_err(|e| cannot(&path, e))?;
        output::line(&path.display().to_string())
    };
    if !format.csv && !format.parquet {
        return put(format!("{id}.json"), json(results)?.as_bytes());
    }
    for (table, frame) in [("runs", export::runs(results)), ("series", export::series(results))] {
        if format.csv {
            put(format!("{id}.{table}.csv"), frame.csv().as_bytes())?;
        } else {
            put(format!("{id}.{table}.parquet"), &parquet(&frame)?)?;
        }
    }
    Ok(())
}

#[cfg(feature = "parquet")]
fn parquet(frame: &Frame) -> CliResult<Vec<u8>> {
    frame.parquet().map_err(plain)
}

/// Without Parquet, as in the program that `make demo` builds first.
#[cfg(not(feature = "parquet"))]
fn parquet(_: &Frame) -> CliResult<Vec<u8>> {
    let message = "this program was built without Parquet";
    Err(Failure::new(Exit::Unsupported, message)
        .hint("use --csv, or build with it: cargo install --locked --path crates/udccp-cli"))
}

fn json(results: &Results) -> CliResult<String> {
    export::json(results).map_err(plain)
}

fn plain(error: impl ToString) -> Failure {
    Failure::new(Exit::Failure, error.to_string())
}
