//! Errors of the Linux backend, with hints.

use std::io;
use std::path::Path;

/// Why a scenario did not run in the guest.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// This machine lacks something.
    #[error("{what}")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        hint: String,
    },
    /// The scenario needs something that Linux, or its traffic control, lacks.
    #[error("this scenario cannot run in Linux: {}", .0.join("; "))]
    Scenario(Vec<String>),
    /// The kernel could not be built.
    #[error("cannot {step}: {why}")]
    Build {
        /// What was being done.
        step: String,
        /// The end of the tool's output.
        why: String,
    },
    /// The guest failed.
    #[error("the guest {what}")]
    Guest {
        /// What happened.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// An operation on a file or process failed.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

impl LinuxError {
    /// What to do about it, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { hint, .. } => Some(hint.clone()),
            Self::Scenario(_) => Some(
                "`udccp guide linux-backend` lists what the guest supports; `udccp sim` runs it"
                    .into(),
            ),
            Self::Build { .. } => {
                Some("run `udccp linux --setup` again: it resumes where it stopped".into())
            }
            Self::Guest { console, .. } if !console.is_empty() => {
                Some(format!("the end of its console:\n{console}"))
            }
            Self::Guest { .. } | Self::Io { .. } => None,
        }
    }

    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        move |error| Self::Io { what, error }
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        Self::io(path.display().to_string())
    }
}
