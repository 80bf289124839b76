//! Why a simulation did not end well.

use udccp_base::Instant;

/// A run that cannot begin, or whose result cannot be trusted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimError {
    /// A setting that makes no sense; nothing ran.
    #[error("{what}")]
    Config {
        /// Which, and what would be right.
        what: String,
    },
    /// Time stands still: a component wakes again and again at one instant.
    #[error("time stands still at {at}: {events} events, the last of {component}")]
    Livelock {
        /// The instant.
        at: Instant,
        /// Events at that instant.
        events: u64,
        /// The component whose event was the last.
        component: String,
    },
    /// The checker found the simulation to be wrong (a defect of this program).
    #[error("invariant broken at {at}: {what}")]
    Invariant {
        /// When.
        at: Instant,
        /// What should not be.
        what: String,
    },
    /// The owner of the clock of a paced run, or of [`crate::RunConfig::stop`], ended it.
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
        /// What the writer said.
        #[source]
        error: std::io::Error,
    },
}

impl SimError {
    pub(crate) fn config(what: impl Into<String>) -> Self {
        Self::Config { what: what.into() }
    }
}
