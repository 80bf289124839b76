//! The stored runs of one experiment, found by variant and grid point.

use crate::diagnostic::Diagnostics;
use crate::plan::{PlanOptions, Task, plan};
use crate::record::Record;
use crate::schema::Experiment;
use crate::store::{Store, StoreError};

/// Runs with their tasks, in the order of the plan.
#[derive(Debug, Default)]
pub struct Results {
    /// What is there.
    pub runs: Vec<(Task, Record)>,
    /// How many runs the file asks for.
    pub planned: usize,
}

/// Why results cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum ResultsError {
    /// The file is wrong.
    #[error(transparent)]
    File(#[from] Diagnostics),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Whether two tasks differ in nothing but the number of the run.
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
            // Experiments share runs; whichever asks calls it its own.
            record.scenario.clone_from(&task.experiment);
            runs.push((task.clone(), record));
        }
    }
    Ok(runs)
}

impl Results {
    /// Every run of the experiment that the store has, of this version of the program. Where it
    /// has no full run of a point, the shortened ones of a first look stand in.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(
        experiment: &Experiment,
        store: &Store,
        options: PlanOptions,
    ) -> Result<Self, ResultsError> {
        let tasks = plan(experiment, options)?;
        let quick = plan(experiment, PlanOptions { quick: true, ..options })?;
        let mut results = Self { planned: tasks.len(), ..Self::default() };
        for of_point in tasks.chunk_by(same_point) {
            let mut found = stored(of_point.iter(), store)?;
            if found.is_empty() {
                let short = |t: &&Task| t.shortened && same_point(t, &of_point[0]);
                found = stored(quick.iter().filter(short), store)?;
            }
            results.runs.extend(found);
        }
        Ok(results)
    }

    /// The records at a grid point of a case (`None`: the file as it stands), in the order of
    /// their runs.
    pub fn at<'a>(
        &'a self,
        case: Option<&'a str>,
        variant: Option<&'a str>,
        point: &'a [(String, String)],
    ) -> impl Iterator<Item = &'a Record> {
        let here = move |task: &Task| {
            task.case.as_deref() == case
                && task.variant.as_deref() == variant
                && task.point == *point
        };
        self.runs.iter().filter(move |(task, _)| here(task)).map(|(_, record)| record)
    }

    /// How many runs were shortened for a first look (`quick_set`).
    pub fn shortened(&self) -> usize {
        self.runs.iter().filter(|(task, _)| task.shortened).count()
    }

    /// Events that the simulator handled in all runs.
    pub fn events(&self) -> u64 {
        self.runs.iter().map(|(_, r)| r.cost.events).sum()
    }

    /// Packets that hosts put on the wire in all runs.
    pub fn packets(&self) -> u64 {
        self.runs.iter().map(|(_, r)| r.cost.packets).sum()
    }
}
