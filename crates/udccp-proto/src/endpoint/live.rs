//! Reads and changes settings while a connection or a listener lives.

use udccp_base::{Duration, Instant, Payload};
use udccp_wire::ServiceCode;

use super::Endpoint;
use crate::ccid::{CcidMetrics, ReceiverMetrics};
use crate::config::QueuePolicy;
use crate::connection::Connection;
use crate::error::ListenError;
use crate::ids::{ConnectionId, ListenerId};

impl Endpoint {
    /// Asks for a `Writable` event as soon as [`Self::is_writable`] gives another answer than now,
    /// either way. Once: whoever goes on watching asks again.
    pub fn watch_writable(&mut self, id: ConnectionId) {
        if let Some(connection) = self.slots.get_mut(id) {
            connection.watch_writable();
        }
    }

    /// Whether a message may be queued, once there is room: the connection is open, is not closing,
    /// and the peer reads.
    pub fn may_send(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::may_send)
    }

    /// Asks for a `Writable` event once the send queue has fallen to half its limit, as a refused
    /// message does.
    pub fn want_writable(&mut self, id: ConnectionId) {
        if let Some(connection) = self.slots.get_mut(id) {
            connection.want_writable();
        }
    }

    /// The message that `recv` would give, which stays.
    pub fn peek(&self, id: ConnectionId) -> Option<Payload> {
        self.slots.get(id).and_then(Connection::peek)
    }

    /// Messages and payload bytes that may wait to be sent, and what a full queue does.
    pub fn send_queue_limits(&self, id: ConnectionId) -> Option<((usize, usize), QueuePolicy)> {
        self.slots.get(id).map(Connection::send_queue_limits)
    }

    /// Sets how many messages and payload bytes may wait to be sent, at least one of each. What
    /// waits beyond stays.
    pub fn set_send_queue(&mut self, now: Instant, id: ConnectionId, packets: usize, bytes: usize) {
        self.with(now, id, |connection, ctx| connection.set_send_queue(ctx, packets, bytes));
    }

    /// Sets what a full send queue does.
    pub fn set_queue_policy(&mut self, now: Instant, id: ConnectionId, policy: QueuePolicy) {
        self.with(now, id, |connection, _| connection.set_queue_policy(policy));
    }

    /// Whether [`EventKind::CloseUnconfirmed`](crate::EventKind) came, and the connection has not
    /// ended since.
    pub fn is_close_unconfirmed(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_close_unconfirmed)
    }

    /// The time that a close may take to deliver what is queued.
    pub fn close_linger(&self, id: ConnectionId) -> Option<Duration> {
        self.slots.get(id).map(Connection::close_linger)
    }

    /// Sets the time that a later close may take to deliver what is queued.
    pub fn set_close_linger(&mut self, now: Instant, id: ConnectionId, linger: Duration) {
        self.with(now, id, |connection, _| connection.set_close_linger(linger));
    }

    /// Whether a server holds TIMEWAIT itself when it closes.
    pub fn server_timewait(&self, id: ConnectionId) -> Option<bool> {
        self.slots.get(id).map(Connection::server_timewait)
    }

    /// Sets whether a server holds TIMEWAIT itself when it closes (RFC 4340 section 8.3).
    pub fn set_server_timewait(&mut self, now: Instant, id: ConnectionId, holds: bool) {
        self.with(now, id, |connection, _| connection.set_server_timewait(holds));
    }

    /// Checksum coverage of the data that we send, as far as the peer accepts it, and the least
    /// coverage that we accept; both 0 to 15 (RFC 4340 section 9.2).
    pub fn coverage(&self, id: ConnectionId) -> Option<(u8, u8)> {
        self.slots.get(id).map(Connection::coverage)
    }

    /// Whether every message that was queued has left, and the peer has reported it or it was
    /// given up: judged lost by later ones, or, where there are none, by the transmit or nofeedback
    /// timer.
    pub fn is_accounted_for(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_none_or(Connection::is_accounted_for)
    }

    /// State of the sender half of congestion control.
    pub fn sender_metrics(&self, id: ConnectionId) -> Option<CcidMetrics> {
        self.slots.get(id).and_then(Connection::sender_metrics)
    }

    /// State of the receiver half of congestion control, where the CCID measures anything.
    pub fn receiver_metrics(&self, now: Instant, id: ConnectionId) -> Option<ReceiverMetrics> {
        self.slots.get(id).and_then(|connection| connection.receiver_metrics(now))
    }

    /// Whether `accept` would give a connection.
    pub fn is_acceptable(&self, id: ListenerId) -> bool {
        self.listeners.get(id).is_some_and(|listener| !listener.ready.is_empty())
    }

    /// Service codes that a listener serves.
    pub fn services(&self, id: ListenerId) -> &[ServiceCode] {
        self.listeners.get(id).map_or(&[], |listener| listener.services())
    }

    /// Serves other service codes from here on; connections that exist stay.
    ///
    /// # Errors
    /// The list is empty, holds the invalid code, or one that another listener serves here.
    pub fn set_services(
        &mut self,
        id: ListenerId,
        services: Vec<ServiceCode>,
    ) -> Result<(), ListenError> {
        self.listeners.set_services(id, services)
    }
}
