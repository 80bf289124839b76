//! The laboratory: one run, many runs, campaigns and their results.

mod find;
mod prepared;
mod run;
mod study;
mod task;
mod window;

use pyo3::prelude::*;

/// Adds this folder's classes and functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("LAB_VERSION", udccp_scenario::VERSION)?;
    module.add_class::<prepared::Prepared>()?;
    module.add_class::<study::Study>()?;
    module.add_class::<task::ResultStore>()?;
    module.add("EXPERIMENTS", udccp_lab::library::experiments())?;
    module.add_function(wrap_pyfunction!(task::run_task, module)?)?;
    module.add_function(wrap_pyfunction!(run::run, module)?)?;
    module.add_function(wrap_pyfunction!(run::run_many, module)?)?;
    module.add_function(wrap_pyfunction!(run::protocols, module)?)
}
