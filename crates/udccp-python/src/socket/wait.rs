//! Waits without the interpreter lock, and handles signals meanwhile.
//!
//! A blocking call first tries. If it has to wait for long, it sleeps on a descriptor. A signal
//! interrupts the sleep and its handler runs; then the wait continues unless the handler raised an
//! exception (PEP 475).

use std::io;
use std::os::fd::{AsRawFd, RawFd};
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
use udccp::blocking;

use super::settings::duration;
use crate::border;

/// Longest sleep before checking for things that no descriptor reports: another thread closed the
/// socket, or a signal was delivered to a thread outside Python.
const LOOK_EVERY: Duration = Duration::from_millis(500);

#[cfg(not(target_vendor = "apple"))]
const QUIETLY: SendFlags = SendFlags::NOSIGNAL.union(SendFlags::DONTWAIT);
#[cfg(target_vendor = "apple")]
const QUIETLY: SendFlags = SendFlags::DONTWAIT;

/// The error of a non-blocking call that would wait.
pub(super) fn would_block() -> PyErr {
    let errno = Errno::AGAIN.raw_os_error();
    PyBlockingIOError::new_err((errno, "Resource temporarily unavailable"))
}

/// The error of a call on a closed socket.
pub(super) fn closed() -> PyErr {
    PyOSError::new_err((Errno::BADF.raw_os_error(), "Bad file descriptor"))
}

#[expect(clippy::disallowed_methods, reason = "a blocking call owns its timeout")]
fn now() -> Instant {
    Instant::now()
}

/// How long a call first waits in the socket layer, where signals cannot interrupt it.
const DRIVE_FOR: Duration = Duration::from_millis(20);

/// Waits in the socket layer for at most this long. Errors are left to the next attempt.
pub(super) type Drive<'a> = &'a (dyn Fn(Duration) + Sync);

/// Repeats `attempt` until it has a result, for at most `timeout_s` (`None`: for ever; 0: once).
///
/// The first wait is short and calls `drive`. There the thread may drive the socket itself, which
/// is fastest, but only if no task is registered; so attempts get no task until then. Later waits
/// sleep on a descriptor that the task makes readable. At the end `forget` removes the registration
/// of the task, which holds a descriptor.
///
/// # Errors
/// Those of the attempts; `BlockingIOError`; `TimeoutError`; the exception of a signal handler;
/// `EBADF` after `is_closed` was set.
pub(super) fn until<T>(
    py: Python<'_>,
    timeout_s: Option<f64>,
    is_closed: &AtomicBool,
    mut drive: Option<Drive<'_>>,
    forget: impl Fn(&Waker) + Sync,
    mut attempt: impl FnMut(Option<&mut Context<'_>>) -> Poll<PyResult<T>>,
) -> PyResult<T> {
    border::guard(py, || {
        let timeout = timeout_s.map(duration).transpose()?;
        let mut deadline = None;
        let mut wake_fd: Option<Waits<'_>> = None;
        loop {
            if is_closed.load(Ordering::Relaxed) {
                return Err(closed());
            }
            let mut task = wake_fd.as_ref().map(|waits| waits.wake_fd.task());
            if let Poll::Ready(result) = attempt(task.as_mut()) {
                return result;
            }
            let mut longest = LOOK_EVERY;
            if let Some(timeout) = timeout {
                if timeout.is_zero() {
                    return Err(would_block());
                }
                // A deadline beyond the clock's range means for ever.
                let end = *deadline.get_or_insert_with(|| now().checked_add(timeout));
                let left = end.map_or(LOOK_EVERY, |end| end.saturating_duration_since(now()));
                if left.is_zero() {
                    return Err(PyTimeoutError::new_err("timed out"));
                }
                longest = longest.min(left);
            }
            match (&wake_fd, drive.take()) {
                (_, Some(drive)) => py.detach(|| drive(longest.min(DRIVE_FOR))),
                (Some(waits), None) => py.detach(|| waits.wake_fd.sleep(longest))?,
                // If descriptors run out, poll at short intervals.
                (None, None) => match WakeFd::new() {
                    Ok(new) => wake_fd = Some(Waits { wake_fd: new, forget: &forget }),
                    Err(e) if is_shortage(&e) => {
                        py.detach(|| sleep_briefly(longest.min(DRIVE_FOR)))
                    }
                    Err(e) => return Err(e.into()),
                },
            }
            py.check_signals()?;
        }
    })
}

/// A task whose registration is removed on drop.
struct Waits<'a> {
    wake_fd: WakeFd,
    forget: &'a (dyn Fn(&Waker) + Sync),
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        (self.forget)(&self.wake_fd.waker);
    }
}

/// Whether descriptors have run out, which may be temporary.
fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[expect(clippy::disallowed_methods, reason = "a blocking call owns its time")]
fn sleep_briefly(time: Duration) {
    std::thread::sleep(time);
}

/// A waker with the descriptor that it makes readable. Waking needs no interpreter lock.
pub(super) struct WakeFd {
    waker: Waker,
    read_end: UnixStream,
}

struct WriteEnd(UnixStream);

impl Wake for WriteEnd {
    fn wake(self: Arc<Self>) {
        // If the buffer is full, the descriptor is readable already.
        let _ = send(&self.0, &[1], QUIETLY);
    }
}

impl WakeFd {
    pub(super) fn new() -> io::Result<Self> {
        let (write_end, read_end) = UnixStream::pair()?;
        Ok(Self { waker: Waker::from(Arc::new(WriteEnd(write_end))), read_end })
    }

    /// The task for waiting on the descriptor.
    pub(super) fn task(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Removes the registration of the task with a connection.
    pub(super) fn leave(&self, connection: &blocking::Connection) {
        connection.remove_waker(&self.waker);
    }

    /// Sleeps until the descriptor is readable or a signal arrives, and clears it.
    fn sleep(&self, longest: Duration) -> PyResult<()> {
        let longest = Timespec {
            tv_sec: longest.as_secs() as i64,
            tv_nsec: i64::from(longest.subsec_nanos()) as _,
        };
        match poll(&mut [PollFd::new(&self.read_end, PollFlags::IN)], Some(&longest)) {
            Ok(_) => self.clear(),
            Err(Errno::INTR) => {}
            Err(e) => return Err(PyOSError::new_err((e.raw_os_error(), "poll"))),
        }
        Ok(())
    }

    pub(super) fn clear(&self) {
        let mut bytes = [0; 64];
        while recv(&self.read_end, &mut bytes, RecvFlags::DONTWAIT).is_ok_and(|(n, _)| n == 64) {}
    }
}

impl AsRawFd for WakeFd {
    fn as_raw_fd(&self) -> RawFd {
        self.read_end.as_raw_fd()
    }
}

/// A condition of a connection: the poll function to wait for it.
pub(super) type PollFunction =
    fn(&blocking::Connection, &mut Context<'_>) -> Poll<Result<(), udccp::Error>>;

/// A wait until a connection has ended, or until all data was sent or acknowledged, with a
/// descriptor that is readable when the condition may hold.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Waiter {
    connection: blocking::Connection,
    poll: PollFunction,
    wake_fd: WakeFd,
}

impl Waiter {
    pub(super) fn new(connection: &blocking::Connection, poll: PollFunction) -> PyResult<Self> {
        Ok(Self { connection: connection.clone(), poll, wake_fd: WakeFd::new()? })
    }

    fn attempt(&self, cx: &mut Context<'_>) -> Poll<PyResult<()>> {
        (self.poll)(&self.connection, cx).map_err(|e| super::raise(&e))
    }
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.wake_fd.leave(&self.connection);
    }
}

#[pymethods]
impl Waiter {
    /// Whether the condition holds.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        border::guard(py, || {
            self.wake_fd.clear();
            match self.attempt(&mut self.wake_fd.task()) {
                Poll::Ready(result) => result.map(|()| true),
                Poll::Pending => Ok(false),
            }
        })
    }

    /// Waits until the condition holds.
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        let forget = |task: &Waker| self.connection.remove_waker(task);
        until(py, timeout_s, &AtomicBool::new(false), None, forget, |cx| match cx {
            Some(cx) => self.attempt(cx),
            None => self.attempt(&mut self.wake_fd.task()),
        })
    }

    fn fileno(&self) -> i32 {
        self.wake_fd.as_raw_fd()
    }
}
