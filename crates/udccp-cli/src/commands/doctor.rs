//! `udccp doctor`.

use crate::exit::{Exit, Failure, Outcome};

/// Flags of `udccp doctor`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome<Exit> {
    Err(Failure::new(Exit::Unsupported, "`udccp doctor` is not in this build"))
}
