//! Step 4: prepare sequence numbers in REQUEST.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Handled, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// REQUEST accepts only a Response or a Reset that acknowledges one of our Requests, and takes
    /// the peer's first number from it. Everything else is answered with a Reset whose numbers come
    /// from the packet, since we know none that the peer would accept. The Requests continue.
    pub(super) fn step_4_prepare_numbers_in_request(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
    ) -> Flow {
        if self.state != State::Request {
            return GO_ON;
        }
        let expected = matches!(packet.ty, PacketType::Response | PacketType::Reset);
        if expected && packet.ackno.is_some_and(|ackno| self.seq.ack_in_window(ackno)) {
            self.seq.start_receiving(packet.seq);
            if packet.ty == PacketType::Reset {
                // Later steps require a Reset to be newer than all packets before it, and this is
                // the first.
                self.seq.gsr = packet.seq.prev();
            }
            return GO_ON;
        }
        self.counters.rare().drops.sequence_invalid += 1;
        if self.limits.allow_refusal(ctx.now, self.config.sync_interval) {
            if packet.ackno.is_some_and(|ackno| self.seq.ack_in_window(ackno)) {
                // The Reset takes its number from the packet, and that may be our next number.
                self.seq.take_next();
            }
            //= 4340-7.5.4-7
            return Flow::Break(Handled::Refused(ResetCode::PacketError));
        }
        DROP
    }
}
