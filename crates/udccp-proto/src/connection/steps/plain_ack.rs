//! The shortest path for an Ack: from its header to the window.

use udccp_wire::{PacketType, PacketView};

use super::super::options::FirstCell;
use super::super::{Arrival, Connection, Ctx, Received};
use crate::ackvec::is_surely_after_isn;

impl Connection {
    /// Processes the next Ack in order on a connection with nothing unusual to do (`find_usual`),
    /// if all that it reports is that the oldest packets in flight arrived. Returns whether it did.
    /// If not, nothing has changed.
    #[inline(always)]
    pub(super) fn take_plain_ack(
        &mut self,
        ctx: &mut Ctx<'_>,
        view: &PacketView<'_>,
        arrival: &Arrival<'_>,
    ) -> bool {
        let mut packet = Received { ty: PacketType::Ack, ..Received::new(view, arrival) };
        let Some(ackno) = packet.ackno.filter(|_| self.usual().is_some()) else { return false };
        let Some(vector) = FirstCell::read(view.option_bytes()) else { return false };
        let concerns_others = self.acks.awaits(ackno)
            || self.send.awaits_ack()
            || !is_surely_after_isn(ackno, vector.cells, self.seq.iss);
        if concerns_others {
            return false;
        }
        let Some(run) = self.cc.plain_ack(ackno, vector.first) else { return false };
        if !self.seq.take_next_in_order(packet.seq, packet.ackno) {
            return false;
        }
        self.note_arrival(arrival, view.total_len());
        self.note_valid(ctx, &packet, 1);
        self.negotiate_begin(&packet);
        self.mark_acknowledgeable(ctx, &mut packet, 0);
        self.outbox.ack |= self.handshake.owes_greeting(PacketType::Ack, ackno);
        self.cc.on_ack_of_ack(ackno);
        let acked = self.cc.take_plain_ack(ctx.now, ackno, run, vector.elapsed);
        self.counters.data_packets_acked += u64::from(acked);
        self.renegotiate(ackno);
        if !self.negotiation.is_settled() {
            self.forget_usual();
        }
        true
    }
}
