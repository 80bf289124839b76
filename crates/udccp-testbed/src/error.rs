//! Why a plan failed.

use udccp_agent::HostError;

/// Why a plan could not be run to its end. Everything that was set up for it has been removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An agent failed or did not answer.
    #[error(transparent)]
    Agent(#[from] HostError),
    /// A required program is not installed.
    #[error("there is no program `{0}`")]
    Program(String),
    /// This many packets were not recorded.
    #[error("{0} packets were not recorded")]
    Holes(u64),
    /// The kernel or `tc` rejected a part of the plan.
    #[error("{0}")]
    Kernel(String),
}

impl Error {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Kernel(what.into())
    }

    /// What to do about it, if known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Agent(error) => error.hint(),
            Self::Program(_) => Some("install iproute2 (Debian: apt-get install iproute2)"),
            Self::Holes(_) => {
                Some("run it as root, which allows larger buffers, or use a lower rate")
            }
            Self::Kernel(_) => None,
        }
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Self::new(error.to_string())
    }
}
