//! Runs one scenario, or many on all cores.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use rayon::prelude::*;
use udccp_lab::report;
use udccp_scenario::diagnostic::suggestion;
use udccp_scenario::{Diagnostic, PROTOCOLS, RunError, RunOptions};

use super::prepared::Prepared;
use super::window::{self, Failure};
use crate::{border, error};

/// Runs a scenario and returns its record as JSON. `algorithms` maps names of flows to window
/// algorithms: each is called with an initial window and returns a `WindowAlgorithm`.
#[pyfunction]
#[pyo3(signature = (prepared, seed, check, pcap, snaplen, algorithms))]
pub(crate) fn run(
    py: Python<'_>,
    prepared: &Prepared,
    seed: Option<u64>,
    check: bool,
    pcap: Option<PathBuf>,
    snaplen: Option<u32>,
    algorithms: Vec<(String, Py<PyAny>)>,
) -> PyResult<String> {
    border::guard(py, || {
        for (name, _) in &algorithms {
            if !prepared.scenario.flows.iter().any(|flow| flow.name == *name) {
                let flows: Vec<&str> =
                    prepared.scenario.flows.iter().map(|flow| flow.name.as_str()).collect();
                let error = Diagnostic::whole(format!("there is no flow \"{name}\""))
                    .hint(suggestion(name, "flows", &flows));
                return Err(error::scenario(py, &error.into()));
            }
        }
        let failed = Failure::default();
        let record = border::interruptible(py, |stop| {
            let pcap = pcap.as_deref();
            let algorithms = &window::algorithms(algorithms, &failed, stop);
            let options = RunOptions { check, pcap, snaplen, stop: Some(&**stop), algorithms };
            one(prepared, seed, options)
        })?;
        match failed.take() {
            Some(raised) => Err(raised),
            None => record.map_err(|e| failure(py, &e)),
        }
    })
}

/// Runs many scenarios, each with its seed, on `workers` threads, and returns their records in the
/// same order.
#[pyfunction]
pub(crate) fn run_many(
    py: Python<'_>,
    runs: Vec<(Py<Prepared>, Option<u64>)>,
    workers: usize,
) -> PyResult<Vec<String>> {
    let runs: Vec<(Prepared, Option<u64>)> =
        runs.into_iter().map(|(prepared, seed)| (prepared.get().clone(), seed)).collect();
    border::guard(py, || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(workers).build();
        let pool = pool.map_err(|e| error::raise(py, "RunError", e.to_string()))?;
        let records = border::interruptible(py, |stop| pool.install(|| all(&runs, stop)))?;
        records.map_err(|e| failure(py, &e))
    })
}

/// Runs all; the first error ends the other runs.
fn all(runs: &[(Prepared, Option<u64>)], stop: &AtomicBool) -> Result<Vec<String>, RunError> {
    let one = |(prepared, seed): &(Prepared, Option<u64>)| {
        let options = RunOptions { stop: Some(stop), ..RunOptions::default() };
        let record = one(prepared, *seed, options);
        if record.is_err() {
            stop.store(true, Ordering::Relaxed);
        }
        record
    };
    let records: Vec<Result<String, RunError>> = runs.par_iter().with_max_len(1).map(one).collect();
    let is_first_cause = |e: &RunError| !e.is_stopped();
    let cause = records.iter().position(|r| r.as_ref().is_err_and(is_first_cause));
    let mut records = records;
    match cause {
        Some(cause) => records.swap_remove(cause).map(|_| Vec::new()),
        None => records.into_iter().collect(),
    }
}

fn one(
    prepared: &Prepared,
    seed: Option<u64>,
    options: RunOptions<'_>,
) -> Result<String, RunError> {
    let seed = seed.unwrap_or(prepared.seed);
    let record = udccp_scenario::run(&prepared.id, &prepared.scenario, seed, options)?;
    // A record contains only numbers and texts, so it always has a JSON form.
    Ok(serde_json::to_string(&record).unwrap_or_default())
}

fn failure(py: Python<'_>, run: &RunError) -> PyErr {
    match run {
        RunError::Flow { .. } => error::scenario(py, &Diagnostic::whole(run.to_string()).into()),
        _ => error::raise(py, "RunError", run.to_string()),
    }
}

/// All protocol names of flows as JSON, each with its style in figures.
#[pyfunction]
pub(crate) fn protocols() -> String {
    PROTOCOLS.iter().map(report::protocol).collect::<serde_json::Value>().to_string()
}
