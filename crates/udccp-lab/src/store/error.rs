//! The errors of a store.

use std::path::{Path, PathBuf};

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the store cannot be created.
    #[error("cannot create the folder of {path}: {error}")]
    Folder {
        /// The store.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: std::io::Error,
    },
    /// The store does not exist.
    #[error("there is no result store {path}")]
    Missing {
        /// Its expected path.
        path: PathBuf,
    },
    /// The file that marks the store as in use cannot be created.
    #[error("cannot write {path} next to the result store: {error}")]
    Mark {
        /// The file.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: std::io::Error,
    },
    /// An error of the database.
    #[error("result store {path}: {error}")]
    Database {
        /// The store.
        path: PathBuf,
        /// The database's error.
        #[source]
        error: rusqlite::Error,
    },
    /// The file was written by a newer program.
    #[error("result store {path} has version {found}, this program reads up to version {known}")]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
        /// The latest version that this program reads.
        known: i64,
    },
    /// A stored record cannot be read.
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

    /// Whether the disk failed, for example because it is full, and not the store.
    pub fn is_of_the_disk(&self) -> bool {
        use rusqlite::ErrorCode::{DiskFull, SystemIoFailure};
        let Self::Database { error, .. } = self else { return false };
        matches!(error.sqlite_error_code(), Some(DiskFull | SystemIoFailure))
    }

    /// Whether a needed file or folder is not writable.
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
    fn full_disk_is_distinguished_from_an_invalid_store() {
        let of = |code| {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            StoreError::database(Path::new("lab.sqlite"), error).is_of_the_disk()
        };
        assert!(of(ffi::SQLITE_FULL) && of(ffi::SQLITE_IOERR_SHMSIZE));
        assert!(!of(ffi::SQLITE_NOTADB));
    }
}
