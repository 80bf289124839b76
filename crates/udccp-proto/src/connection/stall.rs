//! Reports what a message that waits is waiting for.

use udccp_base::Instant;

use super::Connection;
use crate::state::State;

impl Connection {
    /// Whether a message waits in OPEN, and when the wait ends if no packet of the peer ends it
    /// sooner: `Some(None)` is for ever. Asked after a drain, when nothing can leave.
    ///
    /// An acknowledgement may end a wait sooner, but acknowledgements get lost: what is in flight
    /// is always watched by a timer, which is the one that is named here.
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
