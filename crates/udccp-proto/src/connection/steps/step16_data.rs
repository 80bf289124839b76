//! Step 16: process data.

use udccp_base::Payload;
use udccp_wire::{PacketType, PacketView};

use super::super::{Arrival, Connection, Ctx, Received};
use crate::ackvec::DropCode;
use crate::event::EventKind;

impl Connection {
    /// Delivers data to the application, or reports with Data Dropped why it was not delivered.
    pub(super) fn step_16_process_data(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) {
        if packet.is_duplicate {
            return;
        }
        self.take_data(ctx, packet, !packet.data_is_intact());
    }

    //= 4340-11.7-3
    /// Like [`Self::step_16_process_data`], for data that is not a duplicate.
    #[inline(always)]
    pub(super) fn take_data(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>, is_corrupt: bool) {
        if let Err(code) = self.accept_data(packet, is_corrupt) {
            // If the data is corrupt, report that rather than another drop code, even if the
            // application accepts corrupt data.
            let is_worse = is_corrupt && code != DropCode::ApplicationNotListening;
            self.acks.on_drop(packet.seq, if is_worse { DropCode::Corrupt } else { code });
            return;
        }
        //= 4340-5.4-4
        //= 4340-5.5-2
        //= 4340-5.7-4
        if !packet.carries_message() {
            return;
        }
        let payload = message(packet);
        self.counters.data_bytes_received += payload.len() as u64;
        if is_corrupt {
            //= 4340-9.3-2
            //= 4340-9.3-3
            self.counters.rare().corrupt_delivered += 1;
            self.acks.on_drop(packet.seq, DropCode::DeliveredCorrupt);
        }
        //= 4340-5.4-2
        if self.recv.push(payload, is_corrupt) {
            self.emit_here(ctx.events, EventKind::Readable);
        }
    }

    /// Whether the packet's data, if it has any, may be delivered.
    #[inline(always)]
    fn accept_data(&mut self, packet: &Received<'_>, is_corrupt: bool) -> Result<(), DropCode> {
        let waits_for_confirm = self.waits_for_ecn_confirm();
        //= 4340-11.7.2-3
        //= 4340-11.7.2-4
        if packet.carries_message() && self.recv.is_shut() {
            self.counters.rare().drops.not_listening += 1;
            return Err(DropCode::ApplicationNotListening);
        }
        //= 4340-9.3-1
        //= 4340-9.3-4
        //= 4340-9.3-5
        //= 4340-9.3-6
        //= 4340-9.3.1-1
        let is_wanted = self.config.deliver_corrupt && packet.carries_message();
        if is_corrupt && !is_wanted {
            self.counters.rare().drops.corrupt_payload += 1;
            return Err(DropCode::Corrupt);
        }
        if !packet.carries_message() {
            return Ok(());
        }
        //= 4340-12.1-6
        //= 4340-12.1-7
        if waits_for_confirm {
            self.counters.rare().drops.protocol_constraints += 1;
            return Err(DropCode::ProtocolConstraints);
        }
        //= 4340-8.1.3-6
        //= 4340-8.5-2
        let of_handshake = matches!(packet.ty, PacketType::Request | PacketType::Response);
        if of_handshake && !self.handshake.takes_data() {
            self.counters.rare().drops.protocol_constraints += 1;
            return Err(DropCode::ProtocolConstraints);
        }
        //= 4340-9.2.1-1
        //= 4340-9.2.1-2
        if !self.negotiation.agreed().accepts_coverage(packet.view.cscov()) {
            self.counters.rare().drops.coverage_too_small += 1;
            return Err(DropCode::ProtocolConstraints);
        }
        //= 4340-11.4-8
        if !self.recv.has_room(packet.view.data_len()) {
            self.counters.rare().drops.receive_queue_full += 1;
            return Err(DropCode::ReceiveBuffer);
        }
        Ok(())
    }

    /// Whether we cannot read ECN marks, and the peer has yet to confirm that it knows.
    #[inline(always)]
    pub(in super::super) fn waits_for_ecn_confirm(&self) -> bool {
        !self.config.ecn && self.negotiation.waits_for_ecn_confirm()
    }
}

/// The application data. Zeros, which need no copy, are handled inline.
#[inline(always)]
fn message(packet: &Received<'_>) -> Payload {
    match packet.arrival.datagram.payload {
        Payload::Zeros(zeros) if packet.view.payload_in_header().is_empty() => {
            Payload::Zeros(zeros)
        }
        _ => any_message(*packet.view, *packet.arrival),
    }
}

#[inline(never)]
fn any_message(view: PacketView<'_>, arrival: Arrival<'_>) -> Payload {
    Received::new(&view, &arrival).payload()
}
