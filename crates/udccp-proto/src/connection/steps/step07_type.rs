//! Step 7: check for unexpected packet types.

use udccp_wire::PacketType::{CloseReq, Data, Request, Response};
use udccp_wire::{PacketType, Seqno};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// Answers types that a correct peer never sends to this end, or in this state, with a Sync.
    pub(super) fn step_7_check_type(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) -> Flow {
        if !self.is_unexpected(packet.ty, packet.seq) {
            return GO_ON;
        }
        self.counters.rare().drops.unexpected_type += 1;
        self.challenge(ctx, packet.seq);
        DROP
    }

    fn is_unexpected(&self, ty: PacketType, seq: Seqno) -> bool {
        let after_handshake = self.state.is_open_or_later() && seq.at_least(self.seq.osr);
        match ty {
            //= 4340-8.3-5
            CloseReq => self.is_server(),
            Response => self.is_server() || after_handshake,
            Request => !self.is_server() || after_handshake,
            Data => self.state == State::Respond,
            _ => false,
        }
    }
}
