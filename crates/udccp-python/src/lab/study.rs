//! An experiment: its campaign, and the data of its tables and figures.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use pyo3::prelude::*;
use udccp_lab::analysis::{Analysis, Results};
use udccp_lab::export::{self, Frame, Values};
use udccp_lab::schema::{Experiment, Scenario};
use udccp_lab::{
    Backend, BackendError, CampaignError, Costs, PlanOptions, Progress, Record, RunError,
    RunOptions, SIM, Start, Store, StoreError, Task, TaskFile, WorkEstimate, campaign, plan,
    report,
};

use super::find;
use crate::{border, error};

/// An experiment that has been read and checked.
#[pyclass(frozen, module = "udccp._native")]
pub(crate) struct Study {
    experiment: Experiment,
}

/// Where the results are, and which part of the experiment to use. In Python a tuple: the store,
/// whether runs are quick, and the number of runs per point.
struct Place {
    store: PathBuf,
    options: PlanOptions,
}

impl FromPyObject<'_, '_> for Place {
    type Error = PyErr;

    fn extract(place: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let (store, quick, runs) = place.extract()?;
        Ok(Self { store, options: PlanOptions { quick, runs } })
    }
}

/// Why something about a campaign failed.
enum Failure {
    Invalid(udccp_lab::Diagnostics),
    Store(String),
    Runs(String),
}

impl Failure {
    fn raise(&self, py: Python<'_>) -> PyErr {
        match self {
            Self::Invalid(errors) => error::scenario(py, errors),
            Self::Store(text) => error::raise(py, "StoreError", text),
            Self::Runs(text) => error::raise(py, "RunError", text),
        }
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error.to_string())
    }
}

impl From<udccp_lab::Diagnostics> for Failure {
    fn from(errors: udccp_lab::Diagnostics) -> Self {
        Self::Invalid(errors)
    }
}

/// The simulator, which stops when the flag is set.
struct Stoppable<'a>(&'a AtomicBool);

impl Backend for Stoppable<'_> {
    fn id(&self) -> &str {
        SIM
    }

    fn version(&self) -> String {
        String::new()
    }

    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError> {
        let options = RunOptions { stop: Some(self.0), ..RunOptions::default() };
        udccp_lab::run(name, scenario, seed, options).map_err(|e: RunError| e.into())
    }
}

/// A progress display that shows nothing.
struct Silent;

impl Progress for Silent {
    fn begin(&self, _: Start) {}
    fn done(&self, _: &Task, _: &Record, _: WorkEstimate) {}
    fn found(&self, _: WorkEstimate) {}
}

/// A column: its name and its values.
type Column = (String, Py<PyAny>);

#[pymethods]
impl Study {
    /// Reads an experiment, given by path or by name.
    #[new]
    fn new(py: Python<'_>, path: &str) -> PyResult<Self> {
        border::guard(py, || {
            let read = || Experiment::load(&find::file(Path::new(path))?);
            let experiment = py.detach(read).map_err(|errors| error::scenario(py, &errors))?;
            Ok(Self { experiment })
        })
    }

    #[getter]
    fn id(&self) -> &str {
        &self.experiment.id
    }

    #[getter]
    fn title(&self) -> &str {
        self.experiment.heading()
    }

    #[getter]
    fn asks(&self) -> &str {
        &self.experiment.asks
    }

    /// Ids and titles of the tables.
    #[getter]
    fn tables(&self) -> Vec<(String, String)> {
        self.experiment.tables.iter().map(|t| (t.id.clone(), t.title.clone())).collect()
    }

    /// Ids and titles of the figures.
    #[getter]
    fn figures(&self) -> Vec<(String, String)> {
        self.experiment.figures.iter().map(|f| (f.id.clone(), f.title.clone())).collect()
    }

    /// The same experiment with only what these tables need, and with these changes.
    fn narrowed(&self, py: Python<'_>, tables: Vec<String>, set: Vec<String>) -> PyResult<Self> {
        border::guard(py, || {
            let wrong = |errors| error::scenario(py, &errors);
            let mut experiment = Experiment::load(&self.experiment.path).map_err(wrong)?;
            experiment.narrow(&self.experiment.narrowed).map_err(wrong)?;
            experiment.narrow(&udccp_lab::Selection { tables, set }).map_err(wrong)?;
            Ok(Self { experiment })
        })
    }

    /// Runs the tasks that are missing in the store. Returns the numbers of new and of stored runs.
    fn run(&self, py: Python<'_>, place: Place, workers: usize) -> PyResult<(usize, usize)> {
        border::guard(py, || {
            let outcome = border::interruptible(py, |stop| -> Result<_, Failure> {
                let tasks = plan(&self.experiment, place.options)?;
                let store = Store::open(&place.store)?;
                let outcome = campaign(&tasks, store, &Stoppable(stop), workers, &Silent);
                let outcome = outcome.map_err(|e| match e {
                    CampaignError::Store(error) => error.into(),
                    other => Failure::Runs(other.to_string()),
                })?;
                Ok((outcome.ran, outcome.stored))
            })?;
            outcome.map_err(|e| e.raise(py))
        })
    }

    /// The tasks that are missing in the store, as JSON; the longest come first.
    fn missing(&self, py: Python<'_>, place: Place) -> PyResult<Vec<String>> {
        self.with(py, move |study| study.missing_in(&place))
    }

    /// The cells of a table as JSON.
    fn table(&self, py: Python<'_>, place: Place, id: &str) -> PyResult<Option<String>> {
        self.with(py, move |study| {
            let analysis = Analysis::of(&study.experiment, study.results(&place)?);
            let table = analysis.tables.iter().find(|t| t.table.id == id);
            Ok(table.map(|table| report::cells(table).to_string()))
        })
    }

    /// The charts of a figure as JSON.
    fn figure(&self, py: Python<'_>, place: Place, id: &str) -> PyResult<Option<String>> {
        self.with(py, move |study| {
            let analysis = Analysis::of(&study.experiment, study.results(&place)?);
            let figure = study.experiment.figures.iter().find(|f| f.id == id);
            let charts = figure.and_then(|figure| report::charts(&analysis, figure));
            Ok(charts.map(|charts| charts.to_string()))
        })
    }

    /// The tables in the text format of `udccp lab run`.
    fn text(&self, py: Python<'_>, place: Place) -> PyResult<String> {
        self.with(py, move |study| {
            Ok(report::text(&Analysis::of(&study.experiment, study.results(&place)?)))
        })
    }

    /// The complete records as JSON.
    fn records(&self, py: Python<'_>, place: Place) -> PyResult<String> {
        self.with(py, move |study| {
            export::json(&study.results(&place)?).map_err(|e| Failure::Store(e.to_string()))
        })
    }

    /// One row per flow of each run, or per sample, as columns.
    fn columns(&self, py: Python<'_>, place: Place, series: bool) -> PyResult<Vec<Column>> {
        let frame = self.with(py, move |study| {
            let results = study.results(&place)?;
            Ok(if series { export::series(&results) } else { export::runs(&results) })
        })?;
        border::guard(py, || columns(py, &frame))
    }
}

impl Study {
    /// Runs `work` without the interpreter lock, and raises its error.
    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Self) -> Result<T, Failure> + Send,
    ) -> PyResult<T> {
        border::guard(py, || py.detach(|| work(self)).map_err(|e| e.raise(py)))
    }

    /// The results in the store; none if the store does not exist.
    fn results(&self, place: &Place) -> Result<Results, Failure> {
        match Store::open_existing(&place.store) {
            Ok(store) => Results::load(&self.experiment, &store, place.options)
                .map_err(|e| Failure::Store(e.to_string())),
            Err(StoreError::Missing { .. }) => Ok(Results::default()),
            Err(error) => Err(error.into()),
        }
    }

    fn missing_in(&self, place: &Place) -> Result<Vec<String>, Failure> {
        let store = match Store::open_existing(&place.store) {
            Ok(store) => Some(store),
            Err(StoreError::Missing { .. }) => None,
            Err(error) => return Err(error.into()),
        };
        let costs = store.as_ref().map_or(Ok(Costs::default()), |s| s.costs(SIM))?;
        let mut keys = BTreeSet::new();
        let mut missing: Vec<(f64, Task)> = Vec::new();
        for task in plan(&self.experiment, place.options)? {
            let is_stored = store.as_ref().map_or(Ok(false), |s| s.has(&task.key))?;
            if !is_stored && keys.insert(task.key.clone()) {
                missing.push((costs.expected_s(&task), task));
            }
        }
        missing.sort_by(|a, b| b.0.total_cmp(&a.0));
        let text = |(expected_s, task): &(f64, Task)| {
            let file = TaskFile::new(&self.experiment, task, *expected_s)?;
            serde_json::to_string(&file).ok()
        };
        Ok(missing.iter().filter_map(text).collect())
    }
}

fn columns(py: Python<'_>, frame: &Frame) -> PyResult<Vec<Column>> {
    let one = |column: &export::Column| {
        let values = match &column.values {
            Values::Empty(n) => vec![None::<i64>; *n].into_pyobject(py)?,
            Values::Text(v) => {
                v.iter().map(Option::as_deref).collect::<Vec<_>>().into_pyobject(py)?
            }
            Values::Integer(v) => v.clone().into_pyobject(py)?,
            Values::Real(v) => v.clone().into_pyobject(py)?,
            Values::Flag(v) => v.clone().into_pyobject(py)?,
        };
        Ok((column.name.clone(), values.into_any().unbind()))
    };
    frame.columns().iter().map(one).collect()
}
