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

impl Results {
    /// Every run of the experiment that the store has, of this version of the program.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn load(
        experiment: &Experiment,
        store: &Store,
        options: PlanOptions,
    ) -> Result<Self, ResultsError> {
        let tasks = plan(experiment, options)?;
        let planned = tasks.len();
        let mut runs = Vec::new();
        for task in tasks {
            if let Some(record) = store.get(&task.key)? {
                runs.push((task, record));
            }
        }
        Ok(Self { runs, planned })
    }

    /// The records at a grid point, in the order of their runs.
    pub fn at<'a>(
        &'a self,
        variant: Option<&'a str>,
        point: &'a [(String, String)],
    ) -> impl Iterator<Item = &'a Record> {
        let here = move |task: &Task| task.variant.as_deref() == variant && task.point == *point;
        self.runs.iter().filter(move |(task, _)| here(task)).map(|(_, record)| record)
    }

    /// Processor time of all runs in seconds.
    pub fn cpu_s(&self) -> f64 {
        self.runs.iter().map(|(_, r)| r.cost.cpu_s).sum()
    }

    /// Packets that hosts put on the wire in all runs.
    pub fn packets(&self) -> u64 {
        self.runs.iter().map(|(_, r)| r.cost.packets).sum()
    }
}
