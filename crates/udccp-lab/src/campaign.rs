//! Runs the tasks that a store lacks, on several cores.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use udccp_scenario::Record;
use udccp_scenario::{Backend, BackendError, SIM};

use crate::forecast::{self, Forecast, PlannedRun, WorkEstimate};
use crate::plan::{Task, key_of, key_of_invalid};
use crate::store::{Packed, Store, StoreError};

/// Why a campaign failed.
#[derive(Debug, thiserror::Error)]
pub enum CampaignError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Some runs failed; all others are stored.
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

/// A run that failed.
#[derive(Debug)]
pub struct FailedRun {
    /// Which run, in words.
    pub label: String,
    /// Why.
    pub error: BackendError,
}

/// The state of a campaign at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Start {
    /// Runs asked for. Runs that several experiments share are counted once.
    pub total: usize,
    /// How many of them were stored already.
    pub stored: usize,
    /// Processor seconds that the others are expected to take.
    pub expected_s: f64,
    /// Whether another campaign is running on this store; they share the runs.
    pub shared: bool,
}

/// Receives the progress of a campaign. Called from worker threads.
pub trait Progress: Sync {
    /// The campaign starts.
    fn begin(&self, start: Start);

    /// A run is complete and stored.
    fn done(&self, task: &Task, record: &Record, estimate: WorkEstimate);

    /// A run was stored by another campaign, or failed.
    fn found(&self, estimate: WorkEstimate);
}

/// The result of a campaign.
#[derive(Debug, Default)]
pub struct CampaignSummary {
    /// Runs made now.
    pub ran: usize,
    /// Runs that were stored already.
    pub stored: usize,
    /// Runs that another campaign made in the meantime.
    pub found: usize,
    /// Runs whose scenario the backend does not support.
    pub unsupported: Vec<FailedRun>,
    /// Why each run that is not a valid measurement is not.
    pub invalid: Vec<String>,
}

/// Runs every task without a stored result of this backend, on `jobs` worker threads (at most as
/// many as the backend can use), and stores each result at once. The simulator's results do not
/// depend on the number of workers or the order.
///
/// First come a few runs for the forecast, then the longest, so that no core is left alone with a
/// long run at the end. If another campaign is running on the same store, this one starts at the
/// other end.
///
/// # Errors
/// A failure of the store stops the campaign. Failed runs are reported at the end. Completed runs
/// are stored.
pub fn campaign(
    tasks: &[Task],
    store: Store,
    backend: &dyn Backend,
    jobs: usize,
    progress: &dyn Progress,
) -> Result<CampaignSummary, CampaignError> {
    let mark = store.mark()?;
    let costs = store.costs(backend.id())?;
    let mut keys = BTreeSet::new();
    let mut open: Vec<(&Task, PlannedRun)> = Vec::new();
    for task in tasks {
        // Two variants, or two experiments, may contain the same run, which is made once.
        if keys.insert(&task.key) && !store.has(&key_of(task, backend))? {
            let known = backend.expected_s(&task.scenario);
            open.push((task, planned(task, known.unwrap_or_else(|| costs.expected_s(task)))));
        }
    }
    let jobs = backend.jobs().map_or(jobs, |most| jobs.min(most)).max(1);
    forecast::order(&mut open, |(_, planned)| planned);
    if mark.is_none() {
        open.reverse();
    }
    let stored = keys.len() - open.len();
    let expected_s = open.iter().map(|(_, planned)| planned.expected_s).sum();
    progress.begin(Start { total: keys.len(), stored, expected_s, shared: mark.is_none() });
    let workers = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|e| CampaignError::Workers { jobs, why: e.to_string() })?;
    let work = Work {
        store: Mutex::new(store),
        backend,
        progress,
        ran: AtomicUsize::new(0),
        found: AtomicUsize::new(0),
        invalid: Mutex::new(Vec::new()),
        failed: Mutex::new(Vec::new()),
        forecast: Mutex::new(Forecast::new(open.iter().map(|(_, planned)| planned))),
    };
    // A bridge gives out tasks one by one, in order; halving a list would not.
    workers.install(|| {
        open.iter().par_bridge().try_for_each(|(task, planned)| work.finish(task, planned))
    })?;
    let failed = work.failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    let (unsupported, failed): (Vec<_>, Vec<_>) =
        failed.into_iter().partition(|run| run.error.is_of_scenario && backend.id() != SIM);
    if !failed.is_empty() {
        return Err(CampaignError::Runs(failed));
    }
    let (ran, found) = (work.ran.into_inner(), work.found.into_inner());
    let invalid = work.invalid.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(CampaignSummary { ran, stored, found, unsupported, invalid })
}

/// What the workers share.
struct Work<'a> {
    store: Mutex<Store>,
    backend: &'a dyn Backend,
    progress: &'a dyn Progress,
    ran: AtomicUsize,
    found: AtomicUsize,
    invalid: Mutex<Vec<String>>,
    failed: Mutex<Vec<FailedRun>>,
    forecast: Mutex<Forecast>,
}

/// A task in the forecast's form.
fn planned(task: &Task, expected_s: f64) -> PlannedRun {
    let Task { experiment, case, variant, .. } = task;
    let part = |of: &Option<String>| of.clone().unwrap_or_default();
    let kind = format!("{experiment}/{}/{}", part(case), part(variant));
    PlannedRun { kind, scenario: task.scenario_hash(), expected_s }
}

impl Work<'_> {
    /// Updates the forecast and returns the campaign's progress.
    fn update(&self, what: impl FnOnce(&mut Forecast)) -> WorkEstimate {
        let mut forecast = self.forecast.lock().unwrap_or_else(PoisonError::into_inner);
        what(&mut forecast);
        forecast.estimate()
    }

    fn finish(&self, task: &Task, planned: &PlannedRun) -> Result<(), StoreError> {
        self.update(|forecast| forecast.started(planned));
        // A worker that panicked left no incomplete row: each is one transaction.
        let store = || self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let mut key = key_of(task, self.backend);
        if store().has(&key)? {
            self.found.fetch_add(1, Ordering::Relaxed);
            self.progress.found(self.update(|forecast| forecast.found(planned)));
            return Ok(());
        }
        let record = match self.backend.run(&task.experiment, &task.scenario, task.seed) {
            Ok(record) => record,
            Err(error) => {
                let failed = FailedRun { label: label(task), error };
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).push(failed);
                self.progress.found(self.update(|forecast| forecast.failed(planned)));
                return Ok(());
            }
        };
        let record = Record { backend: self.backend.id().to_owned(), ..record };
        if !record.is_valid() {
            let mut invalid = self.invalid.lock().unwrap_or_else(PoisonError::into_inner);
            invalid.push(record.invalid_reason().to_owned());
            drop(invalid);
            key = key_of_invalid(&key);
        }
        let packed = Packed::of(task, &record).map_err(|e| store().damaged(&task.key, e))?;
        store().put_packed(&key, task, &record, &packed)?;
        self.ran.fetch_add(1, Ordering::Relaxed);
        // The duration that a backend predicts is real time, not processor time.
        let known = self.backend.expected_s(&task.scenario);
        let took_s = known.unwrap_or(record.cost.cpu_s);
        self.progress.done(task, &record, self.update(|forecast| forecast.done(planned, took_s)));
        Ok(())
    }
}

/// A task in words: `rtt 25 ms, second tcp/cubic, run 3`.
pub fn label(task: &Task) -> String {
    let mut parts: Vec<String> =
        task.point.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    if let Some(case) = &task.case {
        parts.insert(0, format!("case {case}"));
    }
    parts.extend(task.variant.iter().map(|v| format!("variant {v}")));
    parts.push(format!("run {}", task.run));
    parts.join(", ")
}
