//! `udccp lab`.

use crate::exit::{Exit, Failure, Outcome};

/// Flags of `udccp lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome<Exit> {
    Err(Failure::new(Exit::Unsupported, "`udccp lab` is not in this build"))
}
