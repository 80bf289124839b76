//! `udccp lab new`: a paper to be added.

use std::path::PathBuf;

use udccp_lab::{NewError, new_experiment};

use crate::exit::{Exit, Failure, Outcome};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Name of the experiment: small letters, digits and dashes, such as bhatti-2008
    #[arg(value_name = "PAPER")]
    name: String,
    /// Folder of experiment files
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
}

/// Writes the files and says what comes next.
pub(super) fn run(args: &Args) -> Outcome<Exit> {
    let paths = new_experiment(&args.experiments, &args.name).map_err(|error| {
        let hint = match &error {
            NewError::Name(name) => format!("use small letters, digits and dashes: {}", tame(name)),
            NewError::There(_) => "choose another name, or change that file".to_owned(),
            NewError::Write { .. } => "--experiments names another folder".to_owned(),
        };
        Failure::new(Exit::BadInput, error.to_string()).hint(hint)
    })?;
    for path in &paths {
        output::line(&path.display().to_string())?;
    }
    let name = &args.name;
    output::note(&format!(
        "it runs as it stands: udccp lab run {name} --quick\n\
         then change it from top to bottom: docs/guides/add-your-paper.md"
    ));
    Ok(Exit::Success)
}

/// The nearest name that would do.
fn tame(name: &str) -> String {
    let small = name.to_ascii_lowercase();
    let small = small.strip_suffix(".toml").unwrap_or(&small);
    let tame: String =
        small.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
    match tame.trim_matches('-') {
        "" => "smith-2026".to_owned(),
        tame => tame.to_owned(),
    }
}
