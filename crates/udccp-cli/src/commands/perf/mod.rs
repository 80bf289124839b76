//! `udccp perf`.

use crate::exit::{Exit, Failure, Outcome};

/// Flags of `udccp perf`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome<Exit> {
    Err(Failure::new(Exit::Unsupported, "`udccp perf` is not in this build"))
}
