//! `udccp decode`.

use crate::exit::{Exit, Failure, Outcome};

/// Flags of `udccp decode`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> Outcome<Exit> {
    Err(Failure::new(Exit::Unsupported, "`udccp decode` is not in this build"))
}
