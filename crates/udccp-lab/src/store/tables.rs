//! The database schema, and upgrades from older versions.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::codec;
use super::error::StoreError;
use crate::plan::digest;

/// Version of the schema, in the database's `user_version`.
pub(super) const TABLES: i64 = 3;

/// Version 3: results of several backends. `task` is the key of the task, if it differs from the
/// result's key.
const CREATE: &str = "
CREATE TABLE records (
    key TEXT NOT NULL UNIQUE,
    version TEXT NOT NULL,
    seed INTEGER NOT NULL,
    scenario TEXT NOT NULL,
    cpu_s REAL NOT NULL,
    work REAL NOT NULL,
    record BLOB NOT NULL,
    backend TEXT NOT NULL DEFAULT 'sim',
    task TEXT
);
CREATE INDEX records_by_scenario ON records (scenario, backend, cpu_s);
CREATE INDEX records_by_task ON records (task) WHERE task IS NOT NULL;
CREATE TABLE scenarios (
    hash TEXT NOT NULL PRIMARY KEY,
    scenario BLOB NOT NULL
) WITHOUT ROWID;
PRAGMA user_version = 3;";

/// Version 2 had only the simulator.
const FROM_2: &str = "
ALTER TABLE records ADD COLUMN backend TEXT NOT NULL DEFAULT 'sim';
ALTER TABLE records ADD COLUMN task TEXT;
DROP INDEX records_by_scenario;
CREATE INDEX records_by_scenario ON records (scenario, backend, cpu_s);
CREATE INDEX records_by_task ON records (task) WHERE task IS NOT NULL;
PRAGMA user_version = 3;";

/// Creates the tables, or upgrades those of an older program.
///
/// # Errors
/// The file is not a database or has a newer version; it is not changed.
pub(super) fn prepare(database: &Connection, path: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::database(path, error);
    database.pragma_update(None, "synchronous", "normal").map_err(failed)?;
    if version(database).map_err(failed)? == TABLES {
        return Ok(());
    }
    // If two programs get here at the same time, the second waits and finds the work done.
    let transaction = Transaction::new_unchecked(database, TransactionBehavior::Immediate);
    let transaction = transaction.map_err(failed)?;
    match version(&transaction).map_err(failed)? {
        0 => transaction.execute_batch(CREATE).map_err(failed)?,
        1 => upgrade(&transaction).map_err(failed)?,
        2 => transaction.execute_batch(FROM_2).map_err(failed)?,
        TABLES => {}
        found => return Err(StoreError::Newer { path: path.to_owned(), found, known: TABLES }),
    }
    transaction.commit().map_err(failed)
}

/// Whether the file is empty.
pub(super) fn is_absent(database: &Connection) -> rusqlite::Result<bool> {
    let tables: i64 =
        database.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    Ok(tables == 0)
}

fn version(database: &Connection) -> rusqlite::Result<i64> {
    database.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Version 1 stored each run as text in one table, `runs`.
fn upgrade(database: &Transaction<'_>) -> rusqlite::Result<()> {
    database.execute_batch(CREATE)?;
    let mut old = database.prepare("SELECT key, version, seed, scenario, record FROM runs")?;
    let mut rows = old.query([])?;
    while let Some(row) = rows.next()? {
        let texts: [String; 4] = [row.get(0)?, row.get(1)?, row.get(3)?, row.get(4)?];
        let [key, version, scenario, record] = texts;
        let seed: i64 = row.get(2)?;
        let value: serde_json::Value = serde_json::from_str(&record).unwrap_or_default();
        let cpu_s = value["cost"]["cpu_s"].as_f64().unwrap_or(0.0);
        let pack = |text: &str| {
            codec::pack_text(text).map_err(|e| rusqlite::Error::ToSqlConversionFailure(e.into()))
        };
        let hash = digest(&scenario);
        database.execute(
            "INSERT OR IGNORE INTO scenarios (hash, scenario) VALUES (?1, ?2)",
            params![hash, pack(&scenario)?],
        )?;
        database.execute(
            "INSERT INTO records (key, version, seed, scenario, cpu_s, work, record)
             VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
            params![key, version, seed, hash, cpu_s, pack(&record)?],
        )?;
    }
    database.execute_batch("DROP TABLE runs;")
}
