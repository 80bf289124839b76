//! The stored runs of an experiment, by variant and grid point.

use std::collections::BTreeMap;

use udccp_scenario::Record;
use udccp_scenario::backend_rank;
use udccp_scenario::diagnostic::Diagnostics;

use crate::kept::{Kept, KeptError};
use crate::plan::{PlanOptions, Task, plan};
use crate::schema::Experiment;
use crate::store::{Store, StoreError};

/// Runs with their tasks, in the order of the plan.
#[derive(Debug, Default)]
pub struct Results {
    /// The runs that exist.
    pub runs: Vec<(Task, Record)>,
    /// How many runs the file asks for.
    pub planned: usize,
    /// Runs kept with the experiment's file, where the store has none.
    pub kept: Vec<(Task, Record)>,
    /// The backend that made them; empty for the simulator.
    pub backend: String,
    /// Why each run that is left out is not a valid measurement.
    pub invalid: Vec<String>,
    /// The runs of other backends, if there are any (each without others of its own).
    pub others: Vec<Results>,
}

/// Why results cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file has errors.
    #[error(transparent)]
    File(#[from] Diagnostics),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The runs kept with the file have errors.
    #[error(transparent)]
    Kept(#[from] KeptError),
}

/// Whether two tasks differ only in the number of the run.
fn same_point(a: &Task, b: &Task) -> bool {
    a.case == b.case && a.variant == b.variant && a.point == b.point
}

fn stored<'a>(
    tasks: impl Iterator<Item = &'a Task>,
    store: &Store,
) -> Result<Vec<(Task, Record)>, StoreError> {
    let mut runs = Vec::new();
    for task in tasks {
        if let Some(mut record) = store.get(&task.key)? {
            // Experiments can share runs; the record gets the name of the one that asks.
            record.scenario.clone_from(&task.experiment);
            runs.push((task.clone(), record));
        }
    }
    Ok(runs)
}

/// What other backends did of these tasks, added to what they did so far.
fn of_others<'a>(
    tasks: impl Iterator<Item = &'a Task>,
    store: &Store,
    others: &mut BTreeMap<String, Results>,
) -> Result<(), StoreError> {
    for task in tasks {
        let found = store.results_of_other_backends(&task.key)?;
        let mut names: Vec<&str> = found.iter().map(|r| r.backend.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            let other = others.entry(name.to_owned()).or_default();
            let own = || found.iter().filter(|r| r.backend == name);
            match own().find(|r| r.is_valid()) {
                Some(record) => {
                    let scenario = task.experiment.clone();
                    other.runs.push((task.clone(), Record { scenario, ..record.clone() }));
                }
                None => {
                    let why = own().next().map(Record::invalid_reason).unwrap_or_default();
                    other.invalid.push(why.to_owned());
                }
            }
        }
    }
    Ok(())
}

/// Adds kept runs of these tasks, if the backend has no run of its own of a task.
fn add_kept(
    tasks: &[Task],
    experiment: &Experiment,
    kept: &Kept,
    others: &mut BTreeMap<String, Results>,
) -> Result<(), KeptError> {
    for task in tasks {
        for record in kept.of(experiment, task)? {
            let other = others.entry(record.backend.clone()).or_default();
            if !other.runs.iter().any(|(own, _)| own.key == task.key) {
                other.kept.push((task.clone(), record));
            }
        }
    }
    Ok(())
}

impl Results {
    /// All runs of the experiment in the store that were made by this version of the program. If a
    /// point has no full run, shortened runs are used. For another backend, the newest result of
    /// each run is used, whatever kernel made it; if there is none, the one [kept](Kept) with the
    /// file.
    ///
    /// # Errors
    /// The store or the kept runs cannot be read.
    pub fn load(
        experiment: &Experiment,
        store: &Store,
        options: PlanOptions,
    ) -> Result<Self, ResultsError> {
        let tasks = plan(experiment, options)?;
        let quick = plan(experiment, PlanOptions { quick: true, ..options })?;
        let kept = Kept::load(experiment)?;
        let mut results = Self { planned: tasks.len(), ..Self::default() };
        let mut others = BTreeMap::new();
        for of_point in tasks.chunk_by(same_point) {
            let short = |t: &&Task| t.shortened && same_point(t, &of_point[0]);
            let mut found = stored(of_point.iter(), store)?;
            if found.is_empty() {
                found = stored(quick.iter().filter(short), store)?;
            }
            results.runs.extend(found);
            let mut here = BTreeMap::new();
            of_others(of_point.iter(), store, &mut here)?;
            add_kept(of_point, experiment, &kept, &mut here)?;
            if here.is_empty() {
                of_others(quick.iter().filter(short), store, &mut here)?;
            }
            for (backend, found) in here {
                let all: &mut Self = others.entry(backend).or_default();
                all.runs.extend(found.runs);
                all.kept.extend(found.kept);
                all.invalid.extend(found.invalid);
            }
        }
        let planned = results.planned;
        results.others =
            others.into_iter().map(|(backend, found)| Self { backend, planned, ..found }).collect();
        results.others.sort_by(|a, b| backend_rank(&a.backend).cmp(&backend_rank(&b.backend)));
        Ok(results)
    }

    /// The runs of all backends, the simulator's first.
    pub fn all(&self) -> impl Iterator<Item = (&Task, &Record)> {
        let others = self.others.iter().flat_map(|other| &other.runs);
        self.runs.iter().chain(others).map(|(task, record)| (task, record))
    }

    /// The records at a grid point of a case (`None`: the file without its cases), in the order of
    /// their runs.
    pub fn at<'a>(
        &'a self,
        case: Option<&'a str>,
        variant: Option<&'a str>,
        point: &'a [(String, String)],
    ) -> impl Iterator<Item = &'a Record> {
        self.runs_at(case, variant, point).map(|(_, record)| record)
    }

    /// Their tasks.
    pub(super) fn tasks_at<'a>(
        &'a self,
        case: Option<&'a str>,
        variant: Option<&'a str>,
        point: &'a [(String, String)],
    ) -> impl Iterator<Item = &'a Task> {
        self.runs_at(case, variant, point).map(|(task, _)| task)
    }

    fn runs_at<'a>(
        &'a self,
        case: Option<&'a str>,
        variant: Option<&'a str>,
        point: &'a [(String, String)],
    ) -> impl Iterator<Item = &'a (Task, Record)> {
        let here = move |task: &Task| {
            task.case.as_deref() == case
                && task.variant.as_deref() == variant
                && task.point == *point
        };
        self.runs.iter().chain(&self.kept).filter(move |(task, _)| here(task))
    }

    /// How many runs are shortened (`quick_set`).
    pub fn shortened(&self) -> usize {
        self.runs.iter().filter(|(task, _)| task.shortened).count()
    }

    /// Events that the simulator handled in all runs.
    pub fn events(&self) -> u64 {
        self.runs.iter().map(|(_, r)| r.cost.events).sum()
    }

    /// Packets that hosts sent in all runs.
    pub fn packets(&self) -> u64 {
        self.runs.iter().map(|(_, r)| r.cost.packets).sum()
    }
}
