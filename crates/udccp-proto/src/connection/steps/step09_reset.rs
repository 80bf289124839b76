//! Step 9: process Reset.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// The receiver of a Reset holds TIMEWAIT, but not where the peer has lost the connection and
    /// is about to make another one (RFC 4340 section 7.5.6): its Request is sent again, and gets
    /// through then.
    pub(super) fn step_9_process_reset(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
    ) -> Flow {
        if packet.ty != PacketType::Reset {
            return GO_ON;
        }
        let code = packet.view.reset_code().unwrap_or(ResetCode::Unspecified);
        let data = packet.view.reset_data().unwrap_or_default();
        let text = packet.payload().to_bytes();
        let next = if self.peer_connects_again(code) { State::Closed } else { State::TimeWait };
        let reason = self.ending.on_reset(self.state, code, data, &text);
        //= 4340-8.3-3
        self.tear_down(ctx, next, reason);
        DROP
    }

    /// Whether the Reset with this code is of a client in REQUEST, which answers so whatever is of
    /// another connection: it ended without a word, and came back on the same ports.
    fn peer_connects_again(&self, code: ResetCode) -> bool {
        self.is_server() && code == ResetCode::PacketError
    }
}
