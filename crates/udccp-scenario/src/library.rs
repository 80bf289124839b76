//! Files that come with the program: experiments, the published numbers that they refer to, and
//! scenarios. They have paths like files of one's own, below [`ROOT`].

use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

/// The folder that built-in files seem to be in. No shell makes such a folder by chance.
pub const ROOT: &str = "<built-in>";

/// What comes with the program. The build script has it read again when a file is new.
static FOLDERS: [(&str, Dir<'_>); 3] = [
    ("experiments", include_dir!("$CARGO_MANIFEST_DIR/../../experiments")),
    ("reference", include_dir!("$CARGO_MANIFEST_DIR/../../reference")),
    ("scenarios", include_dir!("$CARGO_MANIFEST_DIR/../../scenarios")),
];

/// Reads a text: from the program for a path below [`ROOT`], from the disk otherwise. Spreadsheets
/// begin a file with a byte order mark, which is no part of its first word.
///
/// # Errors
/// A file that is not there, cannot be read, or is not text.
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

/// The text of a built-in file by its path in a clone, such as `scenarios/two-flows.toml`.
pub fn text(path: &Path) -> Option<&'static str> {
    FOLDERS.iter().find_map(|(name, folder)| {
        let file = folder.get_file(path.strip_prefix(name).ok()?)?;
        file.contents_utf8()
    })
}

/// The path below [`ROOT`] of a built-in file, by its path in a clone.
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
