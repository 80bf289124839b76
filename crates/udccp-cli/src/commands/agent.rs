//! `udccp agent`: runs one end of one flow, controlled through standard input.

use std::io::{self, BufReader};

use crate::exit::{CliResult, Exit, Failure};

/// Flags of `udccp agent`: none, its orders come on standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> CliResult<Exit> {
    // If the orchestrator dies, no one reads the report, so it may be left half written.
    let orphaned = || std::process::exit(Exit::Failure.code().into());
    let orders = BufReader::new(io::stdin());
    udccp_agent::serve(orders, io::stdout().lock(), orphaned).map_err(failure)?;
    Ok(Exit::Success)
}

/// An agent's error with its exit code.
fn failure(error: udccp_agent::AgentError) -> Failure {
    let exit = Exit::of_code(error.exit_code());
    Failure::new(exit, error.to_string()).hint(error.hint())
}
