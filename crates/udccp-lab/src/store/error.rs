//! Why a store cannot be used.

use std::path::{Path, PathBuf};

use super::tables::TABLES;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the store cannot be made.
    #[error("cannot create the folder of {path}: {error}")]
    Folder {
        /// The store.
        path: PathBuf,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
    /// There is none to read from.
    #[error("there is no result store {path}")]
    Missing {
        /// Where one was looked for.
        path: PathBuf,
    },
    /// The file that marks the store as in use cannot be made.
    #[error("cannot write {path} next to the result store: {error}")]
    Mark {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
    /// The database does not work.
    #[error("result store {path}: {error}")]
    Database {
        /// The store.
        path: PathBuf,
        /// What it said.
        #[source]
        error: rusqlite::Error,
    },
    /// The file was written by a newer program.
    #[error("result store {path} has version {found}, this program reads up to version {TABLES}")]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A stored record does not read.
    #[error("result store {path}, run {key}: {why}")]
    Damaged {
        /// The store.
        path: PathBuf,
        /// The run.
        key: String,
        /// What is wrong.
        why: String,
    },
}

impl StoreError {
    pub(super) fn database(path: &Path, error: rusqlite::Error) -> Self {
        Self::Database { path: path.to_owned(), error }
    }

    /// Whether the disk failed, as it does when it is full, and not the store.
    pub fn is_of_the_disk(&self) -> bool {
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        let Self::Database { error, .. } = self else { return false };
        matches!(error.sqlite_error_code(), Some(DiskFull | SystemIoFailure))
    }

    /// Whether the file or its folder cannot be written, and that was needed.
    pub fn is_of_the_place(&self) -> bool {
        use rusqlite::ErrorCode::{CannotOpen, ReadOnly};
        let Self::Database { error, .. } = self else { return false };
        matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly))
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn a_full_disk_is_told_from_a_file_that_is_no_store() {
        let of = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            StoreError::database(Path::new("lab.sqlite"), error).is_of_the_disk()
        };
        assert!(of(ffi::SQLITE_FULL) && of(ffi::SQLITE_IOERR_SHMSIZE));
        assert!(!of(ffi::SQLITE_NOTADB));
    }
}
