//! `udccp lab import`: adds results of tasks to the store.

use std::fs::File;
use std::io::{BufRead, BufReader};

use udccp_lab::{Store, TaskError, TaskResult};

use super::files::{LabFiles, store_failure};
use super::task::failure;
use crate::exit::{CliResult, Exit};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Files with one result per line [default: standard input]
    #[arg(value_name = "FILE")]
    files: Vec<String>,
    #[command(flatten)]
    place: LabFiles,
}

const EXAMPLES: &str = "\
Examples:
  udccp lab import results.jsonl
  ssh worker udccp lab task - < task.json | udccp lab import

Each line is stored as soon as it is read. A line from another version of the program, or with
inconsistent parts, ends the import; the lines before it are stored.";

/// Stores every line.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let store = args.place.open()?;
    let mut counts = (0, 0);
    if args.files.is_empty() {
        import(&store, "standard input", std::io::stdin().lock(), &mut counts)?;
    }
    for name in &args.files {
        if name == "-" {
            import(&store, "standard input", std::io::stdin().lock(), &mut counts)?;
            continue;
        }
        let file = File::open(name)
            .map_err(|error| failure(TaskError::Read { place: name.clone(), error }))?;
        import(&store, name, BufReader::new(file), &mut counts)?;
    }
    let (new, there) = counts;
    let path = args.place.store.display();
    output::note(&format!("{new} results stored, {there} were already stored ({path})"));
    Ok(Exit::Success)
}

fn import(
    store: &Store,
    name: &str,
    lines: impl BufRead,
    counts: &mut (usize, usize),
) -> CliResult<()> {
    for (i, line) in lines.lines().enumerate() {
        let line = line.map_err(|error| {
            failure(TaskError::Read { place: format!("{name}:{}", i + 1), error })
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let (task, record) = TaskResult::parse(name, i + 1, &line).map_err(failure)?;
        if store.has(&task.key).map_err(store_failure)? {
            counts.1 += 1;
        } else {
            store.put(&task, &record).map_err(store_failure)?;
            counts.0 += 1;
        }
    }
    Ok(())
}
