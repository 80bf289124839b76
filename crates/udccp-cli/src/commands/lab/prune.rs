//! `udccp lab prune`: deletes results that no report uses any more.

use super::files::{LabFiles, store_failure};
use crate::exit::{CliResult, Exit};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    files: LabFiles,
}

/// Deletes the results of other program versions.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let deleted = match args.files.open_if_there()? {
        Some(store) => store.prune().map_err(store_failure)?,
        None => 0,
    };
    let path = args.files.store.display();
    output::note(&format!("{deleted} results of other versions deleted ({path})"));
    Ok(Exit::Success)
}
