//! Leaving on Ctrl-C or a request to terminate.

use std::io;

use tokio::runtime;

/// The exit status of a program that Ctrl-C ended, as shells have it.
const INTERRUPTED: i32 = 130;

/// Calls `last_words` on the first Ctrl-C (or SIGTERM) and ends the process.
///
/// # Errors
/// The system refuses a thread or a signal handler.
#[expect(clippy::disallowed_methods, reason = "a signal comes while the main thread works")]
pub(crate) fn on_interrupt(last_words: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let waiting = runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::spawn(move || {
        if waiting.block_on(signal()).is_ok() {
            last_words();
            std::process::exit(INTERRUPTED);
        }
    });
    Ok(())
}

#[cfg(unix)]
async fn signal() -> io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::select! {
        interrupted = tokio::signal::ctrl_c() => interrupted,
        _ = terminate.recv() => Ok(()),
    }
}

#[cfg(not(unix))]
async fn signal() -> io::Result<()> {
    tokio::signal::ctrl_c().await
}
