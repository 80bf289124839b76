//! Finds scenarios and experiments: first the user's files, then those of the package.

use std::path::{Path, PathBuf};

use udccp_scenario::{Diagnostic, Diagnostics, library, suggest};

/// The folders that are searched for names.
const FOLDERS: [&str; 2] = ["scenarios", "experiments"];

/// The file of a scenario or experiment, given by path or by name.
///
/// # Errors
/// No file has this name.
pub(crate) fn file(given: &Path) -> Result<PathBuf, Diagnostics> {
    if given.is_file() {
        return Ok(given.to_owned());
    }
    let name = given.to_str().filter(|name| !name.contains(['/', '\\', '.']));
    let Some(name) = name else { return Ok(library::path(given).unwrap_or(given.to_owned())) };
    for folder in FOLDERS {
        let path = Path::new(folder).join(format!("{name}.toml"));
        if path.is_file() {
            return Ok(path);
        }
        if let Some(path) = library::path(&path) {
            return Ok(path);
        }
    }
    let mut known = library::scenarios();
    known.extend(library::experiments());
    let message = format!("there is no scenario or experiment \"{name}\"");
    Err(Diagnostic::whole(message).hint(suggest(name, "choose from", &known)).into())
}
