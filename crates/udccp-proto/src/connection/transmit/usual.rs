//! Sends what most packets are, from a connection with nothing unusual to do (`find_usual`): Data,
//! and Acks with an Ack Vector. What they leave out concerns other packets.

use udccp_base::{Datagram, Ecn, HeaderBytes, Instant, Payload, Sent};
use udccp_wire::{Header, HeaderKind, PacketType, Seqno, UsualAck};

use super::super::congestion::PlainVerdict;
use super::super::{Arena, Connection};
use crate::ccid::SentInfo;

impl Connection {
    /// Like [`Self::poll_any`]; `None` if that has to be called. Most packets need nothing of the
    /// endpoint but memory.
    #[inline(always)]
    pub(crate) fn poll_usual(
        &mut self,
        now: Instant,
        arena: &mut Arena,
        out: &mut Option<Datagram>,
    ) -> Option<Sent> {
        let ecn = self.usual()?;
        let needs_ndp_count = self.send.ndp_count(self.negotiation.agreed()).is_some();
        if self.outbox.ack || needs_ndp_count {
            return None;
        }
        if let Some(size) = self.send.queue().next_zeros() {
            match self.cc.plain_verdict(now, size) {
                PlainVerdict::Now(..) if self.send.queue().awaits_change() => return None,
                PlainVerdict::Now(ccval, is_unpaced) => {
                    return Some(self.transmit_plain_data(now, out, (ecn, ccval, is_unpaced)));
                }
                PlainVerdict::Later => self.start_deadline_timer(),
                PlainVerdict::Acknowledges => return None,
            }
        } else if !self.send.queue().is_empty() {
            return None;
        }
        if self.outbox.is_ack_held || !self.feedback_leaves(now) {
            // While acknowledgements are held back, a Sync may be due.
            return self.usual().map(|_| Sent::Nothing);
        }
        self.transmit_plain_ack(now, arena, out, ecn).then(|| {
            // Forgetting what the peer knows may take a Sync.
            let is_last = self.send.queue().is_empty() && self.usual().is_some();
            debug_assert_eq!(is_last, self.has_nothing_to_send(now));
            if is_last { Sent::Last } else { Sent::One }
        })
    }

    /// Sends the first message, which is zeros, as Data.
    #[inline(always)]
    fn transmit_plain_data(
        &mut self,
        now: Instant,
        out: &mut Option<Datagram>,
        (ecn, ccval, is_unpaced): (Ecn, u8, bool),
    ) -> Sent {
        let (size_bytes, rest) = self.send.queue_mut().pop_zeros();
        let seq = self.seq.take_next();
        let header = self.usual_header(HeaderKind::Data, ccval, seq);
        let bytes = header.usual_data(self.zeros_checksum(size_bytes as usize));
        self.place(out, ecn, HeaderBytes::of(bytes), Payload::Zeros(size_bytes));
        self.counters.data_packets_sent += 1;
        self.counters.data_bytes_sent += u64::from(size_bytes);
        self.timing.on_data_sent(now, seq);
        self.send.on_data_sent();
        let (is_data, has_ack, app_limited) = (true, false, rest.is_none());
        let info = SentInfo { seq, size_bytes, is_data, has_ack, app_limited, ecn };
        if !self.cc.on_plain_sent(now, info, is_unpaced, rest) {
            return Sent::One;
        }
        if rest.is_some() {
            self.start_deadline_timer();
        }
        Sent::Last
    }

    /// Sends an Ack, and returns whether it did. It does not if its options do not fit or are
    /// others.
    #[inline(always)]
    fn transmit_plain_ack(
        &mut self,
        now: Instant,
        arena: &mut Arena,
        out: &mut Option<Datagram>,
        ecn: Ecn,
    ) -> bool {
        let (ack, seq) = (self.ackno(), self.seq.gss.next());
        let header = self.usual_header(HeaderKind::Ack { ack }, 0, seq);
        let mut room = [0; UsualAck::ROOM];
        match self.short_ack(now, &header, self.zeros_checksum(0), &mut room) {
            Some(bytes) => {
                self.place(out, ecn, HeaderBytes::EMPTY, Payload::EMPTY);
                if let Some(datagram) = out {
                    // Written straight to its place.
                    datagram.header = arena.copy(bytes);
                }
                self.account_for_plain_ack(now, ecn, seq);
            }
            // Passes the address of a copy, to keep the original in registers.
            None if !self.transmit_longer_ack(now, arena, out, ecn, &header.clone()) => {
                return false;
            }
            None => {}
        }
        self.ask_for_ack_of_vector(now, ack);
        true
    }

    #[inline(never)]
    fn transmit_longer_ack(
        &mut self,
        now: Instant,
        arena: &mut Arena,
        out: &mut Option<Datagram>,
        ecn: Ecn,
        header: &Header,
    ) -> bool {
        let bytes = self.ack_bytes(now, arena, header, self.zeros_checksum(0), 0);
        let fits = bytes.is_some();
        if let Some(bytes) = bytes {
            self.place(out, ecn, bytes, Payload::EMPTY);
            self.account_for_plain_ack(now, ecn, header.seq);
        }
        fits
    }

    /// An Ack with the whole Ack Vector was written, with this number, the next one.
    #[inline(always)]
    fn account_for_plain_ack(&mut self, now: Instant, ecn: Ecn, seq: Seqno) {
        self.seq.take_next();
        self.counters.acks_sent += 1;
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
