//! Backends, which run scenarios: the simulator, and others with the same kind of record.

use crate::record::Record;
use crate::record::SIM;
use crate::run::{RunOptions, run};
use crate::run_error::RunError;
use crate::schema::Scenario;

/// Known backends, with the names of their results in reports. Others in a store are named by their
/// ids.
pub const BACKENDS: [(&str, &str); 6] = [
    (SIM, "simulated"),
    ("emu", "emulated"),
    ("emu-netem", "real time, netem"),
    ("linux", "Linux"),
    ("linux-udccp", "ours in Linux"),
    ("ns2", "ns-2"),
];

/// Something that runs scenarios.
pub trait Backend: Send + Sync {
    /// Its id in stores, exports and on the command line.
    fn id(&self) -> &str;

    /// What its results depend on besides the scenario, the seed and the code of this program: the
    /// kernel and how it was built. Empty for the simulator.
    fn version(&self) -> String;

    /// How many runs it can do at a time; `None`: only the machine's cores limit it.
    fn jobs(&self) -> Option<usize> {
        None
    }

    /// Duration of a run in seconds, if it can be predicted.
    fn expected_s(&self, _scenario: &Scenario) -> Option<f64> {
        None
    }

    /// Runs a scenario; `name` is its name in the record.
    ///
    /// # Errors
    /// The backend cannot run this scenario, or not on this machine.
    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError>;
}

/// Why a backend did not run a scenario.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct BackendError {
    /// What went wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// Whether the scenario is the reason, so that others may run here.
    pub is_of_scenario: bool,
}

impl BackendError {
    /// An error of this machine or of the backend.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None, is_of_scenario: false }
    }

    /// The scenario needs something that the backend does not support.
    pub fn of_scenario(message: impl Into<String>) -> Self {
        Self { is_of_scenario: true, ..Self::new(message) }
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<RunError> for BackendError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Flow { .. } => Self::of_scenario(error.to_string()),
            _ => Self::new(error.to_string()),
        }
    }
}

/// The simulator: all code of this project, in virtual time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Simulator;

impl Backend for Simulator {
    fn id(&self) -> &str {
        SIM
    }

    fn version(&self) -> String {
        String::new()
    }

    fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Record, BackendError> {
        Ok(run(name, scenario, seed, RunOptions::default())?)
    }
}

/// The name of a backend's results in reports.
pub fn backend_title(id: &str) -> &str {
    BACKENDS.iter().find(|(known, _)| *known == id).map_or(id, |(_, title)| title)
}

/// The sort key of a backend: the known ones in their order, then the others by name.
pub fn backend_rank(id: &str) -> (usize, &str) {
    (BACKENDS.iter().position(|(known, _)| *known == id).unwrap_or(BACKENDS.len()), id)
}
