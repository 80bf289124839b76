//! `udccp lab prune`: results that no report uses any more.

use super::place::{Place, store_failure};
use crate::exit::{Exit, Outcome};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    place: Place,
}

/// Deletes the results of other versions.
pub(super) fn run(args: &Args) -> Outcome<Exit> {
    let deleted = match args.place.open_if_there()? {
        Some(store) => store.prune().map_err(store_failure)?,
        None => 0,
    };
    let path = args.place.store.display();
    output::note(&format!("{deleted} results of other versions deleted ({path})"));
    Ok(Exit::Success)
}
