//! Handles Ctrl-C and SIGTERM.

use std::fmt;
use std::io;

use tokio::runtime;

use crate::exit::Exit;

/// Calls `last_words` on the next Ctrl-C or SIGTERM, and exits with [`Exit::Interrupted`]. Async
/// commands use [`Signals`] instead.
///
/// # Errors
/// The system refuses a thread or a signal handler.
#[expect(clippy::disallowed_methods, reason = "a signal comes while the main thread works")]
pub(crate) fn on_interrupt(last_words: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let waiting = runtime::Builder::new_current_thread().enable_all().build()?;
    // Register here and not in the thread: a signal that arrives before the thread runs must not be
    // missed.
    let mut signals = {
        let _context = waiting.enter();
        Signals::new()?
    };
    std::thread::spawn(move || {
        waiting.block_on(signals.next());
        last_words();
        std::process::exit(i32::from(Exit::Interrupted.code()));
    });
    Ok(())
}

/// A request to terminate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// SIGTERM, from `kill` and service managers.
    Terminate,
}

impl Signal {
    /// The exit code after this signal, as in shells: 128 plus its number.
    pub(crate) const fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "interrupted (SIGINT)",
            Self::Terminate => "terminated (SIGTERM)",
        })
    }
}

/// Receives these signals, which then no longer end the process.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: system::Interrupt,
    terminate: system::Terminate,
}

impl Signals {
    /// Registers the handlers. Must be called within a tokio runtime with I/O enabled.
    ///
    /// # Errors
    /// The system refuses a handler.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { interrupt: system::interrupt()?, terminate: system::terminate()? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(unix)]
mod system {
    use std::io;

    use tokio::signal::unix::{Signal, SignalKind, signal};

    pub(super) type Interrupt = Signal;
    pub(super) type Terminate = Signal;

    pub(super) fn interrupt() -> io::Result<Interrupt> {
        signal(SignalKind::interrupt())
    }

    pub(super) fn terminate() -> io::Result<Terminate> {
        signal(SignalKind::terminate())
    }
}

#[cfg(windows)]
mod system {
    pub(super) use tokio::signal::windows::{
        CtrlC as Interrupt, CtrlClose as Terminate, ctrl_c as interrupt, ctrl_close as terminate,
    };
}
