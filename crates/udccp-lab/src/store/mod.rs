//! Stores results in an embedded database with one row per run, each written in a separate
//! transaction. Killing the program at any time loses no finished run.

mod codec;
mod error;
mod tables;

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension, params};
use udccp_scenario::Record;
use udccp_scenario::VERSION;
use udccp_scenario::backend_rank;

use crate::expected;
use crate::plan::{Task, digest};

pub use error::StoreError;

/// An open store.
///
/// Several programs can use one file at the same time; a write waits up to half a minute for
/// another.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: Connection,
}

/// Durations of past runs, to predict those of new runs.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// Processor seconds per run, by the scenario's hash.
    scenarios: BTreeMap<String, f64>,
    /// Processor seconds per unit of work.
    speed: Option<f64>,
}

impl Costs {
    /// Expected processor time of a task in seconds: the mean of runs of the same scenario with
    /// other seeds, otherwise its size times the speed of the stored runs.
    pub fn expected_s(&self, task: &Task) -> f64 {
        let known = self.scenarios.get(&task.scenario_hash()).copied();
        let speed = self.speed.unwrap_or(expected::SECONDS_PER_PACKET);
        known.unwrap_or_else(|| expected::packets(&task.scenario) * speed)
    }
}

/// A result ready to be written. Packing takes longer than writing, and needs no store.
#[derive(Debug)]
pub(crate) struct Packed {
    hash: String,
    scenario: Vec<u8>,
    record: Vec<u8>,
}

impl Packed {
    /// Packs a result.
    ///
    /// # Errors
    /// The record has no JSON form.
    pub(crate) fn of(task: &Task, record: &Record) -> std::io::Result<Self> {
        let text = task.scenario_text();
        let scenario = codec::pack_text(&text)?;
        Ok(Self { hash: digest(&text), scenario, record: codec::pack(record)? })
    }
}

/// Whether all data are in the file itself, with nothing left in the write-ahead log.
fn is_checkpointed(path: &Path) -> bool {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// The URI with which the database treats a file as immutable.
fn immutable_uri(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri + "?immutable=1"
}

impl Store {
    /// Opens a store, and creates it if it does not exist.
    ///
    /// # Errors
    /// The folder or file is not writable, or the file is not a store or has a newer version.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|error| StoreError::Folder { path: path.to_owned(), error })?;
        }
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        store.prepare()?;
        Ok(store)
    }

    /// Opens an existing store; does not create one. A store in a read-only folder, such as an
    /// archive, can be read.
    ///
    /// # Errors
    /// The file is missing, empty, not a store, or has a newer version.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        let missing = || StoreError::Missing { path: path.to_owned() };
        if !path.exists() {
            return Err(missing());
        }
        let store = Self::connect(path, OpenFlags::empty())?;
        match tables::is_absent(&store.database) {
            Ok(true) => return Err(missing()),
            Ok(false) => store.prepare()?,
            Err(e)
                if e.sqlite_error_code() == Some(ErrorCode::CannotOpen)
                    && is_checkpointed(path) =>
            {
                return Self::connect_at_rest(path);
            }
            Err(e) => return Err(store.error(e)),
        }
        Ok(store)
    }

    /// Opens a store in a folder where the database cannot create its lock and log files. Without
    /// those, no other program can write to the store.
    fn connect_at_rest(path: &Path) -> Result<Self, StoreError> {
        let database = |error| StoreError::database(path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection =
            Connection::open_with_flags(immutable_uri(path), flags).map_err(database)?;
        let store = Self { path: path.to_owned(), database: connection };
        if tables::is_absent(&store.database).map_err(|e| store.error(e))? {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        tables::prepare(&store.database, path)?;
        Ok(store)
    }

    fn connect(path: &Path, further: OpenFlags) -> Result<Self, StoreError> {
        let database = |error| StoreError::database(path, error);
        // The library's default flags, except for creating files.
        let flags = OpenFlags::default().difference(OpenFlags::SQLITE_OPEN_CREATE).union(further);
        let connection = Connection::open_with_flags(path, flags).map_err(database)?;
        connection.busy_timeout(Duration::from_secs(30)).map_err(database)?;
        Ok(Self { path: path.to_owned(), database: connection })
    }

    fn prepare(&self) -> Result<(), StoreError> {
        match self.database.pragma_update(None, "journal_mode", "wal") {
            // Another program is opening the same new file at this moment.
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) => {}
            other => other.map_err(|e| self.error(e))?,
        }
        tables::prepare(&self.database, &self.path)
    }

    fn error(&self, error: rusqlite::Error) -> StoreError {
        StoreError::database(&self.path, error)
    }

    pub(crate) fn damaged(&self, key: &str, error: impl std::error::Error) -> StoreError {
        let (path, key) = (self.path.clone(), key.to_owned());
        StoreError::Damaged { path, key, why: error.to_string() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Marks this store as being filled, until the returned file is dropped or the process ends.
    /// `None` if another process has marked it.
    ///
    /// # Errors
    /// The marker file next to the store cannot be created.
    pub fn mark(&self) -> Result<Option<File>, StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        let path = PathBuf::from(name);
        let cannot = |error| StoreError::Mark { path: path.clone(), error };
        let file =
            File::options().create(true).truncate(false).write(true).open(&path).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(cannot(error)),
        }
    }

    /// Stores a result of the simulator, unless the store has it already.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn put(&self, task: &Task, record: &Record) -> Result<(), StoreError> {
        let packed = Packed::of(task, record).map_err(|e| self.damaged(&task.key, e))?;
        self.put_packed(&task.key, task, record, &packed)
    }

    /// [`Store::put`] with a key and a packed result.
    pub(crate) fn put_packed(
        &self,
        key: &str,
        task: &Task,
        record: &Record,
        packed: &Packed,
    ) -> Result<(), StoreError> {
        let Packed { hash, scenario, record: bytes } = packed;
        let work = expected::packets(&task.scenario);
        let of_task = (key != task.key).then_some(&task.key);
        let write = || -> rusqlite::Result<()> {
            let transaction = self.database.unchecked_transaction()?;
            transaction
                .prepare_cached("INSERT OR IGNORE INTO scenarios (hash, scenario) VALUES (?1, ?2)")?
                .execute(params![hash, scenario])?;
            transaction
                .prepare_cached(
                    "INSERT OR IGNORE INTO records
                     (key, version, seed, scenario, cpu_s, work, record, backend, task)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
                )?
                .execute(params![
                    key,
                    record.version,
                    record.seed as i64,
                    hash,
                    record.cost.cpu_s,
                    work,
                    bytes,
                    record.backend,
                    of_task
                ])?;
            transaction.commit()
        };
        write().map_err(|e| self.error(e))
    }

    /// The result of a task, if it has been run.
    ///
    /// # Errors
    /// The database or the record cannot be read.
    pub fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let packed: Option<Vec<u8>> = self
            .database
            .prepare_cached("SELECT record FROM records WHERE key = ?1")
            .and_then(|mut s| s.query_row([key], |row| row.get(0)).optional())
            .map_err(|e| self.error(e))?;
        packed.map(|p| codec::unpack(&p).map_err(|e| self.damaged(key, e))).transpose()
    }

    /// A task's results from backends other than the simulator, newest first.
    ///
    /// # Errors
    /// The database or a record cannot be read.
    pub(crate) fn results_of_other_backends(&self, task: &str) -> Result<Vec<Record>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Vec<u8>>> {
            self.database
                .prepare_cached("SELECT record FROM records WHERE task = ?1 ORDER BY rowid DESC")?
                .query_map([task], |row| row.get(0))?
                .collect()
        };
        let packed = read().map_err(|e| self.error(e))?;
        packed.iter().map(|p| codec::unpack(p).map_err(|e| self.damaged(task, e))).collect()
    }

    /// The backends other than the simulator that have run a task.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn other_backends_of(&self, task: &str) -> Result<Vec<String>, StoreError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            self.database
                .prepare_cached("SELECT DISTINCT backend FROM records WHERE task = ?1")?
                .query_map([task], |row| row.get(0))?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// The number of results of each backend with this version of the program.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn count_by_backend(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let read = || -> rusqlite::Result<Vec<(String, u64)>> {
            let query = "SELECT backend, count(*) FROM records WHERE version = ?1 GROUP BY backend";
            self.database
                .prepare(query)?
                .query_map([VERSION], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? as u64)))?
                .collect()
        };
        let mut counts = read().map_err(|e| self.error(e))?;
        counts.sort_by(|a, b| backend_rank(&a.0).cmp(&backend_rank(&b.0)));
        Ok(counts)
    }

    /// Whether a task has been run.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn has(&self, key: &str) -> Result<bool, StoreError> {
        self.database
            .prepare_cached("SELECT 1 FROM records WHERE key = ?1")
            .and_then(|mut s| s.exists([key]))
            .map_err(|e| self.error(e))
    }

    /// The number of results: of this version of the program, and of others.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn count(&self) -> Result<(u64, u64), StoreError> {
        let query = "SELECT count(*), coalesce(sum(version = ?1), 0) FROM records";
        self.database
            .query_row(query, [VERSION], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, i64>(1)?)))
            .map(|(all, ours)| (ours as u64, (all - ours) as u64))
            .map_err(|e| self.error(e))
    }

    /// The durations of a backend's stored runs, including those of other program versions.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn costs(&self, backend: &str) -> Result<Costs, StoreError> {
        let read = || -> rusqlite::Result<Costs> {
            let mut by_scenario = self.database.prepare(
                "SELECT scenario, avg(cpu_s) FROM records WHERE backend = ?1 GROUP BY scenario",
            )?;
            let scenarios = by_scenario
                .query_map([backend], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<_>>()?;
            let speed = self.database.query_row(
                "SELECT sum(cpu_s) / nullif(sum(work), 0) FROM
                 (SELECT cpu_s, work FROM records WHERE work > 0 AND backend = ?1
                  ORDER BY rowid DESC LIMIT 500)",
                [backend],
                |row| row.get(0),
            )?;
            Ok(Costs { scenarios, speed })
        };
        read().map_err(|e| self.error(e))
    }

    /// Deletes the results of other program versions, which no report uses. Returns their number.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn prune(&self) -> Result<usize, StoreError> {
        let delete = || -> rusqlite::Result<usize> {
            let n = self.database.execute("DELETE FROM records WHERE version <> ?1", [VERSION])?;
            self.database.execute(
                "DELETE FROM scenarios WHERE hash NOT IN (SELECT scenario FROM records)",
                [],
            )?;
            self.database.execute_batch("VACUUM")?;
            Ok(n)
        };
        delete().map_err(|e| self.error(e))
    }
}
