//! Sends packets when the endpoint is drained: first control packets, then data as congestion
//! control allows, then an acknowledgement if one is still due.

mod ack;
mod control;
mod data;
mod packet;
mod run;
mod usual;

use udccp_base::{Datagram, Instant, Sent};

use super::{Connection, Ctx};

impl Connection {
    /// Writes the next packet to send into `out`, which is empty. A datagram is built in its final
    /// place, since it is large to pass from function to function. [`Self::poll_usual`] is tried
    /// first.
    #[inline(never)]
    pub(crate) fn poll_any(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> Sent {
        let sent = self.poll_each(ctx, out);
        self.note_usual();
        sent
    }

    /// Asks all parts in turn whether they have something to send.
    #[inline(always)]
    fn poll_each(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> Sent {
        if !self.outbox.has_no_control() && self.transmit_control(ctx, out) {
            return Sent::One;
        }
        if self.outbox.ack_precedes_data(ctx.now) && self.state.transfers() {
            self.transmit_ack(ctx, out);
            return Sent::One;
        }
        // Before the handshake is done no data is sent, but messages may expire.
        if !self.send.queue().is_empty() && self.transmit_data(ctx, out) {
            return if self.was_last_data(ctx.now) { Sent::Last } else { Sent::One };
        }
        // Deciding about data or an acknowledgement may lead to a Close or a Sync instead.
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

    /// Whether `poll_any` would certainly send nothing. Right after a packet in order, it
    /// would not change anything either.
    #[inline(always)]
    pub(crate) fn has_nothing_to_send(&self, now: Instant) -> bool {
        self.send.queue().is_empty() && self.usual().is_some() && self.is_usually_drained(now)
    }

    /// Whether the receiver half reports about once per round-trip time.
    #[inline(always)]
    pub(crate) fn reports_rarely(&self) -> bool {
        self.cc.reports_rarely()
    }

    /// Whether only data is left to send. If that is uncertain, returns false, and the next call
    /// finds out.
    #[inline(always)]
    fn is_drained(&self, now: Instant) -> bool {
        self.outbox.is_empty()
            && self.negotiation.is_settled()
            && !self.cc.is_feedback_due(now)
            && !self.cc.wants_ack_after_data()
    }
}
