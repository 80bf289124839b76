//! `udccp guide`: the guides of the documentation, which an installed program has no other way to
//! show. Errors and help name a guide by this command, never by its path in a clone.

use include_dir::{Dir, include_dir};

use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// The build script has it read again when a page changes.
static PAGES: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../docs/guides");

/// Flags of `udccp guide`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// Name of a guide; without it the names are listed
    #[arg(value_name = "NAME")]
    name: Option<String>,
}

const EXAMPLES: &str = "\
Examples:
  udccp guide
  udccp guide add-your-paper | less";

/// Runs the command.
pub(crate) fn run(args: &Args) -> CliResult<Exit> {
    let pages = pages();
    let Some(name) = &args.name else {
        for (name, text) in &pages {
            let title = text.lines().next().unwrap_or_default().trim_start_matches("# ");
            output::line(&format!("{name:<18}{title}"))?;
        }
        return Ok(Exit::Success);
    };
    let Some((_, text)) = pages.iter().find(|(known, _)| known == name) else {
        let known: Vec<&str> = pages.iter().map(|(name, _)| *name).collect();
        let error = Failure::new(Exit::Usage, format!("there is no guide \"{name}\""));
        return Err(error.hint(udccp_lab::suggest(name, "there are", &known)));
    };
    output::line(text.trim_end())?;
    Ok(Exit::Success)
}

/// Names and texts, sorted.
fn pages() -> Vec<(&'static str, &'static str)> {
    let page = |file: &'static include_dir::File<'_>| {
        Some((file.path().file_stem()?.to_str()?, file.contents_utf8()?))
    };
    let mut pages: Vec<_> = PAGES.files().filter_map(page).collect();
    pages.sort_unstable();
    pages
}
