//! The boundary between Python and Rust: a panic becomes an exception, and long work runs without
//! the interpreter lock and can be interrupted.

use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error;

/// Interval at which the waiting thread checks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// The message of a panic.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Calls `work`; a panic in it becomes an `InternalError`.
///
/// # Errors
/// Those of `work`, and `InternalError`.
pub(crate) fn guard<T>(py: Python<'_>, work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => Err(error::internal(py, &panic_message(panic.as_ref()))),
    }
}

/// Runs `work` in a separate thread without the interpreter lock, while this thread handles
/// signals. `work` gets a flag that asks it to end early.
///
/// # Errors
/// The exception of a signal handler (`KeyboardInterrupt`), or `InternalError` after a panic.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, result) = sync_channel(1);
    // Only this thread reads it. The lock makes it `Sync`, as `detach` requires.
    let result = Mutex::new(result);
    let result = || result.lock().unwrap_or_else(PoisonError::into_inner);
    thread::scope(|scope| {
        let stop = &stop;
        let begun =
            thread::Builder::new().name("udccp".to_owned()).spawn_scoped(scope, move || {
                let _ = done.send(catch_unwind(AssertUnwindSafe(|| work(stop))));
            });
        begun.map_err(|e| error::raise(py, "RunError", format!("no thread to run in: {e}")))?;
        loop {
            match py.detach(|| result().recv_timeout(LOOK_EVERY)) {
                Ok(Ok(value)) => return Ok(value),
                Ok(Err(panic)) => return Err(error::internal(py, &panic_message(panic.as_ref()))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(error::internal(py, "the thread ended without a result"));
                }
            }
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                // The scope waits for the thread, which may need the interpreter lock, so wait here
                // without it.
                let _ = py.detach(|| result().recv());
                return Err(signal);
            }
        }
    })
}

/// Panics in this thread or in the worker thread, to test the conversion to an exception.
#[pyfunction]
pub(crate) fn panic_for_test(py: Python<'_>, place: &str) -> PyResult<()> {
    guard(py, || match place {
        "thread" => interruptible(py, |_| panic!("a test in a thread")),
        _ => panic!("a test here"),
    })
}
