//! Holds acknowledgements back for a moment, so that data can carry them.

use udccp_base::Instant;

use super::Endpoint;
use crate::connection::Connection;
use crate::ids::ConnectionId;

impl Endpoint {
    /// Has the acknowledgement that this connection owes now wait for [`Self::release_acks`], or
    /// for data that carries it. Returns whether it owes one that may wait: where more than two
    /// messages have arrived, it may not.
    ///
    /// A driver that has woken the reader of what just arrived calls this before it drains the
    /// endpoint: where the reader has an answer, one packet leaves instead of two. The wait has to
    /// be short, as the peer's congestion control waits too.
    pub fn hold_ack(&mut self, now: Instant, id: ConnectionId) -> bool {
        let held = self.slots.get_mut(id).is_some_and(|connection| connection.hold_ack(now));
        if held {
            self.held_acks.push(id.index);
        }
        held
    }

    /// The acknowledgement of this connection need wait no longer.
    pub fn release_ack(&mut self, id: ConnectionId) {
        if self.slots.get_mut(id).is_some_and(Connection::release_ack) {
            self.make_ready(id.index);
        }
    }

    /// Whether an acknowledgement still waits: no data has carried it, and nobody has released it.
    pub fn holds_acks(&self) -> bool {
        let waits = |&index: &u32| self.slots.look(index).is_some_and(Connection::holds_ack);
        self.held_acks.iter().any(waits)
    }

    /// Acknowledgements that wait may leave.
    pub fn release_acks(&mut self) {
        while let Some(index) = self.held_acks.pop() {
            if let Some(connection) = self.slots.at(index) {
                if connection.release_ack() {
                    self.make_ready(index);
                }
            }
        }
    }
}
