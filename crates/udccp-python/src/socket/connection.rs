//! Connections for Python.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker, ready};

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

/// A DCCP connection. In each call, `timeout_s` is `None` to wait for ever, or 0 not to wait.
#[pyclass(frozen, module = "udccp._native")]
pub(super) struct Connection {
    connection: blocking::Connection,
    is_closed: AtomicBool,
}

impl Connection {
    pub(super) fn new(connection: blocking::Connection) -> Self {
        Self { connection, is_closed: AtomicBool::new(false) }
    }

    /// Removes the registration of a waiting task.
    fn forget(&self) -> impl Fn(&Waker) + Sync {
        |task| self.connection.remove_waker(task)
    }

    /// Repeats `attempt` until it has a result, and waits for messages in between.
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
                // A message may have arrived since the attempt.
                ready!(self.connection.poll_readable(cx).map_err(|e| raise(&e)))?;
            }
        })
    }

    /// Repeats `attempt` until it has a result, and waits for room in the send queue in between.
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

    /// The next message; `None` at the orderly end.
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

    /// Up to `most` messages; waits only for the first. Empty at the orderly end.
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

    /// Sends one message with its own settings. They are read here, so that errors can name them.
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

    /// Sends messages in order with few system calls. Returns the number of queued messages. If
    /// time runs out or the connection fails after some were queued, it is less than all.
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
                // These errors concern a message that has been taken from the list.
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

    /// The next message, cut to `most` bytes, with its full length and whether it was corrupted;
    /// `None` at the end.
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

    /// Copies the next message into `buffer`, at most `most` bytes unless that is 0. Returns the
    /// number of bytes copied and the full length; `None` at the end.
    #[pyo3(signature = (buffer, most, timeout_s, peek = false))]
    fn recv_into(
        &self,
        py: Python<'_>,
        buffer: &Bound<'_, PyAny>,
        most: usize,
        timeout_s: Option<f64>,
        peek: bool,
    ) -> PyResult<Option<(usize, usize, bool)>> {
        // Checked first, because a message must not be lost for want of a valid buffer.
        let room = Room::of(buffer)?;
        if most > room.len() {
            return Err(PyValueError::new_err("nbytes is greater than the length of the buffer"));
        }
        let Some((data, is_corrupt)) = self.next(py, timeout_s, peek)? else { return Ok(None) };
        Ok(Some((room.fill(&data, most)?, data.len(), is_corrupt)))
    }

    /// Up to `most` messages; waits only for the first. Empty at the end.
    fn recv_many<'py>(
        &self,
        py: Python<'py>,
        most: usize,
        timeout_s: Option<f64>,
    ) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let all = self.next_many(py, most, timeout_s)?;
        Ok(all.iter().map(|data| PyBytes::new(py, data)).collect())
    }

    /// Reads a message into each of the buffers; waits only for the first. Returns their full
    /// lengths; none at the end.
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

    /// The next event; `None` after the last event of a connection that has ended.
    fn event(&self, py: Python<'_>, timeout_s: Option<f64>) -> PyResult<Option<Event>> {
        wait::until(py, timeout_s, &self.is_closed, None, self.forget(), |cx| {
            let mut nobody = Context::from_waker(Waker::noop());
            event::poll_event(&self.connection, cx.unwrap_or(&mut nobody)).map(Ok)
        })
    }

    /// An object that reads the same events and has a descriptor to wait on.
    fn events(&self, py: Python<'_>) -> PyResult<Events> {
        border::guard(py, || Events::of(&self.connection))
    }

    /// Length in bytes of the next message, if there is one.
    fn next_len(&self) -> Option<usize> {
        self.connection.next_len()
    }

    /// A descriptor that is ready if a call would not wait.
    fn fileno(&self, py: Python<'_>) -> PyResult<i32> {
        border::guard(py, || Ok(self.connection.readiness().map_err(|e| raise(&e))?.as_raw_fd()))
    }

    /// A wait for `close`, `closed`, `flushed` or `acknowledged`.
    fn waiter(&self, py: Python<'_>, what: &str) -> PyResult<Waiter> {
        let poll: PollFunction = match what {
            "close" => blocking::Connection::poll_close,
            "closed" => blocking::Connection::poll_closed,
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

    /// Starts an orderly close. Messages that have arrived can still be read.
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

    /// The negotiated checksum coverage of data that we send and that we receive.
    fn coverage(&self) -> Option<(u8, u8)> {
        self.connection.coverage()
    }

    /// Linux's error number for the end of the connection; 0 after an orderly close; `None` before
    /// the end.
    fn end_errno(&self) -> Option<i32> {
        self.connection.close_reason().map(errno::of_close_reason)
    }

    /// The text that the peer sent with its Reset.
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

    /// All statistics of the connection, by the names in `udccp.ConnectionStats`.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        border::guard(py, || numbers::connection(py, &self.connection))
    }

    /// The kernel's `struct tfrc_tx_info` for the data that we send; `None` if the CCID has none.
    fn tx_info<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        numbers::tx_info(&self.connection).map(|info| PyBytes::new(py, &info))
    }

    /// The kernel's `struct tfrc_rx_info` for the data that we receive.
    fn rx_info<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        numbers::rx_info(&self.connection).map(|info| PyBytes::new(py, &info))
    }
}
