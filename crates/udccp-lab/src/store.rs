//! Results on disk: an embedded database, one row a run, each written in a transaction of its own.
//! Killing the program at any moment loses no finished run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OptionalExtension, params};

use crate::plan::Task;
use crate::record::Record;

/// Version of the tables, in the database's `user_version`.
const TABLES: i64 = 1;

/// Why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The folder of the store cannot be made.
    #[error("cannot make the folder of {path}: {error}")]
    Folder {
        /// The store.
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
    #[error("result store {path} has version {found}, this program reads version {TABLES}")]
    Newer {
        /// The store.
        path: PathBuf,
        /// Its version.
        found: i64,
    },
    /// A stored record does not read.
    #[error("result store {path}, run {key}: {error}")]
    Damaged {
        /// The store.
        path: PathBuf,
        /// The run.
        key: String,
        /// What is wrong.
        #[source]
        error: serde_json::Error,
    },
}

/// An open store.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: Connection,
}

impl Store {
    /// Opens a store, and makes it where there is none.
    ///
    /// # Errors
    /// A folder or file that cannot be written, a file that is no store, or one of a newer program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|error| StoreError::Folder { path: path.to_owned(), error })?;
        }
        let database = |error| StoreError::Database { path: path.to_owned(), error };
        let connection = Connection::open(path).map_err(database)?;
        let store = Self { path: path.to_owned(), database: connection };
        store.prepare()?;
        Ok(store)
    }

    fn prepare(&self) -> Result<(), StoreError> {
        let db = &self.database;
        let version = db
            .busy_timeout(Duration::from_secs(30))
            .and_then(|()| db.pragma_update(None, "journal_mode", "wal"))
            .and_then(|()| db.pragma_update(None, "synchronous", "normal"))
            .and_then(|()| db.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0)))
            .map_err(|e| self.error(e))?;
        if version > TABLES {
            return Err(StoreError::Newer { path: self.path.clone(), found: version });
        }
        db.execute_batch(
            "BEGIN;
             CREATE TABLE IF NOT EXISTS runs (
                 key TEXT PRIMARY KEY,
                 version TEXT NOT NULL,
                 seed INTEGER NOT NULL,
                 scenario TEXT NOT NULL,
                 record TEXT NOT NULL
             ) WITHOUT ROWID;
             PRAGMA user_version = 1;
             COMMIT;",
        )
        .map_err(|e| self.error(e))
    }

    fn error(&self, error: rusqlite::Error) -> StoreError {
        StoreError::Database { path: self.path.clone(), error }
    }

    /// Keeps a result. A result with the same key is replaced by its equal.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn put(&self, task: &Task, record: &Record) -> Result<(), StoreError> {
        let damaged =
            |error| StoreError::Damaged { path: self.path.clone(), key: task.key.clone(), error };
        let scenario = serde_json::to_string(&task.scenario).map_err(damaged)?;
        let text = serde_json::to_string(record).map_err(damaged)?;
        self.database
            .execute(
                "INSERT OR REPLACE INTO runs (key, version, seed, scenario, record)
                 VALUES (?1, ?2, ?3, ?4, ?5)",
                params![task.key, record.version, record.seed as i64, scenario, text],
            )
            .map_err(|e| self.error(e))?;
        Ok(())
    }

    /// The result of a task, if it was run.
    ///
    /// # Errors
    /// The database cannot be read, or the record in it does not read.
    pub fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let text: Option<String> = self
            .database
            .prepare_cached("SELECT record FROM runs WHERE key = ?1")
            .and_then(|mut s| s.query_row([key], |row| row.get(0)).optional())
            .map_err(|e| self.error(e))?;
        let damaged =
            |error| StoreError::Damaged { path: self.path.clone(), key: key.to_owned(), error };
        text.map(|text| serde_json::from_str(&text).map_err(damaged)).transpose()
    }

    /// Whether a task was run.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn has(&self, key: &str) -> Result<bool, StoreError> {
        self.database
            .prepare_cached("SELECT 1 FROM runs WHERE key = ?1")
            .and_then(|mut s| s.exists([key]))
            .map_err(|e| self.error(e))
    }

    /// How many results there are, of every version of the program.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn count(&self) -> Result<u64, StoreError> {
        self.database
            .query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0))
            .map(|n| n as u64)
            .map_err(|e| self.error(e))
    }
}
