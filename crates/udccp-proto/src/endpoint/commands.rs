//! Commands of drivers and applications.

use udccp_base::{Instant, Message, Payload};
use udccp_wire::ServiceCode;

use super::Endpoint;
use crate::connection::{Connection, Ctx, Delivery, Pressure};
use crate::error::{RecvError, SendError};
use crate::event::Event;
use crate::ids::ConnectionId;
use crate::state::State;
use crate::stats::{ConnectionCounters, ConnectionStats, EndpointStats};
use crate::tuple::FourTuple;

impl Endpoint {
    /// Queues a message. It is sent when congestion control allows. If it is dropped,
    /// `MessageDropped` reports that.
    ///
    /// # Errors
    /// The queue is full, the message is too large, or the connection is not open. The error
    /// contains the message.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: Message,
    ) -> Result<(), SendError> {
        let Some((connection, mut ctx)) = self.connection(now, id) else {
            return Err(SendError::NotOpen(message));
        };
        // Behind messages that wait for the window, one without a deadline changes nothing.
        let only_waits = connection.is_blocked(now) && message.deadline.is_none();
        let sent = connection.send(&mut ctx, message);
        if !only_waits || sent.is_err() {
            self.make_ready(id.index);
        }
        sent
    }

    /// Queues messages while one of the maximum size would fit without another being dropped, or
    /// until the iterator ends.
    ///
    /// # Errors
    /// A message is too large, and the error contains it.
    #[inline]
    pub fn send_many(
        &mut self,
        now: Instant,
        id: ConnectionId,
        messages: &mut impl Iterator<Item = Message>,
    ) -> Result<(), SendError> {
        let Some((connection, mut ctx)) = self.connection(now, id) else { return Ok(()) };
        let sent = connection.send_many(&mut ctx, messages);
        self.make_ready(id.index);
        sent
    }

    /// Receives the next message; `Ok(None)` if there is none yet.
    ///
    /// # Errors
    /// The connection has ended and everything was read, or reading was shut down.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Payload>, RecvError> {
        Ok(self.recv_with_meta(now, id)?.map(|message| message.payload))
    }

    /// As [`Self::recv`], with whether the message was damaged.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_with_meta(
        &mut self,
        _now: Instant,
        id: ConnectionId,
    ) -> Result<Option<Delivery>, RecvError> {
        let connection = self.slots.get_mut(id).ok_or(RecvError::UnknownConnection)?;
        let (message, resumes) = connection.recv();
        if resumes {
            self.make_ready(id.index);
        }
        message
    }

    /// Passes up to `max` messages to `take`, in order, and returns their number.
    #[inline]
    pub fn recv_many(
        &mut self,
        id: ConnectionId,
        max: usize,
        take: &mut impl FnMut(Payload),
    ) -> usize {
        let Some(connection) = self.slots.queues_of(id) else { return 0 };
        let (count, resumes) = connection.recv_many(max, take);
        if resumes {
            self.make_ready(id.index);
        }
        count
    }

    /// Whether a message of the maximum size would be queued now.
    pub fn is_writable(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_writable)
    }

    /// How many messages of the maximum size the send queue has room for.
    pub fn send_queue_free(&self, id: ConnectionId) -> usize {
        self.slots.get(id).map_or(0, Connection::send_queue_free)
    }

    /// Whether `recv` would return a message or the end.
    pub fn is_readable(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_readable)
    }

    /// Closes: sends what is queued, within `close_linger`, then closes in order. Received data can
    /// still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.close(ctx));
    }

    /// Ends the connection at once with a Reset of code Aborted. Queued messages are dropped.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.abort(ctx));
    }

    /// Stops reading: drops what waits to be read. The peer is told if it sends more (Drop Code 1,
    /// RFC 4340 section 11.7).
    pub fn shutdown_read(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, _| connection.shutdown_read());
    }

    /// Sets whether the application can hardly keep up. While it is true, acknowledgements ask the
    /// peer not to send faster (Slow Receiver, RFC 4340 section 11.6); they also do so while the
    /// receive queue is at least a quarter full.
    pub fn set_slow_receiver(&mut self, now: Instant, id: ConnectionId, is_slow: bool) {
        self.with(now, id, |connection, _| connection.set_slow_receiver(is_slow));
    }

    /// Releases the id: an open connection is closed, and its state is freed when the protocol
    /// allows. The id is invalid afterwards.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.release(ctx));
    }

    /// Sets the path MTU of a connection, in bytes with the IP header. Queued messages that no
    /// longer fit are dropped and reported.
    pub fn set_path_mtu(&mut self, now: Instant, id: ConnectionId, mtu: u16) {
        self.with(now, id, |connection, ctx| connection.set_path_mtu(ctx, mtu));
    }

    /// Tells that the path of a connection has changed (a new network or route). Congestion control
    /// and the search for the path MTU start again (RFC 4340 section 10.5). DCCP cannot change
    /// addresses and ports.
    pub fn path_changed(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.path_changed(ctx, None));
    }

    /// [`Self::path_changed`], to a path whose first link carries packets of `mtu` bytes, with the
    /// IP header. Queued messages that no longer fit are dropped and reported.
    pub fn path_changed_to(&mut self, now: Instant, id: ConnectionId, mtu: u16) {
        self.with(now, id, |connection, ctx| connection.path_changed(ctx, Some(mtu)));
    }

    /// Forgets the path MTU found and starts again with `ConnectionConfig::path_mtu`, at most once
    /// in two seconds (RFC 4340 section 14.1). Returns whether it did.
    pub fn rediscover_path_mtu(&mut self, now: Instant, id: ConnectionId) -> bool {
        let mut done = false;
        self.with(now, id, |connection, ctx| done = connection.rediscover_path_mtu(ctx));
        done
    }

    pub(super) fn with(
        &mut self,
        now: Instant,
        id: ConnectionId,
        act: impl FnOnce(&mut Connection, &mut Ctx<'_>),
    ) {
        if let Some((connection, mut ctx)) = self.connection(now, id) {
            act(connection, &mut ctx);
            self.make_ready(id.index);
        }
    }

    /// Sets how full the driver's receive buffer is, in permille: datagrams that this host has
    /// received but not passed in yet. From a quarter on, peers are asked not to send faster; from
    /// half on, congestion is reported to them, before the buffer overflows and packets are lost.
    pub fn set_receive_backlog(&mut self, permille: u16) {
        self.outside = Pressure::of(usize::from(permille), 1000);
    }

    /// Whether the receive queue of the connection of the last packet is half full or more. A
    /// driver with more datagrams should then let the application read first. Call it after the
    /// packets of each connection.
    pub fn is_filling(&self) -> bool {
        let connection = self.table.found_last().and_then(|index| self.slots.look(index));
        connection.is_some_and(Connection::is_filling)
    }

    /// The next event, in the order in which they happened.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.as_mut()?.pop_front()
    }

    /// Reports no events from now on, for a driver that polls the connections instead.
    pub fn ignore_events(&mut self) {
        self.events = None;
    }

    /// State and counters of a connection; `None` if there is none with this id.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.slots.get(id).map(Connection::stats)
    }

    /// Only the counters of a connection, which is cheaper than `stats`.
    pub fn counters(&self, id: ConnectionId) -> Option<ConnectionCounters> {
        self.slots.get(id).map(Connection::counters)
    }

    /// Counters of the endpoint.
    pub fn endpoint_stats(&self) -> EndpointStats {
        EndpointStats {
            connections: self.table.connections(),
            timewaits: self.table.timewaits(),
            timewaits_evicted: self.table.timewaits_evicted(),
            ..self.counters.all()
        }
    }

    /// The Error Text with which the peer explained its Reset (RFC 4340 section 5.6); `None` if it
    /// sent none.
    pub fn reset_text(&self, id: ConnectionId) -> Option<&str> {
        self.slots.get(id).and_then(Connection::reset_text)
    }

    /// Whether a connection has these addresses and ports, or is in TIMEWAIT with them.
    pub fn is_in_use(&self, tuple: &FourTuple) -> bool {
        self.table.is_taken(&self.slots, tuple)
    }

    /// Addresses and ports of a connection.
    pub fn tuple(&self, id: ConnectionId) -> Option<FourTuple> {
        self.slots.get(id).map(|c| *c.tuple())
    }

    //= 5595-3.3-5
    /// The service code of a connection.
    pub fn service(&self, id: ConnectionId) -> Option<ServiceCode> {
        self.slots.get(id).map(|c| c.who.service)
    }

    //= 4340-14-2
    /// The largest payload that fits in one packet now, in bytes.
    pub fn max_message_size(&self, id: ConnectionId) -> Option<usize> {
        self.slots.get(id).map(Connection::max_message_size)
    }

    /// The state of a connection.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.slots.get(id).map(Connection::state)
    }
}
