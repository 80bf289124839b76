//! `udccp completions`: shell completions.

use std::io;

use clap_complete::Shell;

use crate::exit::{CliResult, Exit};
use crate::output;

/// Flags of `udccp completions`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Shell
    shell: Shell,
}

const EXAMPLES: &str = "\
Examples:
  udccp completions bash > ~/.local/share/bash-completion/completions/udccp
  udccp completions zsh > \"${fpath[1]}/_udccp\"
  udccp completions fish > ~/.config/fish/completions/udccp.fish";

/// Runs the command. `command` is the command line to complete.
pub(crate) fn run(args: Args, mut command: clap::Command) -> CliResult<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "udccp", &mut script);
    output::printed(io::Write::write_all(&mut io::stdout().lock(), &script))?;
    Ok(Exit::Success)
}
