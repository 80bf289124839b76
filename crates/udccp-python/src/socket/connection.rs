//! Connections for Python.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use bytes::Bytes;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use udccp::{Error, Outgoing, QueuePolicy, TryRecvError, blocking, errno};

use super::address::{self, Parts};
use super::buffer::{self, Room};
use super::event::{self, Event, Events};
use super::settings::{duration, read, read_time_or_none};
use super::wait::{self, PollFunction, Waiter};
use super::{numbers, raise};
use crate::border;

/// A DCCP connection. `timeout_s` of each call: `None` waits for ever, 0 not at all.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Connection {
    connection: blocking::Connection,
    is_closed: AtomicBool,
}

impl Connection {
    pub(super) fn new(connection: blocking::Connection) -> Self {
        Self { connection, is_closed: AtomicBool::new(false) }
    }

    /// Lets go of a task that waited.
    fn forget(&self) -> impl Fn(&Waker) + Sync {
        |task| self.connection.forget_task(task)
    }

    /// Takes what has arrived until there is a result, waiting for a message.
    fn until_read<T>(
        &self,
        py: Python<'_>,
        timeout_s: Option<f64>,
        mut attempt: impl FnMut() -> Result<T, TryRecvError>,
        at_end: impl Fn() -> T,
    ) -> PyResult<T> {
        let drive = |longest| drop(self.connection.readable(Some(longest)));
        wait::until(py, timeout_s, &self.is_closed, Some(&drive), self.forget(), |mut cx| {
            loop {
                match attempt() {
                    Ok(result) => return Poll::Ready(Ok(result)),
                    Err(TryRecvError::Ended(Error::Closed)) => return Poll::Ready(Ok(at_end())),
                    Err(TryRecvError::Ended(e)) => return Poll::Ready(Err(raise(&e))),
                    Err(TryRecvError::Empty) => {}
                }
                let Some(cx) = &mut cx else { return Poll::Pending };
                // A message may have arrived since.
                ready!(self.connection.poll_readable(cx).map_err(|e| raise(&e)))?;
            }
        })
    }

    /// Tries until there is a result, waiting for room in the send queue.
    fn until_sent(
        &self,
        py: Python<'_>,
        timeout_s: Option<f64>,
        mut attempt: impl FnMut(&mut Context<'_>) -> Poll<Result<(), Error>>,
    ) -> PyResult<()> {
        let drive = |longest| drop(self.connection.writable(Some(longest)));
        wait::until(py, timeout_s, &self.is_closed, Some(&drive), self.forget(), |cx| {
            let mut nobody = Context::from_waker(Waker::noop());
            attempt(cx.unwrap_or(&mut nobody)).map_err(|e| raise(&e))
        })
    }

    /// The next message, `None` at the orderly end.
    fn next(
        &self,
        py: Python<'_>,
        timeout_s: Option<f64>,
        peek: bool,
    ) -> PyResult<Option<(Bytes, bool)>> {
        let attempt = || match peek {
            true => self.connection.try_peek().map(|data| Some((data, false))),
            false => self.connection.try_recv_with_meta().map(|m| Some((m.data, m.is_corrupt))),
        };
        self.until_read(py, timeout_s, attempt, || None)
    }

    /// Sends one message. Returns its length in bytes.
    fn send_one(
        &self,
        py: Python<'_>,
        message: Outgoing,
        timeout_s: Option<f64>,
    ) -> PyResult<usize> {
        let len = message.len();
        let mut slot = Some(message);
        self.until_sent(py, timeout_s, |cx| self.connection.poll_send(cx, &mut slot))?;
        Ok(len)
    }

    /// Up to `most` messages, waiting for the first; none at the orderly end.
    fn next_many(
        &self,
        py: Python<'_>,
        most: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Vec<Bytes>> {
        let attempt = || self.connection.try_recv_batch(most);
        self.until_read(py, timeout_s, attempt, Vec::new)
    }
}

#[pymethods]
impl Connection {
    /// Sends one message. Returns its length in bytes.
    fn send(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout_s: Option<f64>,
    ) -> PyResult<usize> {
        self.send_one(py, Outgoing::new(buffer::message(data)?), timeout_s)
    }

    /// Sends one message with numbers of its own, which are read here: an error names them.
    fn send_with(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        timeout_s: Option<f64>,
        priority: &Bound<'_, PyAny>,
        lifetime_s: &Bound<'_, PyAny>,
        token: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let priority = read(priority, "priority", "int, 0 to 2**32 - 1")?;
        let mut message = Outgoing::new(buffer::message(data)?).priority(priority);
        if let Some(lifetime) = read_time_or_none(lifetime_s, "lifetime_s")? {
            message = message.lifetime(lifetime);
        }
        if let Some(token) = read(token, "token", "int, 0 to 2**64 - 1, or None")? {
            message = message.token(token);
        }
        self.send_one(py, message, timeout_s)
    }

    /// Sends messages in order with few system calls. Returns how many were queued: all of them, or
    /// those before the time was over or the connection failed, if there are any.
    fn send_many(
        &self,
        py: Python<'_>,
        messages: Vec<Bound<'_, PyAny>>,
        timeout_s: Option<f64>,
    ) -> PyResult<usize> {
        let all = messages.iter().map(buffer::message).collect::<PyResult<Vec<_>>>()?;
        let total = all.len();
        let mut rest = all.into_iter().map(Outgoing::new);
        let mut slot = None;
        let mut is_lost = false;
        let outcome = self.until_sent(py, timeout_s, |cx| {
            let polled = self.connection.poll_send_batch(cx, &mut slot, &mut rest);
            if let Poll::Ready(Err(e)) = &polled {
                // These are said of a message, which was taken.
                is_lost =
                    matches!(e, Error::MessageTooLarge { .. } | Error::Closed | Error::Lost(_));
            }
            polled
        });
        let queued = total - rest.len() - usize::from(slot.is_some()) - usize::from(is_lost);
        match outcome {
            Err(e) if queued == 0 || !e.is_instance_of::<pyo3::exceptions::PyOSError>(py) => Err(e),
            _ => Ok(queued),
        }
    }

    /// The next message, cut to `most` bytes, with its whole length and whether it was damaged on
    /// the way; `None` at the end.
    #[pyo3(signature = (most, timeout_s, peek = false))]
    fn recv<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        timeout_s: Option<f64>,
        peek: bool,
    ) -> PyResult<Option<(Bound<'py, PyBytes>, usize, bool)>> {
        let received = self.next(py, timeout_s, peek)?;
        Ok(received.map(|(data, is_corrupt)| {
            let kept = &data[..data.len().min(most)];
            (PyBytes::new(py, kept), data.len(), is_corrupt)
        }))
    }

    /// The next message, cut to `most` bytes; empty at the end.
    fn recv_data<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = self.next(py, timeout_s, false)?.map(|(data, _)| data).unwrap_or_default();
        Ok(PyBytes::new(py, &data[..data.len().min(most)]))
    }

    /// The next message, copied into `buffer`, at most `most` bytes if that is not 0: bytes copied
    /// and its whole length; `None` at the end.
    #[pyo3(signature = (buffer, most, timeout_s, peek = false))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        most: usize,
        timeout_s: Option<f64>,
        peek: bool,
    ) -> PyResult<Option<(usize, usize, bool)>> {
        // Looked at first: a message must not be taken and then find no room.
        let room = Room::of(buffer)?;
        if most > room.len() {
            return Err(PyValueError::new_err("nbytes is greater than the length of the buffer"));
        }
        let Some((data, is_corrupt)) = self.next(py, timeout_s, peek)? else { return Ok(None) };
        Ok(Some((room.fill(&data, most)?, data.len(), is_corrupt)))
    }

    /// Up to `most` messages, waiting for the first; none at the end.
    fn recv_many<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let all = self.next_many(py, most, timeout_s)?;
        Ok(all.iter().map(|data| PyBytes::new(py, data)).collect())
    }

    /// A message into each of the buffers, waiting for the first: their whole lengths; none at the
    /// end.
    fn recv_many_into(
        &self,
        py: Python<'_>,
        buffers: Vec<Bound<'_, PyAny>>,
        timeout_s: Option<f64>,
    ) -> PyResult<Vec<usize>> {
        let rooms = buffers.iter().map(Room::of).collect::<PyResult<Vec<_>>>()?;
        if rooms.is_empty() {
            return Err(PyTypeError::new_err("one or more buffers are required"));
        }
        let all = self.next_many(py, rooms.len(), timeout_s)?;
        let fill = |(room, data): (&Room<'_>, &Bytes)| room.fill(data, 0).map(|_| data.len());
        rooms.iter().zip(&all).map(fill).collect()
    }

    /// The next event; `None` once the connection has ended and all were read.
    fn event(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<Event>> {
        wait::until(py, timeout_s, &self.is_closed, None, self.forget(), |cx| {
            let mut nobody = Context::from_waker(Waker::noop());
            event::poll_event(&self.connection, cx.unwrap_or(&mut nobody)).map(Ok)
        })
    }

    /// The same events with a descriptor to wait on.
    fn events(&self, py: Python<'_>) -> PyResult<Events> {
        border::guard(py, || Events::of(&self.connection))
    }

    /// Length in bytes of the next message, if one waits.
    fn next_len(&self) -> Option<usize> {
        self.connection.next_len()
    }

    /// A descriptor that is ready whenever a call would not wait.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        border::guard(py, || Ok(self.connection.readiness().map_err(|e| raise(&e))?.as_raw_fd()))
    }

    /// What is waited for: `closed`, `flushed` or `acknowledged`.
    fn waiter(&self, py: Python<'_>, what: &str) -> PyResult<Waiter> {
        let poll: PollFunction = match what {
            "closed" => blocking::Connection::poll_close,
            "ended" => blocking::Connection::poll_closed,
            "flushed" => blocking::Connection::poll_flushed,
            "acknowledged" => blocking::Connection::poll_acknowledged,
            _ => return Err(PyValueError::new_err(format!("there is no state \"{what}\""))),
        };
        border::guard(py, || Waiter::new(&self.connection, poll))
    }

    /// Starts an orderly close, and ends the calls of other threads.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.is_closed.store(true, Ordering::Relaxed);
        border::guard(py, || {
            self.connection.start_close();
            Ok(())
        })
    }

    /// Starts an orderly close. What has arrived can still be read.
    fn start_close(&self, py: Python<'_>) -> PyResult<()> {
        border::guard(py, || {
            self.connection.start_close();
            Ok(())
        })
    }

    fn abort(&self, py: Python<'_>) -> PyResult<()> {
        border::guard(py, || {
            self.connection.abort();
            Ok(())
        })
    }

    fn shutdown_read(&self, py: Python<'_>) -> PyResult<()> {
        border::guard(py, || {
            self.connection.shutdown_read();
            Ok(())
        })
    }

    fn set_linger(&self, seconds: f64) -> PyResult<()> {
        self.connection.set_linger(duration(seconds)?);
        Ok(())
    }

    fn set_send_queue(&self, bytes: usize, messages: usize) {
        self.connection.set_send_queue(bytes.max(1), messages.max(1));
    }

    fn set_drop_lowest(&self, drops: bool) {
        let policy = if drops { QueuePolicy::DropLowest } else { QueuePolicy::Refuse };
        self.connection.set_queue_policy(policy);
    }

    fn set_server_timewait(&self, holds: bool) {
        self.connection.set_server_timewait(holds);
    }

    /// Checksum coverage that was agreed on, of what we send and of what we receive.
    fn coverage(&self) -> Option<(u8, u8)> {
        self.connection.coverage()
    }

    /// The number of Linux's error that the connection ended with; 0 in order; `None` if it has not
    /// ended.
    fn end_errno(&self) -> Option<i32> {
        self.connection.close_reason().map(errno::of_end)
    }

    /// What the peer said in words when it reset the connection.
    fn reset_text(&self) -> Option<String> {
        self.connection.reset_text()
    }

    fn service(&self) -> u32 {
        self.connection.service_code().0
    }

    fn max_message_size(&self) -> usize {
        self.connection.max_message_size()
    }

    fn local_addr(&self) -> Parts {
        address::parts(self.connection.local_addr())
    }

    fn peer_addr(&self) -> Parts {
        address::parts(self.connection.peer_addr())
    }

    /// Everything that can be said of the connection in numbers, by the names of
    /// `udccp.ConnectionStats`.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        border::guard(py, || numbers::connection(py, &self.connection))
    }

    /// The kernel's `struct tfrc_tx_info` of the data that we send; `None` where the CCID has none.
    fn tx_info<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        numbers::tx_info(&self.connection).map(|info| PyBytes::new(py, &info))
    }

    /// The kernel's `struct tfrc_rx_info` of the data that we receive.
    fn rx_info<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        numbers::rx_info(&self.connection).map(|info| PyBytes::new(py, &info))
    }
}

/// A time in seconds.
pub(super) fn seconds(time: Option<Duration>) -> Option<f64> {
    time.map(|time| time.as_secs_f64())
}
