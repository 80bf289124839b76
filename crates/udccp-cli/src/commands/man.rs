//! `udccp man`: manual pages, generated from flags and help texts.

use std::path::PathBuf;

use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Flags of `udccp man`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Write the pages of all commands to this folder; without it the page of `udccp` is printed
    #[arg(short, long, value_name = "DIR")]
    out: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  udccp man | man -l -
  udccp man --out ~/.local/share/man/man1";

/// Runs the command. `command` is the command line to describe.
pub(crate) fn run(args: Args, command: clap::Command) -> CliResult<Exit> {
    let Some(folder) = args.out else {
        output::printed(clap_mangen::Man::new(command).render(&mut std::io::stdout().lock()))?;
        return Ok(Exit::Success);
    };
    let unwritable = |e: std::io::Error| {
        Failure::new(Exit::Failure, format!("cannot write to {}: {e}", folder.display()))
            .hint("choose a folder that you can write to")
    };
    std::fs::create_dir_all(&folder).map_err(unwritable)?;
    clap_mangen::generate_to(command, &folder).map_err(unwritable)?;
    output::note(&format!("manual pages are in {}", folder.display()));
    Ok(Exit::Success)
}
