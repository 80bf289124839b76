//! Reads and changes settings of existing connections and listeners.

use udccp_base::{Duration, Instant, Payload};
use udccp_wire::ServiceCode;

use super::Endpoint;
use crate::ccid::{CcidMetrics, ReceiverMetrics};
use crate::config::QueuePolicy;
use crate::connection::Connection;
use crate::error::ListenError;
use crate::ids::{ConnectionId, ListenerId};

impl Endpoint {
    /// Requests one `Writable` event when the result of [`Self::is_writable`] changes from what it
    /// is now, in either direction.
    pub fn watch_writable(&mut self, id: ConnectionId) {
        if let Some(connection) = self.slots.get_mut(id) {
            connection.watch_writable();
        }
    }

    /// Whether a message may be queued once there is room: the connection is open and not closing,
    /// and the peer reads.
    pub fn may_send(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::may_send)
    }

    /// Requests a `Writable` event when the send queue has fallen to half its limit, as a refused
    /// message does.
    pub fn want_writable(&mut self, id: ConnectionId) {
        if let Some(connection) = self.slots.get_mut(id) {
            connection.want_writable();
        }
    }

    /// The message that `recv` would return, which stays in the queue.
    pub fn peek(&self, id: ConnectionId) -> Option<Payload> {
        self.slots.get(id).and_then(Connection::peek)
    }

    /// Limits of the send queue in messages and payload bytes, and what happens when it is full.
    pub fn send_queue_limits(&self, id: ConnectionId) -> Option<((usize, usize), QueuePolicy)> {
        self.slots.get(id).map(Connection::send_queue_limits)
    }

    /// Limits the send queue, in messages and payload bytes, at least 1 each. Messages that already
    /// wait stay, even beyond the limit.
    pub fn set_send_queue(&mut self, now: Instant, id: ConnectionId, packets: usize, bytes: usize) {
        self.with(now, id, |connection, ctx| connection.set_send_queue(ctx, packets, bytes));
    }

    /// Sets what happens when the send queue is full.
    pub fn set_queue_policy(&mut self, now: Instant, id: ConnectionId, policy: QueuePolicy) {
        self.with(now, id, |connection, _| connection.set_queue_policy(policy));
    }

    /// Whether [`EventKind::CloseUnconfirmed`](crate::EventKind) was reported, and the connection
    /// has not ended yet.
    pub fn is_close_unconfirmed(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_some_and(Connection::is_close_unconfirmed)
    }

    /// How long a close may take to deliver what is queued.
    pub fn close_linger(&self, id: ConnectionId) -> Option<Duration> {
        self.slots.get(id).map(Connection::close_linger)
    }

    /// Sets how long a close may take to deliver what is queued; a close in progress keeps its
    /// time.
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

    /// Checksum coverage as negotiated: that of the data we send, and the least that we accept,
    /// each 0 to 15 (RFC 4340 section 9.2).
    pub fn coverage(&self, id: ConnectionId) -> Option<(u8, u8)> {
        self.slots.get(id).map(Connection::coverage)
    }

    /// Whether the fate of every queued message is known: it was dropped, the peer has reported it,
    /// or it counts as lost, because of later packets or of the transmit or nofeedback timer.
    pub fn is_accounted_for(&self, id: ConnectionId) -> bool {
        self.slots.get(id).is_none_or(Connection::is_accounted_for)
    }

    /// State of the sender half of congestion control.
    pub fn sender_metrics(&self, id: ConnectionId) -> Option<CcidMetrics> {
        self.slots.get(id).and_then(Connection::sender_metrics)
    }

    /// State of the receiver half of congestion control; `None` if the CCID measures nothing.
    pub fn receiver_metrics(&self, now: Instant, id: ConnectionId) -> Option<ReceiverMetrics> {
        self.slots.get(id).and_then(|connection| connection.receiver_metrics(now))
    }

    /// Whether `accept` would return a connection.
    pub fn is_acceptable(&self, id: ListenerId) -> bool {
        self.listeners.get(id).is_some_and(|listener| !listener.ready.is_empty())
    }

    /// The service codes that a listener serves; empty if there is none with this id.
    pub fn services(&self, id: ListenerId) -> &[ServiceCode] {
        self.listeners.get(id).map_or(&[], |listener| listener.services())
    }

    /// Serves other service codes from now on. Existing connections are not affected.
    ///
    /// # Errors
    /// The list is empty, contains the invalid code, or one that another listener serves here.
    pub fn set_services(
        &mut self,
        id: ListenerId,
        services: Vec<ServiceCode>,
    ) -> Result<(), ListenError> {
        self.listeners.set_services(id, services)
    }
}
