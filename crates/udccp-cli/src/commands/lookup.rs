//! Finds scenarios and experiments: first the user's files, then those built into the program.

use std::path::{Path, PathBuf};

use udccp_lab::{library, suggest};

use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Default folder of experiments.
pub(crate) const EXPERIMENTS: &str = "experiments";
/// Folder of scenarios.
const SCENARIOS: &str = "scenarios";

/// The file of a scenario that was given by path or name.
pub(crate) fn scenario(given: &Path) -> CliResult<PathBuf> {
    if given.is_file() {
        return Ok(given.to_owned());
    }
    if let Some(name) = plain(given) {
        for folder in [SCENARIOS, EXPERIMENTS] {
            if let Some(path) = by_name(folder, name) {
                return Ok(path);
            }
        }
        return Err(unknown(name));
    }
    Ok(by_path(given))
}

/// The given path if it exists, otherwise the built-in file with that path
/// (scenarios/two-flows.toml).
pub(crate) fn by_path(given: &Path) -> PathBuf {
    match library::path(given) {
        Some(path) if !given.is_file() => {
            note_built_in(&given.display().to_string());
            path
        }
        _ => given.to_owned(),
    }
}

/// The file of this name in `folder`, on disk or built in. Prints which one is used if it is built
/// in or if both exist.
pub(crate) fn by_name(folder: &str, name: &str) -> Option<PathBuf> {
    let path = Path::new(folder).join(format!("{name}.toml"));
    let built_in = library::text(&path);
    if path.is_file() {
        let own = std::fs::read_to_string(&path).ok();
        if built_in.is_some() && own.as_deref() != built_in {
            output::note(&format!("{name}: {} is used, not the built-in one", path.display()));
        }
        return Some(path);
    }
    built_in?;
    note_built_in(name);
    library::path(&path)
}

fn note_built_in(name: &str) {
    output::note(&format!("{name}: the built-in one is used"));
}

/// The name, unless it looks like a path.
fn plain(given: &Path) -> Option<&str> {
    let name = given.to_str()?;
    (!name.is_empty() && !name.contains(['/', '\\', '.'])).then_some(name)
}

fn unknown(name: &str) -> Failure {
    let mut known = names_in(Path::new(SCENARIOS));
    known.extend(library::scenarios().into_iter().map(str::to_owned));
    known.sort();
    known.dedup();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let message = format!("there is no scenario \"{name}\"");
    Failure::new(Exit::BadInput, message).hint(suggest(name, "choose from", &known))
}

/// The names of a folder's TOML files, sorted; empty if it cannot be read.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml"));
    let mut names: Vec<String> =
        paths.filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}
