//! The short way through the steps.

use udccp_wire::PacketType;

use super::super::options::AckOptions;
use super::super::{Connection, Ctx, Received};
use crate::state::State;

/// Options of a packet that takes the short way.
enum Usual<'a> {
    /// None, on a Data packet.
    None,
    /// Those of an acknowledgement.
    Ack(AckOptions<'a>),
}

impl Connection {
    /// Takes the next packet in order of an open connection, if it is Data without options, or an
    /// Ack or DataAck with the usual ones; whether it did. What is left out of the steps has
    /// nothing to do for such a packet: steps 4, 5, 7 and 9 to 15 concern other states and types,
    /// and in step 6 the next number is valid.
    #[inline]
    pub(super) fn take_in_order(&mut self, ctx: &mut Ctx<'_>, packet: &mut Received<'_>) -> bool {
        if self.state != State::Open || !packet.view.x() || self.config.long_way_only {
            return false;
        }
        let Some(options) = usual_options(packet) else { return false };
        if !self.seq.take_next_in_order(packet.seq, packet.ackno) {
            return false;
        }
        self.note_valid(ctx, packet, 1);
        match options {
            Usual::None => self.mark_acknowledgeable(ctx, packet, 0),
            Usual::Ack(options) => {
                self.negotiate_begin(packet);
                self.mark_acknowledgeable(ctx, packet, 0);
                self.process_acknowledgement(ctx, packet, &options);
            }
        }
        self.step_16_process_data(ctx, packet);
        true
    }
}

#[inline]
fn usual_options<'a>(packet: &Received<'a>) -> Option<Usual<'a>> {
    let bytes = packet.view.option_bytes();
    match packet.ty {
        _ if packet.arrival.quick_start.is_some() => None,
        PacketType::Data if bytes.is_empty() => Some(Usual::None),
        PacketType::Ack | PacketType::DataAck => AckOptions::usual(bytes).map(Usual::Ack),
        _ => None,
    }
}
