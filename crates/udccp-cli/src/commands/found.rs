//! Finding scenarios and experiments: one's own files first, then those that come with the program.

use std::path::{Path, PathBuf};

use udccp_lab::{library, suggest};

use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Where experiments are looked for, if no other folder is named.
pub(crate) const EXPERIMENTS: &str = "experiments";
/// Where scenarios are looked for.
const SCENARIOS: &str = "scenarios";

/// The file of a scenario that was given by its path or its name.
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

/// A path, or the built-in file of this path where there is none: scenarios/two-flows.toml.
pub(crate) fn by_path(given: &Path) -> PathBuf {
    match library::path(given) {
        Some(path) if !given.is_file() => {
            tell_built_in(&given.display().to_string());
            path
        }
        _ => given.to_owned(),
    }
}

/// The file of this name in `folder`, here or built in; says which it took where both could be
/// meant, or where it is the built-in one.
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
    tell_built_in(name);
    library::path(&path)
}

fn tell_built_in(name: &str) {
    output::note(&format!("{name}: the built-in one is used"));
}

/// The name, if it is not meant as a path.
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

/// The names of a folder's TOML files, sorted; none where it cannot be read.
pub(crate) fn names_in(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|e| e.path()).filter(|p| p.extension().is_some_and(|e| e == "toml"));
    let mut names: Vec<String> =
        paths.filter_map(|p| Some(p.file_stem()?.to_str()?.to_owned())).collect();
    names.sort();
    names
}
