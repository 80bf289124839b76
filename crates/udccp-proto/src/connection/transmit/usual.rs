//! Sends what most packets are, from a connection with nothing unusual to do (`find_usual`): Data,
//! and Acks with an Ack Vector. What they leave out concerns other packets.

use udccp_base::{Datagram, Ecn, HeaderBytes, Instant, MaybeInstant, Payload, Sent};
use udccp_wire::{Header, HeaderKind, PacketType, Seqno};

use super::super::congestion::PlainVerdict;
use super::super::{Connection, Ctx};
use crate::ccid::SentInfo;

impl Connection {
    /// Like [`Self::poll_any`].
    #[inline(always)]
    pub(super) fn poll_usual(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        ecn: Ecn,
    ) -> Sent {
        let needs_ndp_count = self.send.ndp_count(self.negotiation.agreed()).is_some();
        if self.outbox.ack || needs_ndp_count {
            return self.poll_any(ctx, out);
        }
        if let Some(size) = self.send.queue().next_zeros() {
            match self.cc.plain_verdict(ctx.now, size) {
                PlainVerdict::Now(ccval, is_unpaced) => {
                    return self.transmit_plain_data(ctx, out, (ecn, ccval, is_unpaced));
                }
                PlainVerdict::Later => self.start_deadline_timer(),
                PlainVerdict::Acknowledges => return self.poll_any(ctx, out),
            }
        } else if !self.send.queue().is_empty() {
            return self.poll_any(ctx, out);
        }
        if self.outbox.is_ack_held || !self.feedback_leaves(ctx.now) {
            // While acknowledgements are held back, a Sync may be due.
            return if self.usual().is_some() { Sent::Nothing } else { self.poll_any(ctx, out) };
        }
        self.transmit_plain_ack(ctx, out, ecn);
        // Forgetting what the peer knows may take a Sync.
        if self.has_nothing_to_send(ctx.now) { Sent::Last } else { Sent::One }
    }

    /// Sends the first message, which is zeros, as Data.
    #[inline(always)]
    fn transmit_plain_data(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        (ecn, ccval, is_unpaced): (Ecn, u8, bool),
    ) -> Sent {
        let size_bytes = self.send.queue_mut().pop_zeros();
        let header = self.usual_header(HeaderKind::Data, ccval);
        let bytes = header.usual_data(self.zeros_checksum(size_bytes as usize));
        self.place(out, ecn, HeaderBytes::of(bytes), Payload::Zeros(size_bytes));
        if self.send.queue().awaits_change() {
            self.note_writable(ctx);
        }
        let c = &mut self.counters;
        c.packets_sent += 1;
        c.data_packets_sent += 1;
        c.data_bytes_sent += u64::from(size_bytes);
        if self.timing.unanswered_since == MaybeInstant::NONE {
            self.timing.unanswered_since = MaybeInstant::some(ctx.now);
        }
        self.send.on_data_sent();
        let rest = self.send.queue().next_len();
        let (seq, is_data, has_ack, app_limited) = (header.seq, true, false, rest.is_none());
        let info = SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn };
        if !self.cc.on_plain_sent(ctx.now, info, is_unpaced, rest) {
            return Sent::One;
        }
        if rest.is_some() {
            self.start_deadline_timer();
        }
        Sent::Last
    }

    /// Sends an Ack.
    #[inline(always)]
    fn transmit_plain_ack(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>, ecn: Ecn) {
        let ack = self.ackno();
        self.counters.acks_sent += 1;
        let (header, checksum) =
            (self.usual_header(HeaderKind::Ack { ack }, 0), self.zeros_checksum(0));
        match self.short_ack_bytes(ctx.now, ctx.arena, &header, checksum) {
            Some(bytes) => self.put_plain_ack(ctx.now, out, ecn, header.seq, bytes),
            // Passes the address of a copy, to keep the original in registers.
            None => self.transmit_longer_ack(ctx, out, ecn, &header.clone()),
        }
        self.ask_for_ack_of_vector(ctx.now, ack);
    }

    #[inline(never)]
    fn transmit_longer_ack(
        &mut self,
        ctx: &mut Ctx<'_>,
        out: &mut Option<Datagram>,
        ecn: Ecn,
        header: &Header,
    ) {
        match self.ack_bytes(ctx.now, ctx.arena, header, self.zeros_checksum(0), 0) {
            Some(bytes) => self.put_plain_ack(ctx.now, out, ecn, header.seq, bytes),
            None => self.write_any(ctx, out, header, Payload::EMPTY),
        }
    }

    /// Accounts for an Ack with the whole Ack Vector, and stores it in `out`.
    #[inline(always)]
    fn put_plain_ack(
        &mut self,
        now: Instant,
        out: &mut Option<Datagram>,
        ecn: Ecn,
        seq: Seqno,
        bytes: HeaderBytes,
    ) {
        self.place(out, ecn, bytes, Payload::EMPTY);
        self.counters.packets_sent += 1;
        self.send.on_sent(PacketType::Ack);
        self.outbox.on_sent(true);
        let app_limited = self.send.queue().is_empty();
        let (is_data, has_ack, size_bytes) = (false, true, 0);
        self.cc.on_sent(now, SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn });
        self.acks.on_vector_sent(seq);
    }

    /// Whether nothing is left to send but data.
    #[inline(always)]
    pub(super) fn is_usually_drained(&self, now: Instant) -> bool {
        let owes_ack = self.outbox.ack || self.cc.is_feedback_due(now);
        !owes_ack && !self.cc.wants_ack_after_data()
    }
}
