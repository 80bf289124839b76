//! Leaving on Ctrl-C or a request to terminate.

use std::io;

use tokio::runtime;

use crate::exit::Exit;

/// Calls `last_words` on the first Ctrl-C (or SIGTERM) and ends the process with
/// [`Exit::Interrupted`]. Async commands wait for [`asked_to_stop`] instead.
///
/// # Errors
/// The system refuses a thread or a signal handler.
#[expect(clippy::disallowed_methods, reason = "a signal comes while the main thread works")]
pub(crate) fn on_interrupt(last_words: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let waiting = runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        if waiting.block_on(asked_to_stop()).is_ok() {
            last_words();
            std::process::exit(i32::from(Exit::Interrupted.code()));
        }
    });
    Ok(())
}

/// Waits for Ctrl-C (SIGINT) or SIGTERM. From the first poll on, neither ends the process by itself
/// any more: whoever awaits this has to leave, with [`Exit::Interrupted`] where work was cut short.
///
/// # Errors
/// The system refuses a signal handler.
#[cfg(unix)]
pub(crate) async fn asked_to_stop() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

/// Waits for Ctrl-C.
///
/// # Errors
/// The system refuses a signal handler.
#[cfg(not(unix))]
pub(crate) async fn asked_to_stop() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
