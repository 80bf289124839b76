//! The shortest path for an Ack: from its header to the window.

use udccp_base::{Ecn, Instant};
use udccp_wire::{PacketType, PlainAck};

use super::super::options::FirstCell;
use super::super::{Connection, Pressure};
use crate::ackvec::{Arrival, is_surely_after_isn};
use crate::ccid::ReceivedInfo;

impl Connection {
    /// Processes the next Ack in order on a connection with nothing unusual to do (`find_usual`),
    /// if all that it reports is that the oldest packets in flight arrived. Returns whether it did.
    /// If not, nothing has changed.
    #[inline(always)]
    pub(crate) fn take_plain_ack(
        &mut self,
        now: Instant,
        ack: &PlainAck<'_>,
        ecn: Ecn,
        outside: Pressure,
    ) -> bool {
        if self.usual().is_none() || ecn == Ecn::Ce {
            return false;
        }
        let &PlainAck { seq, ackno, ccval, .. } = ack;
        let Some(vector) = FirstCell::read(ack.options) else { return false };
        let concerns_others = self.acks.awaits(ackno)
            || self.send.awaits_ack()
            || !is_surely_after_isn(ackno, vector.cells, self.seq.iss);
        if concerns_others {
            return false;
        }
        let Some(run) = self.cc.plain_ack(ackno, vector.first) else { return false };
        if !self.seq.take_next_in_order(seq, Some(ackno)) {
            return false;
        }
        self.recv.set_outside(outside);
        self.timing.on_valid(now, self.seq.gar);
        self.counters.acks_received += 1;
        self.negotiation.note_gsr(seq);
        let arrival = self.acks.on_packet(seq, ecn);
        debug_assert!(!matches!(arrival, Arrival::Duplicate | Arrival::Forgotten));
        let ndp_count = self.negotiation.agreed().peer_sends_ndp.then_some(0);
        let (is_data, size_bytes) = (false, 0);
        let info = ReceivedInfo { seq, is_data, size_bytes, ccval, ecn, ndp_count };
        self.cc.on_ordinary_packet(now, info);
        self.outbox.ack |= self.handshake.owes_greeting(PacketType::Ack, ackno);
        self.cc.on_ack_of_ack(ackno);
        let elapsed = vector.elapsed.unwrap_or_default();
        let acked = self.cc.take_plain_ack(now, ackno, run, elapsed);
        self.counters.data_packets_acked += u64::from(acked);
        self.renegotiate(ackno);
        if !self.negotiation.is_settled() {
            self.forget_usual();
        }
        true
    }
}
