//! Delays acknowledgements for a moment, so that data can carry them.

use udccp_base::Instant;

use super::Endpoint;
use crate::connection::Connection;
use crate::ids::ConnectionId;

impl Endpoint {
    /// Delays the acknowledgement that this connection owes until [`Self::release_acks`], or until
    /// data carries it. Returns whether it owes one that may be delayed; with more than two
    /// messages to acknowledge, it may not.
    ///
    /// A driver that has woken the reader of new messages calls this before it drains the endpoint.
    /// If the reader answers, one packet is sent instead of two. The delay has to be short, because
    /// it also delays the peer's congestion control.
    pub fn hold_ack(&mut self, now: Instant, id: ConnectionId) -> bool {
        let held = self.slots.get_mut(id).is_some_and(|connection| connection.hold_ack(now));
        if held {
            self.held_acks.get_or_insert_default().push(id.index);
        }
        held
    }

    /// Sends the acknowledgement of this connection without further delay.
    pub fn release_ack(&mut self, id: ConnectionId) {
        if self.slots.get_mut(id).is_some_and(Connection::release_ack) {
            self.make_ready(id.index);
        }
    }

    /// Whether an acknowledgement is still delayed.
    pub fn holds_acks(&self) -> bool {
        let waits = |&index: &u32| self.slots.look(index).is_some_and(Connection::holds_ack);
        self.held_acks.iter().flat_map(|held| held.iter()).any(waits)
    }

    /// Sends all delayed acknowledgements.
    pub fn release_acks(&mut self) {
        while let Some(index) = self.held_acks.as_mut().and_then(|held| held.pop()) {
            if let Some(connection) = self.slots.at(index) {
                if connection.release_ack() {
                    self.make_ready(index);
                }
            }
        }
    }
}
