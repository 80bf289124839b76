//! Errors of this backend, with hints.

use std::io;

/// Why a scenario did not run in ns-2.
#[derive(Debug, thiserror::Error)]
pub enum Ns2Error {
    /// There is no `ns` on this machine.
    #[error("there is no program `ns` (ns-2) on this machine")]
    Missing,
    /// The scenario needs something that ns-2 lacks; each a clause that names the key.
    #[error("this scenario cannot run in ns-2: {}", .0.join("; "))]
    Scenario(Vec<String>),
    /// ns-2 ended before the end of the scenario.
    #[error("ns-2 ended early ({status}): {output}")]
    Ended {
        /// Its exit status.
        status: String,
        /// The end of its output.
        output: String,
    },
    /// A line of the trace is invalid.
    #[error("line {number} of the trace of ns-2: {why}")]
    Trace {
        /// Its number, counted from 1.
        number: u64,
        /// What is wrong with it.
        why: String,
    },
    /// An operation on a file, a pipe or a process failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: &'static str,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

impl Ns2Error {
    /// What to do about it, if known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::Missing => Some("apt-get install ns2"),
            Self::Scenario(_) => {
                Some("`udccp guide ns2` lists what ns-2 has; `udccp sim` runs the scenario")
            }
            Self::Ended { output, .. } if output.contains("ack vector") => Some(
                "an Ack Vector above 253 bytes aborts ns-2: use a smaller queue or \
                 dccp.initial_window",
            ),
            Self::Ended { .. } | Self::Trace { .. } | Self::Io { .. } => None,
        }
    }

    pub(crate) const fn io(what: &'static str) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io { what, error }
    }
}
