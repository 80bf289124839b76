//! Waits without the interpreter, and answers signals meanwhile.
//!
//! A blocking call of Python tries, and where it would wait for long it sleeps on a descriptor. A
//! signal interrupts that, its handler runs, and the wait goes on unless the handler raised
//! (PEP 475).

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

/// How long a call first waits in the socket layer, where no signal interrupts it.
const DRIVE_FOR: Duration = Duration::from_millis(20);

/// Waits in the socket layer, for at most this long. What went wrong the next attempt says.
pub(super) type Drive<'a> = &'a (dyn Fn(Duration) + Sync);

/// Tries until there is a result, for at most `timeout_s` (`None`: for ever; 0: once).
///
/// The first wait is short and is that of `drive`, where the thread may drive the socket itself,
/// which is quickest: if nobody else waits, so that the attempts until then leave no task. Those
/// after it sleep on a descriptor that their task makes readable. However the wait ends, `forget`
/// has what was waited for let go of the task, which holds a descriptor.
///
/// # Errors
/// Those of the attempts; `BlockingIOError`; `TimeoutError`; what a signal handler raised; `EBADF`
/// once `is_closed`.
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
                    return Err(would_wait());
                }
                // A time beyond what the clock can tell is for ever.
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
                // Without descriptors, it looks again every now and then.
                (None, None) => match WakeFd::new() {
                    Ok(new) => wake_fd = Some(Waits { wake_fd: new, forget: &forget }),
                    Err(e) if is_shortage(&e) => py.detach(|| nap(longest.min(DRIVE_FOR))),
                    Err(e) => return Err(e.into()),
                },
            }
            py.check_signals()?;
        }
    })
}

/// A task that is forgotten at its end.
struct Waits<'a> {
    wake_fd: WakeFd,
    forget: &'a (dyn Fn(&Waker) + Sync),
}

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        (self.forget)(&self.wake_fd.waker);
    }
}

/// Whether there are too few descriptors, which others may give back.
fn is_shortage(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}

#[expect(clippy::disallowed_methods, reason = "a blocking call owns its time")]
fn nap(time: Duration) {
    std::thread::sleep(time);
}

/// A waker, and the descriptor that it makes readable. It needs no interpreter for that.
pub(super) struct WakeFd {
    waker: Waker,
    read_end: UnixStream,
}

struct WriteEnd(UnixStream);

impl Wake for WriteEnd {
    fn wake(self: Arc<Self>) {
        // Full means that it is readable already.
        let _ = send(&self.0, &[1], QUIETLY);
    }
}

impl WakeFd {
    pub(super) fn new() -> io::Result<Self> {
        let (write_end, read_end) = UnixStream::pair()?;
        Ok(Self { waker: Waker::from(Arc::new(WriteEnd(write_end))), read_end })
    }

    /// The task of who sleeps on the descriptor.
    pub(super) fn task(&self) -> Context<'_> {
        Context::from_waker(&self.waker)
    }

    /// Has a connection let go of the task.
    pub(super) fn leave(&self, connection: &blocking::Connection) {
        connection.forget_task(&self.waker);
    }

    /// Sleeps until it is readable or a signal comes, and clears it.
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

/// Something of a connection that is waited for: its function for hand-written futures.
pub(super) type PollFunction =
    fn(&blocking::Connection, &mut Context<'_>) -> Poll<Result<(), udccp::Error>>;

/// A wait for the end of a connection, or for what was sent to leave or to be accounted for, with a
/// descriptor that is readable when it is worth asking again.
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
    /// Whether it has come true.
    fn poll(&self, py: Python<'_>) -> PyResult<bool> {
        border::guard(py, || {
            self.wake_fd.clear();
            match self.attempt(&mut self.wake_fd.task()) {
                Poll::Ready(result) => result.map(|()| true),
                Poll::Pending => Ok(false),
            }
        })
    }

    /// Waits for it.
    fn wait(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<()> {
        let forget = |task: &Waker| self.connection.forget_task(task);
        until(py, timeout_s, &AtomicBool::new(false), None, forget, |cx| match cx {
            Some(cx) => self.attempt(cx),
            None => self.attempt(&mut self.wake_fd.task()),
        })
    }

    fn fileno(&self) -> i32 {
        self.wake_fd.as_raw_fd()
    }
}
