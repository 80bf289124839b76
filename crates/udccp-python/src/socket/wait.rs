//! Waits on descriptors, without the interpreter, and answers signals meanwhile.
//!
//! A blocking call of Python tries, and where it would wait it polls the descriptor that `select`
//! and asyncio wait on, too. A signal interrupts the poll, its handler runs, and the wait goes on
//! unless the handler raised (PEP 475).

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyBlockingIOError, PyOSError, PyTimeoutError};
use pyo3::prelude::*;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use super::settings::duration;
use crate::border;

/// A wait sleeps for no longer before it looks for what no descriptor shows: that another thread
/// closed the socket, or that a signal came to a thread which is not Python's.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[cfg(not(target_vendor = "apple"))]
const QUIETLY: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
#[cfg(target_vendor = "apple")]
const QUIETLY: SendFlags = SendFlags::DONTWAIT;

/// The error of a call that would wait and must not.
pub(super) fn would_wait() -> PyErr {
    let errno = Errno::AGAIN.raw_os_error();
    PyBlockingIOError::new_err((errno, "Resource temporarily unavailable"))
}

/// The error of a call on a socket that is closed.
pub(super) fn closed() -> PyErr {
    PyOSError::new_err((Errno::BADF.raw_os_error(), "Bad file descriptor"))
}

#[expect(clippy::disallowed_methods, reason = "a blocking call owns its timeout")]
fn now() -> Instant {
    Instant::now()
}

/// Tries until there is a result, waiting for `events` of `fd` between the attempts, for at most
/// `timeout_s` (`None`: for ever; 0: not at all).
///
/// # Errors
/// Those of the attempts; `BlockingIOError`; `TimeoutError`; what a signal handler raised; `EBADF`
/// once `is_closed`.
pub(super) fn until<T, F: AsFd + Sync>(
    py: Python<'_>,
    fd: impl Fn() -> PyResult<F>,
    events: PollFlags,
    timeout_s: Option<f64>,
    is_closed: &AtomicBool,
    mut attempt: impl FnMut() -> PyResult<Option<T>>,
) -> PyResult<T> {
    border::guard(py, || {
        let timeout = timeout_s.map(duration).transpose()?;
        let mut deadline = None;
        loop {
            if is_closed.load(Ordering::Relaxed) {
                return Err(closed());
            }
            if let Some(result) = attempt()? {
                return Ok(result);
            }
            let mut sleep = LOOK_EVERY;
            if let Some(timeout) = timeout {
                if timeout.is_zero() {
                    return Err(would_wait());
                }
                // A time beyond what the clock can tell is for ever.
                let end = *deadline.get_or_insert_with(|| now().checked_add(timeout));
                let left = end.map_or(LOOK_EVERY, |end| end.saturating_duration_since(now()));
                if left.is_zero() {
                    return Err(PyTimeoutError::new_err("timed out"));
                }
                sleep = sleep.min(left);
            }
            let fd = fd()?;
            py.detach(|| sleep_until(&fd, events, sleep))?;
            py.check_signals()?;
        }
    })
}

fn sleep_until(fd: &impl AsFd, events: PollFlags, longest: Duration) -> PyResult<()> {
    let longest = Timespec {
        tv_sec: longest.as_secs() as i64,
        tv_nsec: i64::from(longest.subsec_nanos()) as _,
    };
    match poll(&mut [PollFd::new(fd, events)], Some(&longest)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(PyOSError::new_err((e.raw_os_error(), "poll"))),
    }
}

/// Rung by the thread that drives a connection. It needs no interpreter for that.
struct Bell(UnixStream);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Full means that it rings already.
        let _ = send(&self.0, &[1], QUIETLY);
    }
}

/// Something of a connection that is waited for: its function for hand-written futures.
pub(super) type PollFunction =
    Box<dyn Fn(&mut Context<'_>) -> Poll<Result<(), udccp::Error>> + Send + Sync>;

/// A wait for the end of a connection, or for what was sent to leave or to be accounted for, with a
/// descriptor that is readable when it is worth asking again.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Waiter {
    poll: PollFunction,
    waker: Waker,
    ear: UnixStream,
}

impl Waiter {
    pub(super) fn new(poll: PollFunction) -> PyResult<Self> {
        let (bell, ear) = UnixStream::pair()?;
        Ok(Self { poll, waker: Waker::from(Arc::new(Bell(bell))), ear })
    }

    fn attempt(&self) -> PyResult<Option<()>> {
        let mut rings = [0; 64];
        while recv(&self.ear, &mut rings, RecvFlags::DONTWAIT).is_ok_and(|(n, _)| n == 64) {}
        match (self.poll)(&mut Context::from_waker(&self.waker)) {
            Poll::Ready(Ok(())) => Ok(Some(())),
            Poll::Ready(Err(e)) => Err(super::raise(&e)),
            Poll::Pending => Ok(None),
        }
    }
}

#[pymethods]
impl Waiter {
    /// Whether it has come true.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        border::guard(py, || Ok(self.attempt()?.is_some()))
    }

    /// Waits for it.
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        let never = AtomicBool::new(false);
        until(py, || Ok(&self.ear), PollFlags::IN, timeout_s, &never, || self.attempt())
    }

    fn fileno(&self) -> i32 {
        self.ear.as_raw_fd()
    }
}
