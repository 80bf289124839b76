//! Crosses the border between Python and Rust: a panic becomes an exception, and work that takes
//! long is done without the interpreter and can be interrupted.

use core::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;

use crate::error;

/// How often the waiting thread looks for signals.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// What a panic said.
fn words(panic: &(dyn Any + Send)) -> String {
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
        Err(panic) => Err(error::internal(py, &words(panic.as_ref()))),
    }
}

/// Does `work` in a thread of its own, without the interpreter, while this thread answers signals.
/// `work` is given a flag that is set when it is to end early.
///
/// # Errors
/// What a signal handler raised (`KeyboardInterrupt`), or `InternalError` after a panic.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    work: impl FnOnce(&Arc<AtomicBool>) -> T + Send,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let (done, result) = sync_channel(1);
    // Only this thread reads it; the lock lets it be read while other threads run Python.
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
                Ok(Err(panic)) => return Err(error::internal(py, &words(panic.as_ref()))),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(error::internal(py, "the thread ended without a result"));
                }
            }
            if let Err(signal) = py.check_signals() {
                stop.store(true, Ordering::Relaxed);
                // The scope waits for the thread, which needs no interpreter but may want it.
                let _ = py.detach(|| result().recv());
                return Err(signal);
            }
        }
    })
}

/// Panics in this thread or in one that runs, to show what becomes of it.
#[pyfunction]
pub(crate) fn panic_for_test(py: Python<'_>, place: &str) -> PyResult<()> {
    guard(py, || match place {
        "thread" => interruptible(py, |_| panic!("a test in a thread")),
        _ => panic!("a test here"),
    })
}
