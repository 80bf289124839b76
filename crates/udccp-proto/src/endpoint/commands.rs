//! Takes the commands of drivers and applications.

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
    /// Queues a message. It leaves when congestion control allows, or is reported with
    /// `MessageDropped`: an accepted message is never dropped silently.
    ///
    /// # Errors
    /// The message comes back when the queue is full, it is too large, or the connection is over.
    pub fn send(
        &mut self,
        now: Instant,
        id: ConnectionId,
        message: Message,
    ) -> Result<(), SendError> {
        let Some((connection, mut ctx)) = self.connection(now, id) else {
            return Err(SendError::NotOpen(message));
        };
        // Behind others that wait for the window, a message without a deadline changes nothing.
        let only_waits = connection.is_blocked(now) && message.deadline.is_none();
        let sent = connection.send(&mut ctx, message);
        if !only_waits || sent.is_err() {
            self.make_ready(id.index);
        }
        sent
    }

    /// Queues messages for as long as one of the maximum size would be taken without another being
    /// discarded, or the iterator ends.
    ///
    /// # Errors
    /// A message is too large: it comes back.
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

    /// The next received message; `Ok(None)` where none is there yet.
    ///
    /// # Errors
    /// The connection ended and everything was read.
    pub fn recv(&mut self, now: Instant, id: ConnectionId) -> Result<Option<Payload>, RecvError> {
        Ok(self.recv_with_meta(now, id)?.map(|message| message.payload))
    }

    /// As [`Self::recv`], with what is known of the message.
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

    /// Takes up to `max` messages out, as [`Self::recv`] does one; returns how many.
    #[inline]
    pub fn recv_many(
        &mut self,
        id: ConnectionId,
        max: usize,
        take: &mut impl FnMut(Payload),
    ) -> usize {
        let Some(connection) = self.slots.get_mut(id) else { return 0 };
        let (count, resumes) = connection.recv_many(max, take);
        if resumes {
            self.make_ready(id.index);
        }
        count
    }

    /// Whether a message of the maximum size would be taken now.
    pub fn is_writable(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_writable)
    }

    /// Messages of the maximum size that the send queue would still take.
    pub fn send_queue_free(&self, id: ConnectionId) -> usize {
        self.slots.get(id).map_or(0, Connection::send_queue_free)
    }

    /// Whether `recv` would give a message or the end.
    pub fn is_readable(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_readable)
    }

    /// Closes: delivers what is queued within `close_linger`, then closes in order. Received
    /// data can still be read.
    pub fn close(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.close(ctx));
    }

    /// Ends the connection at once with Reset, Aborted. Queued messages are dropped.
    pub fn abort(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.abort(ctx));
    }

    /// The application reads no more: what is queued is dropped and the peer is notified
    /// (Drop Code 1, RFC 4340 section 11.7).
    pub fn shutdown_read(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, _| connection.shutdown_read());
    }

    /// The application can hardly keep up, or can again: while it cannot, acknowledgements ask the
    /// peer not to go faster (Slow Receiver, RFC 4340 section 11.6), as they do by themselves while
    /// the receive queue is a quarter full.
    pub fn set_slow_receiver(&mut self, now: Instant, id: ConnectionId, is_slow: bool) {
        self.with(now, id, |connection, _| connection.set_slow_receiver(is_slow));
    }

    /// The application lets go of the id: an open connection is closed, and the state is
    /// freed when the protocol allows. The id is invalid from here on.
    pub fn release(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.release(ctx));
    }

    /// Sets the path MTU of a connection, in bytes with the IP header. Queued messages that no
    /// longer fit are dropped and reported.
    pub fn set_path_mtu(&mut self, now: Instant, id: ConnectionId, mtu: u16) {
        self.with(now, id, |connection, ctx| connection.set_path_mtu(ctx, mtu));
    }

    /// The path of a connection is another one now (a new network, a new route): congestion control
    /// and the search for the path's MTU start again (RFC 4340 section 10.5). Addresses and ports
    /// have to stay; DCCP cannot change them.
    pub fn path_changed(&mut self, now: Instant, id: ConnectionId) {
        self.with(now, id, |connection, ctx| connection.path_changed(ctx, None));
    }

    /// [`Self::path_changed`] to one whose first link takes packets of `mtu` bytes, with the IP
    /// header. Queued messages that no longer fit are dropped and reported.
    pub fn path_changed_to(&mut self, now: Instant, id: ConnectionId, mtu: u16) {
        self.with(now, id, |connection, ctx| connection.path_changed(ctx, Some(mtu)));
    }

    /// Forgets what is known of the path's MTU, and begins with `ConnectionConfig::path_mtu` again;
    /// at most once in two seconds (RFC 4340 section 14.1). Whether it was done.
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

    /// Tells how full the driver's own receive buffer is, in permille: datagrams that this host has
    /// received and not handed in yet. From a quarter, peers are asked not to go faster; from half,
    /// congestion is reported to them, before the buffer overflows and loses packets.
    pub fn set_receive_backlog(&mut self, permille: u16) {
        self.outside = Pressure::of(usize::from(permille), 1000);
    }

    /// Whether the receive queue of the connection that the last packet was for is half full or
    /// more: a driver that has more datagrams lets the application read first. It asks after the
    /// packets of each connection.
    pub fn is_filling(&self) -> bool {
        let connection = self.table.found_last().and_then(|index| self.slots.look(index));
        connection.is_some_and(Connection::is_filling)
    }

    /// The next event, in order of occurrence.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Forgets all events so far, for a driver that looks at the connections instead.
    pub fn discard_events(&mut self) {
        self.events.clear();
    }

    /// Numbers of one connection.
    pub fn stats(&self, id: ConnectionId) -> Option<ConnectionStats> {
        self.slots.get(id).map(Connection::stats)
    }

    /// Counters of one connection only: cheaper than `stats`.
    pub fn counters(&self, id: ConnectionId) -> Option<ConnectionCounters> {
        self.slots.get(id).map(Connection::counters)
    }

    /// Numbers of the endpoint.
    pub fn endpoint_stats(&self) -> EndpointStats {
        EndpointStats {
            connections: self.table.connections(),
            timewaits: self.table.timewaits().len(),
            timewaits_evicted: self.table.timewaits().evicted(),
            ..self.stats
        }
    }

    /// The Error Text of the Reset that ended a connection, where the peer sent one (RFC 4340
    /// section 5.6).
    pub fn reset_text(&self, id: ConnectionId) -> Option<&str> {
        self.slots.get(id).and_then(Connection::reset_text)
    }

    /// Whether a connection has these addresses and ports, or had them until lately (TIMEWAIT).
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
    /// Largest payload in bytes that fits in one packet now.
    pub fn max_message_size(&self, id: ConnectionId) -> Option<usize> {
        self.slots.get(id).map(Connection::max_message_size)
    }

    /// State of a connection.
    pub fn state(&self, id: ConnectionId) -> Option<State> {
        self.slots.get(id).map(Connection::state)
    }
}
