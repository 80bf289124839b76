//! Errors of the Linux backend, each with a way out.

use std::io;
use std::path::Path;

/// Why a scenario did not run in the guest.
#[derive(Debug, thiserror::Error)]
pub enum LinuxError {
    /// This machine lacks something.
    #[error("{what}")]
    Missing {
        /// What, in words.
        what: String,
        /// How to get it.
        hint: String,
    },
    /// The scenario asks for what a Linux kernel (or its traffic control) does not have.
    #[error("this scenario cannot run in Linux: {}", .0.join("; "))]
    Scenario(Vec<String>),
    /// The kernel could not be built.
    #[error("cannot {step}: {why}")]
    Build {
        /// What was being done.
        step: String,
        /// What the tool said last.
        why: String,
    },
    /// The guest did not do its work.
    #[error("the guest {what}")]
    Guest {
        /// What it did instead.
        what: String,
        /// The end of its console.
        console: String,
    },
    /// A file or a process of this machine.
    #[error("{what}: {error}")]
    Io {
        /// What was being done.
        what: String,
        /// What the system says.
        #[source]
        error: io::Error,
    },
}

impl LinuxError {
    /// What the reader can do.
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
