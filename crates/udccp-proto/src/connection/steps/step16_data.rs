//! Step 16: process data.

use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};
use crate::ackvec::DropCode;
use crate::event::EventKind;

impl Connection {
    /// Hands data to the application, or reports with Data Dropped why it did not get there.
    pub(super) fn step_16_process_data(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) {
        if packet.is_duplicate {
            return;
        }
        if let Err(code) = self.accept_data(packet) {
            self.drops.on_drop(packet.seq, code);
            return;
        }
        if !packet.carries_message() {
            return;
        }
        let payload = packet.payload();
        self.counters.data_bytes_received += payload.len() as u64;
        let was_empty = self.recv_queue.is_empty();
        self.recv_queue.push(payload);
        if was_empty {
            self.emit(ctx, EventKind::Readable);
        }
    }

    /// Whether the packet's data, if it has any, may be delivered.
    fn accept_data(&mut self, packet: &Received<'_>) -> Result<(), DropCode> {
        let drops = &mut self.counters.drops;
        if !packet.data_is_intact() {
            drops.corrupt_payload += 1;
            return Err(DropCode::Corrupt);
        }
        if !packet.carries_message() {
            return Ok(());
        }
        if !self.wishes.listens {
            drops.not_listening += 1;
            return Err(DropCode::ApplicationNotListening);
        }
        let of_handshake = matches!(packet.ty, PacketType::Request | PacketType::Response);
        if of_handshake && core::mem::replace(&mut self.handshake_data_taken, true) {
            drops.protocol_constraints += 1;
            return Err(DropCode::ProtocolConstraints);
        }
        if !self.agreed.accepts_coverage(packet.view.cscov()) {
            drops.coverage_too_small += 1;
            return Err(DropCode::ProtocolConstraints);
        }
        if !self.recv_queue.has_room(packet.view.data_len()) {
            drops.receive_queue_full += 1;
            return Err(DropCode::ReceiveBuffer);
        }
        Ok(())
    }
}
