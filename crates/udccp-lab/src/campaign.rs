//! Running the tasks that a store does not have yet, on several cores.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;

use crate::plan::Task;
use crate::record::Record;
use crate::run::{self, RunError, RunOptions};
use crate::store::{Packed, Store, StoreError};

/// Why a campaign stopped.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Runs failed; all others are done.
    #[error("{} of the runs failed; {}: {}", .0.len(), .0[0].label, .0[0].error)]
    Runs(Vec<FailedRun>),
    /// The worker threads could not be started.
    #[error("cannot start {jobs} worker threads: {why}")]
    Workers {
        /// How many were asked for.
        jobs: usize,
        /// Why not.
        why: String,
    },
}

/// A run that did not end.
#[derive(Debug)]
pub struct FailedRun {
    /// Which run, in words.
    pub label: String,
    /// Why.
    pub error: RunError,
}

/// How a campaign begins.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// Runs asked for, those counted once that several experiments share.
    pub total: usize,
    /// How many of them the store had already.
    pub stored: usize,
    /// Processor seconds that the others are expected to take.
    pub expected_s: f64,
    /// Whether another campaign is at work on this store; the two share the runs.
    pub shared: bool,
}

/// Who is told how a campaign goes. Called from worker threads.
pub trait Progress: Sync {
    /// The campaign begins.
    fn begin(&self, start: Start);

    /// A run is done and stored. `expected_s` is what it had been expected to take.
    fn done(&self, task: &Task, record: &Record, expected_s: f64);

    /// A run was stored by another campaign meanwhile.
    fn found(&self, expected_s: f64);
}

/// What a campaign did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Runs done now.
    pub ran: usize,
    /// Runs that the store had.
    pub stored: usize,
    /// Runs that another campaign on the same store did meanwhile.
    pub found: usize,
}

/// Runs every task that the store does not have, on `jobs` worker threads, and stores each as it
/// ends. The results are the same for any number of workers and in any order.
///
/// The longest tasks come first, so that the last one does not keep one core busy alone. Where
/// another campaign is at work on the same store, this one begins at the other end.
///
/// # Errors
/// A failure of the store stops it; failed runs are told at the end. What was finished is stored.
pub fn campaign(
    tasks: &[Task],
    store: Store,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<Outcome, CampaignError> {
    let mark = store.mark()?;
    let costs = store.costs()?;
    let mut keys = BTreeSet::new();
    let mut open: Vec<(&Task, f64)> = Vec::new();
    for task in tasks {
        // Two variants, or two experiments, may be the same run at some point: it is done once.
        if keys.insert(&task.key) && !store.has(&task.key)? {
            open.push((task, costs.expected_s(task)));
        }
    }
    open.sort_by(|a, b| b.1.total_cmp(&a.1));
    if mark.is_none() {
        open.reverse();
    }
    let stored = keys.len() - open.len();
    let expected_s = open.iter().map(|(_, s)| s).sum();
    progress.begin(Start { total: keys.len(), stored, expected_s, shared: mark.is_none() });
    let workers = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| CampaignError::Workers { jobs, why: e.to_string() })?;
    let work = Work {
        store: Mutex::new(store),
        progress,
        ran: AtomicUsize::new(0),
        found: AtomicUsize::new(0),
        failed: Mutex::new(Vec::new()),
    };
    // A bridge hands tasks out one by one in their order; halving a list would not.
    workers.install(|| {
        open.iter().par_bridge().try_for_each(|(task, expected_s)| work.finish(task, *expected_s))
    })?;
    let failed = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        return Err(CampaignError::Runs(failed));
    }
    let (ran, found) = (work.ran.into_inner(), work.found.into_inner());
    Ok(Outcome { ran, stored, found })
}

/// What the workers share.
struct Work<'a> {
    store: Mutex<Store>,
    progress: &'a dyn Progress,
    ran: AtomicUsize,
    found: AtomicUsize,
    failed: Mutex<Vec<FailedRun>>,
}

impl Work<'_> {
    fn finish(&self, task: &Task, expected_s: f64) -> Result<(), StoreError> {
        // A worker that panicked holds no half-written row: each is one transaction.
        let store = || self.store.lock().unwrap_or_else(PoisonError::into_inner);
        if store().has(&task.key)? {
            self.found.fetch_add(1, Ordering::Relaxed);
            self.progress.found(expected_s);
            return Ok(());
        }
        let options = RunOptions::default();
        let record = match run::run(&task.experiment, &task.scenario, task.seed, options) {
            Ok(record) => record,
            Err(error) => {
                let failed = FailedRun { label: label(task), error };
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
                return Ok(());
            }
        };
        let packed = Packed::of(task, &record).map_err(|e| store().damaged(&task.key, e))?;
        store().put_packed(task, &record, &packed)?;
        self.ran.fetch_add(1, Ordering::Relaxed);
        self.progress.done(task, &record, expected_s);
        Ok(())
    }
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
