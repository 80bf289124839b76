//! Results on disk: an embedded database, one row a run, each written in a transaction of its own.
//! Killing the program at any moment loses no finished run.

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
/// Several programs may use one file at once; a write waits up to half a minute for another's.
#[derive(Debug)]
pub struct Store {
    path: PathBuf,
    database: Connection,
}

/// What past runs took, to tell how long the next take.
#[derive(Clone, Debug, Default)]
pub struct Costs {
    /// Processor seconds of a run of a scenario, by the scenario's hash.
    scenarios: BTreeMap<String, f64>,
    /// Processor seconds of a unit of work.
    speed: Option<f64>,
}

impl Costs {
    /// Expected processor time of a task in seconds: the mean of what the same scenario took with
    /// other seeds, or else its size times the speed of the runs in the store.
    pub fn expected_s(&self, task: &Task) -> f64 {
        let known = self.scenarios.get(&task.scenario_hash()).copied();
        let speed = self.speed.unwrap_or(expected::SECONDS_PER_PACKET);
        known.unwrap_or_else(|| expected::packets(&task.scenario) * speed)
    }
}

/// A result ready to be written: packing takes longer than writing, and needs no store.
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
    /// A record that has no JSON form.
    pub(crate) fn of(task: &Task, record: &Record) -> std::io::Result<Self> {
        let text = task.scenario_text();
        let scenario = codec::pack_text(&text)?;
        Ok(Self { hash: digest(&text), scenario, record: codec::pack(record)? })
    }
}

/// Whether everything that was written is in the file itself.
fn is_at_rest(path: &Path) -> bool {
    let mut log = path.to_owned().into_os_string();
    log.push("-wal");
    std::fs::metadata(log).map_or(true, |log| log.len() == 0)
}

/// The address under which the database takes a file for one that nobody writes.
fn uri_at_rest(path: &Path) -> String {
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
    /// Opens a store, and makes it where there is none.
    ///
    /// # Errors
    /// A folder or file that cannot be written, a file that is no store, or one of a newer program.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder)
                .map_err(|error| StoreError::Folder { path: path.to_owned(), error })?;
        }
        let store = Self::connect(path, OpenFlags::SQLITE_OPEN_CREATE)?;
        store.prepare()?;
        Ok(store)
    }

    /// Opens a store that is there; where there is none, none is made. One in a folder that cannot
    /// be written, such as an archive, can be read.
    ///
    /// # Errors
    /// No file or an empty one, a file that is no store, or one of a newer program.
    pub fn open_existing(path: &Path) -> Result<Self, StoreError> {
        let missing = || StoreError::Missing { path: path.to_owned() };
        if !path.exists() {
            return Err(missing());
        }
        let store = Self::connect(path, OpenFlags::empty())?;
        match tables::is_absent(&store.database) {
            Ok(true) => return Err(missing()),
            Ok(false) => store.prepare()?,
            Err(e) if e.sqlite_error_code() == Some(ErrorCode::CannotOpen) && is_at_rest(path) => {
                return Self::connect_at_rest(path);
            }
            Err(e) => return Err(store.error(e)),
        }
        Ok(store)
    }

    /// Opens a store beside which the database cannot make the files by which those who read and
    /// those who write keep out of each other's way. Without them nobody writes here.
    fn connect_at_rest(path: &Path) -> Result<Self, StoreError> {
        let database = |error| StoreError::database(path, error);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri_at_rest(path), flags).map_err(database)?;
        let store = Self { path: path.to_owned(), database: connection };
        if tables::is_absent(&store.database).map_err(|e| store.error(e))? {
            return Err(StoreError::Missing { path: path.to_owned() });
        }
        tables::prepare(&store.database, path)?;
        Ok(store)
    }

    fn connect(path: &Path, further: OpenFlags) -> Result<Self, StoreError> {
        let database = |error| StoreError::database(path, error);
        // As the library opens a file by itself, but for making it.
        let flags = OpenFlags::default().difference(OpenFlags::SQLITE_OPEN_CREATE).union(further);
        let connection = Connection::open_with_flags(path, flags).map_err(database)?;
        connection.busy_timeout(Duration::from_secs(30)).map_err(database)?;
        Ok(Self { path: path.to_owned(), database: connection })
    }

    fn prepare(&self) -> Result<(), StoreError> {
        match self.database.pragma_update(None, "journal_mode", "wal") {
            // Another program opens the same new file and is at this line.
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

    /// Marks this store as being filled, until the returned file is dropped or the process ends in
    /// whatever way. `None` where another process has done so.
    ///
    /// # Errors
    /// The mark, a file beside the store, cannot be made.
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

    /// Keeps a result of the simulator, if the store does not have it yet.
    ///
    /// # Errors
    /// The database cannot be written.
    pub fn put(&self, task: &Task, record: &Record) -> Result<(), StoreError> {
        let packed = Packed::of(task, record).map_err(|e| self.damaged(&task.key, e))?;
        self.put_packed(&task.key, task, record, &packed)
    }

    /// [`Store::put`] under a key, with the packing done.
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

    /// The result of a task, if it was run.
    ///
    /// # Errors
    /// The database cannot be read, or the record in it does not read.
    pub fn get(&self, key: &str) -> Result<Option<Record>, StoreError> {
        let packed: Option<Vec<u8>> = self
            .database
            .prepare_cached("SELECT record FROM records WHERE key = ?1")
            .and_then(|mut s| s.query_row([key], |row| row.get(0)).optional())
            .map_err(|e| self.error(e))?;
        packed.map(|p| codec::unpack(&p).map_err(|e| self.damaged(key, e))).transpose()
    }

    /// The results of a task by other backends than the simulator, the newest first.
    ///
    /// # Errors
    /// The database cannot be read, or a record in it does not read.
    pub(crate) fn by_others(&self, task: &str) -> Result<Vec<Record>, StoreError> {
        let read = || -> rusqlite::Result<Vec<Vec<u8>>> {
            self.database
                .prepare_cached("SELECT record FROM records WHERE task = ?1 ORDER BY rowid DESC")?
                .query_map([task], |row| row.get(0))?
                .collect()
        };
        let packed = read().map_err(|e| self.error(e))?;
        packed.iter().map(|p| codec::unpack(p).map_err(|e| self.damaged(task, e))).collect()
    }

    /// Which other backends than the simulator did a task.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn others_of(&self, task: &str) -> Result<Vec<String>, StoreError> {
        let read = || -> rusqlite::Result<Vec<String>> {
            self.database
                .prepare_cached("SELECT DISTINCT backend FROM records WHERE task = ?1")?
                .query_map([task], |row| row.get(0))?
                .collect()
        };
        read().map_err(|e| self.error(e))
    }

    /// How many results of this version of the program each backend has.
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

    /// Whether a task was run.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn has(&self, key: &str) -> Result<bool, StoreError> {
        self.database
            .prepare_cached("SELECT 1 FROM records WHERE key = ?1")
            .and_then(|mut s| s.exists([key]))
            .map_err(|e| self.error(e))
    }

    /// How many results there are: of this version of the program, and of others.
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

    /// What the runs of a backend in the store took, those of other versions of the program too.
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

    /// Deletes the results of other versions of the program, which no report uses, and returns how
    /// many there were.
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
