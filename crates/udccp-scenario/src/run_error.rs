//! The error of a run.

use udccp_sim::SimError;

/// Why a scenario could not be run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The settings of a flow contradict each other.
    #[error("flow \"{flow}\": {why}")]
    Flow {
        /// The flow.
        flow: String,
        /// What is wrong.
        why: String,
    },
    /// The simulator failed or was stopped.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// Captures cannot be written to the folder.
    #[error("cannot write captures to {folder}: {error}")]
    Folder {
        /// The folder.
        folder: String,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
}

impl RunError {
    /// Whether the run was stopped on request ([`RunOptions::stop`](crate::RunOptions::stop)).
    pub fn is_stopped(&self) -> bool {
        matches!(self, Self::Simulation(SimError::Stopped { .. }))
    }
}
