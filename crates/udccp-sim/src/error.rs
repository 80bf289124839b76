//! Errors of simulations.

use udccp_base::Instant;

/// Why a run cannot start, or why its result is invalid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// A setting is invalid. Nothing was run.
    #[error("{what}")]
    Config {
        /// Which setting, and what is valid.
        what: String,
    },
    /// Time stands still: components cause event after event at the same time.
    #[error("time stands still at {at}: {events} events, the last of {component}")]
    Livelock {
        /// The instant.
        at: Instant,
        /// Events at that instant.
        events: u64,
        /// The component whose event was the last.
        component: String,
    },
    /// The checker found a violated invariant: a bug in this program.
    #[error("invariant broken at {at}: {what}")]
    Invariant {
        /// When.
        at: Instant,
        /// What is wrong.
        what: String,
    },
    /// The owner of the clock of a paced run, or of [`crate::RunConfig::stop`], ended the run.
    #[error("stopped at {at}")]
    Stopped {
        /// When.
        at: Instant,
    },
    /// A capture could not be written.
    #[error("cannot write the capture \"{point}\": {error}")]
    Capture {
        /// The observation point.
        point: String,
        /// The writer's error.
        #[source]
        error: std::io::Error,
    },
}

impl SimError {
    pub(crate) fn config(what: impl Into<String>) -> Self {
        Self::Config { what: what.into() }
    }
}
