//! `udccp agent`: one end of one flow, told by lines on standard input what to play.

use std::io::{self, BufReader};

use crate::exit::{CliResult, Exit, Failure};

/// Flags of `udccp agent`: none, its orders come on standard input.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(_args: Args) -> CliResult<Exit> {
    // A report may be half written when the orchestrator dies: nobody reads it then.
    let orphaned = || std::process::exit(Exit::Failure.code().into());
    let orders = BufReader::new(io::stdin());
    udccp_agent::serve(orders, io::stdout().lock(), orphaned).map_err(failure)?;
    Ok(Exit::Success)
}

/// An error of an agent, with the exit code that says it.
fn failure(error: udccp_agent::AgentError) -> Failure {
    let exit = Exit::of_code(error.exit_code());
    Failure::new(exit, error.to_string()).hint(error.hint())
}
