//! Built-in files: experiments, the published values that they refer to, and scenarios. They have
//! paths like other files, below [`ROOT`].

use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

/// The folder of built-in files. No shell would create such a folder by accident.
pub const ROOT: &str = "<built-in>";

/// The built-in folders. The build script reads them again when there is a new file.
static FOLDERS: [(&str, Dir<'_>); 3] = [
    ("experiments", include_dir!("$CARGO_MANIFEST_DIR/../../experiments")),
    ("reference", include_dir!("$CARGO_MANIFEST_DIR/../../reference")),
    ("scenarios", include_dir!("$CARGO_MANIFEST_DIR/../../scenarios")),
];

/// Reads a text: from the program if the path is below [`ROOT`], otherwise from the disk. A byte
/// order mark at the beginning, which spreadsheets write, is removed.
///
/// # Errors
/// The file does not exist, cannot be read, or is not text.
pub fn read(path: &Path) -> io::Result<String> {
    match path.strip_prefix(ROOT) {
        Err(_) => match std::fs::read_to_string(path) {
            Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => {
                Err(io::Error::new(e.kind(), "it is not text in UTF-8"))
            }
            Err(e) => Err(e),
        },
        Ok(inside) => text(inside)
            .map(str::to_owned)
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "it does not come with udccp")),
    }
}

/// The text of a built-in file, by its path in a clone, such as `scenarios/two-flows.toml`; `None`
/// if there is none.
pub fn text(path: &Path) -> Option<&'static str> {
    FOLDERS.iter().find_map(|(name, folder)| {
        let file = folder.get_file(path.strip_prefix(name).ok()?)?;
        file.contents_utf8()
    })
}

/// The path below [`ROOT`] of a built-in file, by its path in a clone; `None` if there is none.
pub fn path(path: &Path) -> Option<PathBuf> {
    text(path).map(|_| Path::new(ROOT).join(path))
}

/// Whether a path is that of a built-in file.
pub fn is_built_in(path: &Path) -> bool {
    path.starts_with(ROOT)
}

/// The names of the built-in experiments, sorted.
pub fn experiments() -> Vec<&'static str> {
    names("experiments")
}

/// The names of the built-in scenarios, sorted.
pub fn scenarios() -> Vec<&'static str> {
    names("scenarios")
}

fn names(wanted: &str) -> Vec<&'static str> {
    let of = FOLDERS.iter().filter(|(name, _)| *name == wanted);
    let files = of.flat_map(|(_, folder)| folder.files());
    let toml =
        files.map(include_dir::File::path).filter(|p| p.extension().is_some_and(|e| e == "toml"));
    let mut names: Vec<&str> = toml.filter_map(|p| p.file_stem()?.to_str()).collect();
    names.sort_unstable();
    names
}
