//! Runs tasks on other machines: a worker runs one, and its result is put into a store.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};

use pyo3::prelude::*;
use udccp_lab::{Store, TaskError, TaskFile, TaskResult};

use crate::{border, error};

/// The name in messages of a task or result given as text.
const GIVEN: &str = "<task>";

fn failure(py: Python<'_>, task: &TaskError) -> PyErr {
    let class = if matches!(task, TaskError::Run { .. }) { "RunError" } else { "TaskError" };
    error::raise(py, class, task.to_string())
}

/// Runs a task (a line of `udccp lab plan --json`) and returns its result as one line.
#[pyfunction]
pub(crate) fn run_task(py: Python<'_>, task: &str) -> PyResult<String> {
    border::guard(py, || {
        let result = border::interruptible(py, |_| TaskFile::parse(GIVEN, task)?.run(GIVEN))?;
        let result = result.map_err(|e| failure(py, &e))?;
        // A result contains only numbers and texts, so it always has a JSON form.
        Ok(serde_json::to_string(&result).unwrap_or_default())
    })
}

/// A store that receives results one by one.
#[pyclass(frozen, module = "udccp._native")]
pub(crate) struct ResultStore(Mutex<Store>);

#[pymethods]
impl ResultStore {
    /// Opens a store; creates it if it does not exist.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        border::guard(py, || {
            let store = Store::open(&path);
            store
                .map(|store| Self(Mutex::new(store)))
                .map_err(|e| error::raise(py, "StoreError", e.to_string()))
        })
    }

    /// Stores a result; returns whether it is new.
    fn put(&self, py: Python<'_>, line: &str) -> PyResult<bool> {
        border::guard(py, || {
            let (task, record) = TaskResult::parse(GIVEN, 1, line).map_err(|e| failure(py, &e))?;
            let stored = py.detach(|| {
                let store = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if store.has(&task.key)? {
                    return Ok(false);
                }
                store.put(&task, &record).map(|()| true)
            });
            stored.map_err(|e: udccp_lab::StoreError| error::raise(py, "StoreError", e.to_string()))
        })
    }
}
