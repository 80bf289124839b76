//! Step 8: process options and mark acknowledgeable.

use udccp_base::Ecn;
use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::ackvec::Arrival;
use crate::ccid::ReceivedInfo;

impl Connection {
    /// The packet is valid: processes its options, and records it as to be acknowledged.
    pub(super) fn step_8_process_options(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &mut Received<'_>,
    ) -> Flow {
        self.note_valid(ctx, packet, 1);
        if let Some(quick_start) = packet.arrival.quick_start {
            self.owe_quick_start_response(quick_start);
        }
        if packet.ty == PacketType::Data && packet.view.option_bytes().is_empty() {
            // The normal case, which skips everything that it does not need.
            self.mark_acknowledgeable(ctx, packet, 0);
            return GO_ON;
        }
        if packet.ty != PacketType::Data {
            self.negotiation.note_gsr(self.seq.gsr);
        }
        if self.is_newest_response(packet) {
            self.handshake.drop_cookies();
        }
        let parsed = match self.read_options(ctx, packet) {
            Ok(parsed) => parsed,
            Err(error) => {
                self.counters.rare().drops.bad_options += 1;
                self.reset_for_error(ctx, error.code, error.data);
                return DROP;
            }
        };
        packet.data_checksum = parsed.data_checksum;
        self.mark_acknowledgeable(ctx, packet, parsed.ndp_count);
        if parsed.negotiates && self.take_activated(ctx).is_err() {
            return DROP;
        }
        if packet.ty == PacketType::Response {
            self.on_request_answered(ctx, &parsed);
        }
        self.process_acknowledgement(ctx, packet, &parsed.of_ack());
        GO_ON
    }

    /// Records that `count` packets like this one were valid.
    #[inline(always)]
    pub(super) fn note_valid(&mut self, ctx: &Ctx<'_>, packet: &Received<'_>, count: u64) {
        self.timing.on_valid(ctx.now, self.seq.gar);
        let c = &mut self.counters;
        match packet.ty {
            PacketType::Data | PacketType::DataAck => c.data_packets_received += count,
            PacketType::Ack => c.acks_received += 1,
            ty => c.note_other(ty),
        }
        if packet.ecn == Ecn::Ce {
            c.rare().ecn_ce_received += count;
        }
    }

    /// Enters the packet into the Ack Vector and notifies congestion control.
    #[inline(always)]
    pub(super) fn mark_acknowledgeable(
        &mut self,
        ctx: &Ctx<'_>,
        packet: &mut Received<'_>,
        ndp: u64,
    ) {
        let is_data = packet.carries_message();
        if is_data && packet.ecn != Ecn::Ce && self.recv.is_marking() {
            // Our queue is the last of the path, and marks before it has to drop (section 11.6).
            packet.ecn = Ecn::Ce;
            self.counters.rare().local_congestion_marks += 1;
        }
        //= 4340-11-1
        //= 4340-11.4-4
        //= 4340-12.1-3
        let arrival = self.acks.on_packet(packet.seq, packet.ecn);
        if matches!(arrival, Arrival::Duplicate | Arrival::Forgotten) {
            packet.is_duplicate = true;
            self.counters.rare().drops.duplicates += 1;
            return;
        }
        let info = self.received_info(packet, ndp);
        self.cc.on_packet(&self.config, ctx.now, info);
    }

    /// The information about a packet that congestion control gets.
    #[inline(always)]
    pub(super) fn received_info(&self, packet: &Received<'_>, ndp: u64) -> ReceivedInfo {
        ReceivedInfo {
            seq: packet.seq,
            is_data: packet.carries_message(),
            size_bytes: packet.view.data_len() as u32,
            ccval: packet.view.ccval(),
            ecn: packet.ecn,
            ndp_count: self.negotiation.agreed().peer_sends_ndp.then_some(ndp),
        }
    }
}
