//! Receives messages, and reports the end.

use std::task::Poll;

use bytes::Bytes;
use udccp_base::{Instant, Payload};
use udccp_proto::{self as proto, CloseReason};

use super::calls::stopped;
use super::core::Core;
use super::handle::ConnHandle;
use super::waiters::{WaitFor, Waiter};
use crate::io::Io;
use crate::{Error, Received, TryRecvError};

impl ConnHandle {
    /// Waits until there is something to read, or the end.
    pub(crate) fn poll_readable(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, io, now| {
            if core.endpoint.is_readable(self.id) {
                return Poll::Ready(Ok(()));
            }
            self.wait_to_read(core, io, now, waiter)
        })
    }

    /// The next message, or `None` at the orderly end.
    pub(crate) fn poll_recv(&self, waiter: Waiter<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        self.poll_recv_with_meta(waiter).map_ok(|message| message.map(|m| m.data))
    }

    /// The next message with its metadata, or `None` at the orderly end.
    pub(crate) fn poll_recv_with_meta(
        &self,
        waiter: Waiter<'_>,
    ) -> Poll<Result<Option<Received>, Error>> {
        self.poll_with(waiter, |core, io, now| match core.endpoint.recv_with_meta(now, self.id) {
            Ok(Some(message)) => {
                core.flush_released(io, now);
                Poll::Ready(Ok(Some(Received::of(message))))
            }
            Ok(None) => self.wait_to_read(core, io, now, waiter).map_ok(|()| None),
            Err(e) => Poll::Ready(self.end_of_reading(core, e).map(|()| None)),
        })
    }

    /// Up to `max` messages, at least one; 0 at the orderly end.
    pub(crate) fn poll_recv_batch(
        &self,
        waiter: Waiter<'_>,
        into: &mut Vec<Bytes>,
        max: usize,
    ) -> Poll<Result<usize, Error>> {
        self.poll_with(waiter, |core, io, now| match self.take_batch(core, io, now, into, max) {
            Ok(0) if max > 0 => self.wait_to_read(core, io, now, waiter).map_ok(|()| 0),
            Ok(count) => Poll::Ready(Ok(count)),
            Err(e) => Poll::Ready(self.end_of_reading(core, e).map(|()| 0)),
        })
    }

    /// Takes up to `max` messages, and returns their number. An error only if there is none.
    fn take_batch(
        &self,
        core: &mut Core,
        io: &Io,
        now: Instant,
        into: &mut Vec<Bytes>,
        max: usize,
    ) -> Result<usize, proto::RecvError> {
        let mut take = |payload| into.push(into_bytes(payload));
        let count = core.endpoint.recv_many(self.id, max, &mut take);
        if count > 0 {
            core.flush_released(io, now);
        } else if max > 0 {
            // There is no message, and there may never be one.
            core.endpoint.recv(now, self.id)?;
        }
        Ok(count)
    }

    /// Up to `max` messages, at least one; or why there is none, without waiting.
    pub(crate) fn try_recv_batch(&self, max: usize) -> Result<Vec<Bytes>, TryRecvError> {
        let received = self.with(|core, io, now| {
            let mut all = Vec::new();
            match self.take_batch(core, io, now, &mut all, max) {
                Ok(0) if max > 0 => Err(self.nothing_yet(core)),
                Ok(_) => Ok(all),
                Err(e) => Err(self.end_at_once(core, e)),
            }
        });
        received?
    }

    /// The next message; or why there is none, without waiting.
    pub(crate) fn try_recv(&self) -> Result<Received, TryRecvError> {
        let received =
            self.with(|core, io, now| match core.endpoint.recv_with_meta(now, self.id) {
                Ok(Some(message)) => {
                    core.flush_released(io, now);
                    Ok(Received::of(message))
                }
                Ok(None) => Err(self.nothing_yet(core)),
                Err(e) => Err(self.end_at_once(core, e)),
            });
        received?
    }

    /// The message that `recv` would return, which stays in the queue; or why there is none,
    /// without waiting.
    pub(crate) fn try_peek(&self) -> Result<Bytes, TryRecvError> {
        let peeked = self.with(|core, _, now| {
            if let Some(payload) = core.endpoint.peek(self.id) {
                return Ok(into_bytes(payload));
            }
            match core.endpoint.recv(now, self.id) {
                Err(e) => Err(self.end_at_once(core, e)),
                Ok(_) => Err(self.nothing_yet(core)),
            }
        });
        peeked?
    }

    /// The message that `recv` would return, which stays in the queue; `None` at the orderly end.
    pub(crate) fn poll_peek(&self, waiter: Waiter<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        self.poll_with(waiter, |core, io, now| {
            if let Some(payload) = core.endpoint.peek(self.id) {
                return Poll::Ready(Ok(Some(into_bytes(payload))));
            }
            match core.endpoint.recv(now, self.id) {
                Err(e) => Poll::Ready(self.end_of_reading(core, e).map(|()| None)),
                Ok(_) => self.wait_to_read(core, io, now, waiter).map_ok(|()| None),
            }
        })
    }

    /// Length of the next message, if one waits.
    pub(crate) fn next_len(&self) -> Option<usize> {
        self.with(|core, _, _| core.endpoint.peek(self.id).map(|p| p.len())).ok().flatten()
    }

    fn end_at_once(&self, core: &Core, e: proto::RecvError) -> TryRecvError {
        TryRecvError::Ended(self.end_of_reading(core, e).err().unwrap_or(Error::Closed))
    }

    fn wait_to_read(
        &self,
        core: &mut Core,
        io: &Io,
        now: Instant,
        waiter: Waiter<'_>,
    ) -> Poll<Result<(), Error>> {
        if core.driver.stopped {
            return Poll::Ready(Err(stopped()));
        }
        if core.endpoint.is_close_unconfirmed(self.id) {
            return Poll::Ready(Err(Error::Lost(CloseReason::CloseTimeout)));
        }
        match core.conns.get_mut(self.id) {
            Some(conn) => conn.waiting.add(WaitFor::Message, waiter),
            None => return Poll::Ready(Err(Error::Closed)),
        }
        core.reader_waits(io, now, self.id);
        Poll::Pending
    }

    /// The result of reading after all messages were read.
    fn end_of_reading(&self, core: &Core, e: proto::RecvError) -> Result<(), Error> {
        let was_open = core.conns.get(self.id).is_some_and(|c| c.ended.is_none());
        match e {
            // Nobody closed it: its driver has ended.
            proto::RecvError::Closed(_) if core.driver.stopped && was_open => Err(stopped()),
            proto::RecvError::Closed(reason) if !reason.is_orderly() => Err(Error::Lost(reason)),
            _ => Ok(()),
        }
    }

    /// There is nothing to read now. Without a driver, or after a close that was not confirmed,
    /// waiting would be useless.
    fn nothing_yet(&self, core: &Core) -> TryRecvError {
        match core.driver.stopped {
            true => stopped().into(),
            false if core.endpoint.is_close_unconfirmed(self.id) => {
                Error::Lost(CloseReason::CloseTimeout).into()
            }
            false => TryRecvError::Empty,
        }
    }
}

fn into_bytes(payload: Payload) -> Bytes {
    match payload {
        Payload::Bytes(bytes) => bytes,
        zeros @ Payload::Zeros(_) => zeros.to_bytes(),
    }
}

impl Received {
    fn of(delivery: proto::Delivery) -> Self {
        Self { data: into_bytes(delivery.payload), is_corrupt: delivery.is_corrupt }
    }
}
