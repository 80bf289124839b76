//! Exit codes, and the failure that carries one to `main`.

use std::fmt;
use std::io;

use crate::ccid;

/// What a command returns.
pub(crate) type CliResult<T> = Result<T, Failure>;

/// Exit codes of the program. They are part of its interface and never change meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// The command did everything that was requested.
    Success = 0,
    /// An error without a more specific code.
    Failure = 1,
    /// The command line is wrong (clap exits with the same code).
    Usage = 2,
    /// The transfer ran to its end, but messages were lost on the way.
    MessagesLost = 3,
    /// An input file is missing, damaged, truncated or contains invalid values.
    BadInput = 4,
    /// The peer does not answer, or the network reports it as unreachable.
    Unreachable = 5,
    /// The peer refused the connection: nothing listens on the port, the service code or CCID
    /// differs, or it is too busy.
    Refused = 6,
    /// The local address or port is in use, or may not be used.
    AddressInUse = 7,
    /// The connection was open and ended early.
    ConnectionLost = 8,
    /// The run was complete, but a claim or check failed.
    CheckFailed = 9,
    /// This machine lacks something that the command needs (see `udccp doctor`).
    Unsupported = 10,
    /// Ctrl-C ended the command early (the code that shells use). Also SIGTERM, except where
    /// [`Self::Terminated`] is documented.
    Interrupted = 130,
    /// SIGTERM ended `udccp perf` early.
    Terminated = 143,
}

/// The table at the end of `udccp --help`.
pub(crate) const HELP: &str = "\
Exit codes:
   0  success
   1  an error without its own code
   2  wrong command line
   3  the transfer ended, but messages were lost
   4  an input file is missing, damaged, cut short or contradictory
   5  the peer does not answer or cannot be reached
   6  the peer refused: nothing listens, other service code or CCID, too busy
   7  the local address or port is in use or not permitted
   8  an open connection ended early
   9  a claim or check of a completed run does not hold
  10  this machine lacks what the command needs (see `udccp doctor`)
 130  ended by Ctrl-C or SIGTERM; `lab run` has stored its finished runs, `perf` printed its results
 143  `perf` ended by SIGTERM, in the same way";

impl Exit {
    /// The number for the shell.
    pub(crate) fn code(self) -> u8 {
        self as u8
    }

    /// The exit code with this number, from a crate that only has numbers.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_code(code: u8) -> Self {
        let all = [
            Self::Usage,
            Self::MessagesLost,
            Self::BadInput,
            Self::Unreachable,
            Self::Refused,
            Self::AddressInUse,
            Self::ConnectionLost,
            Self::CheckFailed,
            Self::Unsupported,
            Self::Interrupted,
            Self::Terminated,
        ];
        all.into_iter().find(|exit| exit.code() == code).unwrap_or(Self::Failure)
    }
}

/// Why a command failed, and what to do about it.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code.
    pub(crate) exit: Exit,
    /// What went wrong, in one sentence without a full stop.
    pub(crate) message: String,
    /// What the user can do; printed on a separate `hint:` line.
    pub(crate) hint: Option<String>,
}

impl Failure {
    /// A failure with its exit code.
    pub(crate) fn new(exit: Exit, message: impl Into<String>) -> Self {
        Self { exit, message: message.into(), hint: None }
    }

    /// Adds a hint.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether the only error is that the reader of standard output has gone.
    pub(crate) fn is_broken_pipe(&self) -> bool {
        self.exit == Exit::Success
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

impl From<anyhow::Error> for Failure {
    fn from(e: anyhow::Error) -> Self {
        match e.downcast::<Self>() {
            Ok(failure) => failure,
            Err(e) => match e.downcast::<io::Error>() {
                Ok(io) => io.into(),
                Err(e) => Self::new(Exit::Failure, format!("{e:#}")),
            },
        }
    }
}

impl From<udccp::Error> for Failure {
    fn from(e: udccp::Error) -> Self {
        use udccp::Error as E;
        let exit = match &e {
            E::PortInUse { .. }
            | E::ServiceInUse { .. }
            | E::DccpPortInUse { .. }
            | E::BindDenied { .. }
            | E::AddressNotLocal { .. } => Exit::AddressInUse,
            E::Refused { .. }
            | E::BadServiceCode { .. }
            | E::CcidNotOffered { .. }
            | E::PortClosed { .. }
            | E::TooBusy { .. } => Exit::Refused,
            E::Unreachable { .. } | E::NoAnswer { .. } => Exit::Unreachable,
            E::Lost(_) | E::Closed | E::Unsent { .. } => Exit::ConnectionLost,
            E::NoService | E::Connect(_) | E::Config(_) | E::MessageTooLarge { .. } => Exit::Usage,
            E::RawDenied => Exit::Unsupported,
            _ => Exit::Failure,
        };
        let hint = match &e {
            E::CcidNotOffered { ccid, .. } => {
                let name = ccid::name(*ccid);
                format!("start the server with --ccid {name}, or leave out --ccid here")
            }
            _ => e.advice().to_owned(),
        };
        Self::new(exit, e.to_string()).hint(hint)
    }
}

impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        // `udccp ... | head` is not an error: the reader has seen enough.
        let quiet = e.kind() == io::ErrorKind::BrokenPipe;
        Self::new(if quiet { Exit::Success } else { Exit::Failure }, e.to_string())
    }
}
