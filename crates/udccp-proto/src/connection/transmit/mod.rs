//! Sends when the endpoint is drained: control packets first, then data as congestion control
//! allows, then an acknowledgement if one is still owed.

mod ack;
mod control;
mod data;
mod packet;
mod run;

use udccp_base::{Datagram, Instant};

use super::{Connection, Ctx};
use crate::ccid::Feedback;

/// What a connection sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// Nothing: it has no more.
    Nothing,
    /// A packet.
    One,
    /// A packet, and it has no more.
    Last,
}

impl Connection {
    /// Puts the next packet to send into `out`, which is empty. It is built where it is wanted,
    /// since a datagram is large to hand from function to function.
    #[inline(always)]
    pub(crate) fn poll_transmit(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> Sent {
        if !self.outbox.has_no_control() && self.transmit_control(ctx, out) {
            return Sent::One;
        }
        // Before the handshake is done nothing leaves, but messages may grow too old.
        if !self.send.queue().is_empty() && self.transmit_data(ctx, out) {
            return if self.was_last_data(ctx.now) { Sent::Last } else { Sent::One };
        }
        // Deciding about data or an acknowledgement may call for a Close or a Sync instead.
        if self.state.transfers() && self.owes_ack_now(ctx.now) {
            self.transmit_ack(ctx, out);
            let is_last = self.send.queue().is_empty() && self.is_drained(ctx.now);
            return if is_last { Sent::Last } else { Sent::One };
        }
        if !self.outbox.has_no_control() && self.transmit_control(ctx, out) {
            return Sent::One;
        }
        Sent::Nothing
    }

    /// Whether nothing but data is to leave. Where that is not sure, the next call finds out.
    #[inline(always)]
    fn is_drained(&self, now: Instant) -> bool {
        self.outbox.is_empty()
            && self.negotiation.is_settled()
            && self.cc.feedback(now) != Feedback::Due
            && !self.cc.wants_ack_after_data()
    }
}
