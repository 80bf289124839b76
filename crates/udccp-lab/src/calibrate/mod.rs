//! Finds the set-up that a study does not state: fitted on some tables, tested on others.
//!
//! Every combination of the values of [`Calibration`] is run for the tables of `fit`. The
//! combination with the smallest mean distance wins; others whose distance is not significantly
//! larger count as equally good. Only the winner is then run for the tables of `test`.

mod score;
mod text;

pub use score::{ComparedCell, Fit, Judged, Points, SetUp};
pub use text::{text, whole_points};

use udccp_scenario::diagnostic::{Diagnostic, Diagnostics};

use crate::analysis::{Results, TableResult, tabulate};
use crate::plan::{PlanOptions, Task, plan};
use crate::schema::{Calibration, Experiment, Filter, Variant};
use crate::selection::Selection;
use crate::store::{Store, StoreError};

/// An experiment whose `fit` or `test` tables are run with some set-ups.
#[derive(Debug)]
pub struct Trial {
    experiment: Experiment,
    set_ups: Vec<Vec<usize>>,
}

/// The calibration of an experiment.
///
/// # Errors
/// The file has no calibration.
pub fn calibration(experiment: &Experiment) -> Result<&Calibration, Diagnostics> {
    experiment.calibration.as_ref().ok_or_else(|| {
        let error = Diagnostic::whole(format!("{} has no [calibrate]", experiment.id));
        error.hint("`udccp guide calibrate` describes it").into()
    })
}

impl Trial {
    /// Prepares the tables `ids` of an experiment to be run with these set-ups.
    ///
    /// # Errors
    /// A set-up has a key that a run does not have.
    pub fn new(
        mut experiment: Experiment,
        calibration: &Calibration,
        ids: &[String],
        set_ups: &[Vec<usize>],
    ) -> Result<Self, Diagnostics> {
        let set = experiment.narrowed.set.clone();
        experiment.narrow(&Selection { tables: ids.to_vec(), set: Vec::new() })?;
        experiment.narrowed.set = set;
        experiment.variants.clear();
        for set_up in set_ups {
            let changes = calibration.changes(set_up);
            for part in &experiment.parts {
                experiment.variants.push(Variant {
                    id: name(set_up),
                    case: part.id.clone(),
                    says: String::new(),
                    filter: Filter::default(),
                    set_up: None,
                    runs: None,
                    quick_runs: None,
                    changes: changes.clone(),
                    quick: Vec::new(),
                });
            }
        }
        if let Some(error) = experiment.recheck().into_iter().next() {
            return Err(error.into());
        }
        Ok(Self { experiment, set_ups: set_ups.to_vec() })
    }

    /// The experiment, with one variant per set-up.
    pub fn experiment(&self) -> &Experiment {
        &self.experiment
    }

    /// The runs of its set-ups.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn tasks(&self, options: PlanOptions) -> Result<Vec<Task>, Diagnostics> {
        let weighing = self.experiment.tables.iter().flat_map(|t| &t.shown);
        let weighing: Vec<_> = weighing.filter_map(|s| s.weights.as_ref()).collect();
        let mut tasks = plan(&self.experiment, options)?;
        // The unchanged file is the first set-up; weights come from the unchanged file.
        tasks.retain(|task| {
            let weighs = |case: &String| weighing.iter().any(|w| w.case == *case);
            task.variant.is_some() || task.case.as_ref().is_some_and(weighs)
        });
        Ok(tasks)
    }

    /// The stored runs of these tasks.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn results(&self, store: &Store, tasks: &[Task]) -> Result<Results, StoreError> {
        let mut results = Results { planned: tasks.len(), ..Results::default() };
        for task in tasks {
            if let Some(record) = store.get(&task.key)? {
                results.runs.push((task.clone(), record));
            }
        }
        Ok(results)
    }

    /// The distances of each set-up's runs.
    pub fn judge(&self, results: &Results) -> Vec<SetUp> {
        let of = |set_up: &Vec<usize>| {
            let id = name(set_up);
            let fill = |table| tabulate(&self.experiment, table, results, Some(&id));
            let tables: Vec<TableResult<'_>> = self.experiment.tables.iter().map(fill).collect();
            SetUp::of(set_up.clone(), &tables)
        };
        self.set_ups.iter().map(of).collect()
    }
}

/// The name of a set-up's variant.
fn name(set_up: &[usize]) -> String {
    let values: Vec<String> = set_up.iter().map(ToString::to_string).collect();
    format!("set-up-{}", values.join("-"))
}
