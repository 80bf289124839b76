//! Why a plan was not played.

use udccp_agent::HostError;

/// Why a plan was not played to its end. Nothing of it is left.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An agent said why, or nothing.
    #[error(transparent)]
    Agent(#[from] HostError),
    /// A program that is not there.
    #[error("there is no program `{0}`")]
    Program(String),
    /// So many packets were not recorded.
    #[error("{0} packets were not recorded")]
    Holes(u64),
    /// The kernel or `tc` did not do what the plan says.
    #[error("{0}")]
    Kernel(String),
}

impl Error {
    pub(crate) fn new(what: impl Into<String>) -> Self {
        Self::Kernel(what.into())
    }

    /// What to do about it, where anything is known.
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
