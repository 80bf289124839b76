//! Queues messages, and waits until they are sent and their fate is known.

use std::task::Poll;

use udccp_base::Instant;
use udccp_proto as proto;

use super::calls::stopped;
use super::core::Core;
use super::handle::ConnHandle;
use super::waiters::{Conn, WaitFor, Waiter};
use crate::io::Io;
use crate::{Error, Outgoing};

impl ConnHandle {
    /// Queues one message when there is room, and takes it out of `slot`.
    pub(crate) fn poll_send(
        &self,
        waiter: Waiter<'_>,
        slot: &mut Option<Outgoing>,
    ) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, io, now| {
            while let Some(message) = slot.take() {
                match self.offer(core, io, now, message) {
                    Ok(()) => core.flush_burst(io, now),
                    Err(Refused::Full(message)) => {
                        *slot = Some(message);
                        return self.wait_for_room(core, waiter);
                    }
                    Err(Refused::Never(e)) => return Poll::Ready(Err(e)),
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Queues messages from an iterator while there is room. None is taken out of it before there
    /// is room, so that a cancelled call loses nothing; but if messages displace each other, one
    /// may wait in `slot`. Everything queued is sent with as few writes as possible.
    pub(crate) fn poll_send_batch(
        &self,
        waiter: Waiter<'_>,
        slot: &mut Option<Outgoing>,
        messages: &mut (impl Iterator<Item = Outgoing> + ?Sized),
    ) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, io, now| {
            let result = loop {
                let first = slot.take().map_or(Ok(()), |m| self.offer(core, io, now, m));
                match first.and_then(|()| self.offer_many(core, now, messages)) {
                    Ok(()) => {}
                    Err(Refused::Full(message)) => {
                        *slot = Some(message);
                        break self.wait_for_room(core, waiter);
                    }
                    Err(Refused::Never(e)) => break Poll::Ready(Err(e)),
                }
                if self.must_wait(core, io, now, messages) {
                    core.endpoint.want_writable(self.id);
                    break self.wait_for_room(core, waiter);
                }
                *slot = messages.next();
                if slot.is_none() {
                    break Poll::Ready(Ok(()));
                }
            };
            core.flush(io, now);
            result
        })
    }

    /// Queues messages as long as there is room.
    #[inline]
    fn offer_many(
        &self,
        core: &mut Core,
        now: Instant,
        messages: &mut (impl Iterator<Item = Outgoing> + ?Sized),
    ) -> Result<(), Refused> {
        self.check_driven(core)?;
        let mut messages = messages.map(|message| message.into_message(now));
        let sent = core.endpoint.send_many(now, self.id, &mut messages);
        sent.map_err(|e| self.refused(core, e))
    }

    /// Whether the next message must wait for room.
    fn must_wait(
        &self,
        core: &mut Core,
        io: &Io,
        now: Instant,
        messages: &(impl Iterator<Item = Outgoing> + ?Sized),
    ) -> bool {
        let waits = |core: &Core| {
            let endpoint = &core.endpoint;
            let limits = endpoint.send_queue_limits(self.id);
            let refuses = limits.is_some_and(|(_, policy)| policy == proto::QueuePolicy::Refuse);
            let is_full = endpoint.may_send(self.id) && !endpoint.is_writable(self.id);
            refuses && is_full && messages.size_hint().1 != Some(0)
        };
        if !waits(core) {
            return false;
        }
        // A burst may be waiting that the network would accept.
        core.flush(io, now);
        waits(core)
    }

    /// Queues one message, or returns why not, without waiting.
    pub(crate) fn try_send(&self, message: Outgoing) -> Result<(), crate::TrySendError> {
        let sent = self.with(|core, io, now| match self.offer(core, io, now, message) {
            Ok(()) => {
                core.flush_burst(io, now);
                Ok(())
            }
            Err(Refused::Full(message)) => {
                Err(crate::TrySendError::Full(message.for_another_call(now)))
            }
            Err(Refused::Never(e)) => Err(crate::TrySendError::Failed(e)),
        });
        sent?
    }

    fn offer(
        &self,
        core: &mut Core,
        io: &Io,
        now: Instant,
        message: Outgoing,
    ) -> Result<(), Refused> {
        self.check_driven(core)?;
        let first = core.endpoint.send(now, self.id, message.into_message(now));
        let sent = match first {
            Err(proto::SendError::Full(message)) => {
                // A burst may be waiting that the network would accept.
                core.flush(io, now);
                core.endpoint.send(now, self.id, message)
            }
            other => other,
        };
        sent.map_err(|e| self.refused(core, e))
    }

    /// Without a driver, nothing would report what happens to a message.
    fn check_driven(&self, core: &Core) -> Result<(), Refused> {
        if core.driver.stopped { Err(Refused::Never(self.ended(core))) } else { Ok(()) }
    }

    fn refused(&self, core: &Core, e: proto::SendError) -> Refused {
        match e {
            proto::SendError::Full(m) => Refused::Full(Outgoing::from_message(m)),
            proto::SendError::TooLarge { max, message } => {
                Refused::Never(Error::MessageTooLarge { len: message.payload.len(), max })
            }
            proto::SendError::NotOpen(_) => Refused::Never(self.ended(core)),
        }
    }

    fn wait_for_room(&self, core: &mut Core, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        if core.driver.stopped {
            return Poll::Ready(Err(stopped()));
        }
        match core.conns.get_mut(self.id) {
            Some(conn) => conn.waiting.add(WaitFor::Room, waiter),
            None => return Poll::Ready(Err(Error::Closed)),
        }
        Poll::Pending
    }

    /// Waits until the send queue has room.
    pub(crate) fn poll_writable(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, _, _| {
            if core.endpoint.is_writable(self.id) {
                return Poll::Ready(Ok(()));
            }
            if !core.endpoint.may_send(self.id) {
                return Poll::Ready(Err(self.ended(core)));
            }
            core.endpoint.want_writable(self.id);
            self.wait_for_room(core, waiter)
        })
    }

    /// Why nothing can be sent any more.
    fn ended(&self, core: &Core) -> Error {
        match core.conns.get(self.id).and_then(|c| c.ended) {
            Some(reason) => Error::ended(reason),
            None if core.driver.stopped => stopped(),
            None => Error::Closed,
        }
    }

    /// Makes a task wait for something that only an open connection can provide.
    fn wait_for(&self, core: &mut Core, add: impl FnOnce(&mut Conn)) -> Poll<Result<(), Error>> {
        let stopped_now = core.driver.stopped;
        match core.conns.get_mut(self.id) {
            None => return Poll::Ready(Err(Error::Closed)),
            Some(Conn { ended: Some(reason), .. }) => {
                return Poll::Ready(Err(Error::ended(*reason)));
            }
            Some(_) if stopped_now => return Poll::Ready(Err(stopped())),
            Some(conn) => add(conn),
        }
        Poll::Pending
    }

    /// Waits until the fate of everything that was queued is known.
    pub(crate) fn poll_acknowledged(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, _, _| {
            if core.endpoint.is_accounted_for(self.id) {
                return Poll::Ready(Ok(()));
            }
            let added = self.wait_for(core, |conn| conn.waiting.add(WaitFor::Acknowledged, waiter));
            if added.is_pending() && !core.awaiting_acks.contains(&self.id) {
                core.awaiting_acks.push(self.id);
            }
            added
        })
    }

    /// Waits until the send queue is empty.
    pub(crate) fn poll_flushed(&self, waiter: Waiter<'_>) -> Poll<Result<(), Error>> {
        self.poll_with(waiter, |core, io, now| {
            // The rest of a burst may be waiting for more messages.
            core.flush(io, now);
            if core.is_flushed(self.id) {
                return Poll::Ready(Ok(()));
            }
            let added = self.wait_for(core, |conn| conn.waiting.add(WaitFor::Flushed, waiter));
            if added.is_pending() && !core.flushing.contains(&self.id) {
                core.flushing.push(self.id);
            }
            added
        })
    }
}

/// Why a message was not queued.
enum Refused {
    Full(Outgoing),
    Never(Error),
}
