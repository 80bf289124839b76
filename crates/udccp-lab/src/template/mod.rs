//! A new experiment: a file that runs as it stands, with a hint at every place.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The files, with `PAPER` where the name belongs.
const EXPERIMENT: &str = include_str!("experiment.toml");
const REFERENCE: &str = include_str!("reference.csv");

/// Why an experiment cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is no file name that works everywhere.
    #[error("\"{0}\" is no name of an experiment")]
    Name(String),
    /// There is a file already.
    #[error("{} is there already", .0.display())]
    There(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// Writes the template of an experiment into `folder`, and the stub of its published numbers into
/// the folder `reference` beside it. Returns both paths.
///
/// # Errors
/// A name of other characters than small letters, digits and dashes; files that are there already
/// (nothing is written then) or cannot be written.
pub fn new_experiment(folder: &Path, name: &str) -> Result<[PathBuf; 2], NewError> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || name.starts_with('-') || !name.chars().all(fine) {
        return Err(NewError::Name(name.to_owned()));
    }
    let beside = crate::schema::base_folder(&folder.join("x.toml"));
    let paths = [folder.join(format!("{name}.toml")), beside.join(format!("reference/{name}.csv"))];
    if let Some(there) = paths.iter().find(|p| p.exists()) {
        return Err(NewError::There(there.clone()));
    }
    for (path, text) in paths.iter().zip([EXPERIMENT, REFERENCE]) {
        let cannot = |error| NewError::Write { path: path.clone(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(cannot)?;
        }
        let mut file = File::create_new(path).map_err(cannot)?;
        file.write_all(text.replace("PAPER", name).as_bytes()).map_err(cannot)?;
    }
    Ok(paths)
}
