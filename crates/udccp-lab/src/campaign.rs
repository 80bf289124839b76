//! Running the tasks that a store does not have yet, on several cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use rayon::prelude::*;

use crate::plan::Task;
use crate::record::Record;
use crate::run::{self, RunError, RunOptions};
use crate::store::{Store, StoreError};

/// Why a campaign stopped.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A run failed.
    #[error("{label}: {error}")]
    Run {
        /// Which run, in words.
        label: String,
        /// Why.
        #[source]
        error: RunError,
    },
    /// The worker threads could not be started.
    #[error("cannot start {jobs} worker threads: {why}")]
    Workers {
        /// How many were asked for.
        jobs: usize,
        /// Why not.
        why: String,
    },
}

/// Who is told how a campaign goes. Called from worker threads.
pub trait Progress: Sync {
    /// The campaign begins: runs in all, and how many of them the store had already.
    fn begin(&self, total: usize, stored: usize);

    /// A run is done and stored.
    fn done(&self, task: &Task, record: &Record);
}

/// What a campaign did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Runs done now.
    pub ran: usize,
    /// Runs that the store had.
    pub stored: usize,
}

/// Runs every task that the store does not have, on `jobs` worker threads, and stores each as it
/// ends. The results are the same for any number of workers and in any order.
///
/// # Errors
/// The first failure of a run or of the store; what was finished by then is stored.
pub fn campaign(
    tasks: &[Task],
    store: Store,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Outcome, CampaignError> {
    let mut open: Vec<&Task> = Vec::new();
    for task in tasks {
        // Two variants may be the same run at some point: it is done once.
        if !store.has(&task.key)? && !open.iter().any(|t| t.key == task.key) {
            open.push(task);
        }
    }
    let stored = tasks.len() - open.len();
    progress.begin(tasks.len(), stored);
    let workers = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| CampaignError::Workers { jobs, why: e.to_string() })?;
    let store = Mutex::new(store);
    let stop = AtomicBool::new(false);
    let done: Result<Vec<()>, CampaignError> = workers.install(|| {
        let work = |task: &&Task| {
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
            let result = finish(task, &store, progress);
            stop.fetch_or(result.is_err(), Ordering::Relaxed);
            result
        };
        open.par_iter().with_max_len(1).map(work).collect()
    });
    done?;
    Ok(Outcome { ran: open.len(), stored })
}

fn finish(task: &Task, store: &Mutex<Store>, progress: &dyn Progress) -> Result<(), CampaignError> {
    let record = run::run(&task.experiment, &task.scenario, task.seed, RunOptions::default())
        .map_err(|error| CampaignError::Run { label: label(task), error })?;
    // A worker that panicked holds no half-written row: each is one statement.
    let guard = store.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    guard.put(task, &record)?;
    drop(guard);
    progress.done(task, &record);
    Ok(())
}

/// A task in words: `rtt 25 ms, second tcp/cubic, run 3`.
pub fn label(task: &Task) -> String {
    let mut words: Vec<String> =
        task.point.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    if let Some(case) = &task.case {
        words.insert(0, format!("case {case}"));
    }
    words.extend(task.variant.iter().map(|v| format!("variant {v}")));
    words.push(format!("run {}", task.run));
    words.join(", ")
}
