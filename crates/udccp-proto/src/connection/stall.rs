//! Reports what a queued message waits for.

use udccp_base::Instant;

use super::Connection;
use crate::state::State;

impl Connection {
    /// Whether a message waits in OPEN, and when the wait ends unless a packet of the peer ends it
    /// sooner: `Some(None)` means never. Call it after a drain, when nothing more can be sent.
    ///
    /// An acknowledgement may end the wait sooner, but acknowledgements get lost. Packets in flight
    /// always have a timer, and this returns its time.
    pub(crate) fn message_waits_until(&self) -> Option<Option<Instant>> {
        if self.state != State::Open || self.send.queue().is_empty() {
            return None;
        }
        Some(match self.has_what_it_needs() {
            true => self.cc.sender_timer().get(),
            false => self.negotiation.poll_timeout(),
        })
    }
}
