//! `udccp lab new`: creates an experiment.

use std::io::ErrorKind;
use std::path::PathBuf;

use udccp_lab::{NewError, copy_experiment, new_experiment};

use super::files::LabFiles;
use crate::commands::lookup::EXPERIMENTS;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Name of the experiment: small letters, digits and dashes, such as bhatti-2008
    #[arg(value_name = "PAPER", required_unless_present = "from")]
    name: Option<String>,
    /// Copy this experiment (a name or a file) and its published numbers instead of the template;
    /// keeps its name if no other is given
    #[arg(long, value_name = "EXPERIMENT")]
    from: Option<String>,
    /// Folder of experiment files
    #[arg(long, value_name = "DIR", default_value = EXPERIMENTS)]
    experiments: PathBuf,
}

const EXAMPLES: &str = "\
Examples:
  udccp lab new smith-2026
  udccp lab new --from bhatti-2008
  udccp lab new my-cuts --from nor-2012";

/// Writes the files and prints the next steps.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let from = args.from.as_deref().map(|from| LabFiles::default().find(from)).transpose()?;
    let stem = || from.as_ref()?.file_stem()?.to_str().map(str::to_owned);
    let name = args.name.clone().or_else(stem).unwrap_or_default();
    let written = match &from {
        Some(from) => copy_experiment(&args.experiments, &name, from),
        None => new_experiment(&args.experiments, &name),
    };
    let paths = written.map_err(|error| {
        let hint = match &error {
            NewError::Name(name) => {
                format!("use small letters, digits and dashes: {}", valid_name(name))
            }
            NewError::There(_) => "choose another name, or change that file".to_owned(),
            NewError::Write { error, .. } if error.kind() == ErrorKind::InvalidFilename => {
                "choose a shorter name".to_owned()
            }
            NewError::Write { .. } => "--experiments names another folder".to_owned(),
            NewError::From(faults) => return bad_input(faults.clone()),
        };
        Failure::new(Exit::BadInput, error.to_string()).hint(hint)
    })?;
    for path in &paths {
        output::line(&path.display().to_string())?;
    }
    output::note(&format!(
        "it already runs: udccp lab run {name} --quick\n\
         then change it from top to bottom: `udccp guide add-your-paper`"
    ));
    Ok(Exit::Success)
}

/// The nearest valid name.
fn valid_name(name: &str) -> String {
    let small = name.to_ascii_lowercase();
    let small = small.strip_suffix(".toml").unwrap_or(&small);
    let tame: String =
        small.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    match tame.trim_matches('-') {
        "" => "smith-2026".to_owned(),
        tame => tame.to_owned(),
    }
}
