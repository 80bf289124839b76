//! Step 9: process Reset.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// The receiver of a Reset enters TIMEWAIT (RFC 4340 section 8.3). It does not if the peer has
    /// lost the connection and may start another on the same ports (section 7.5.6), whose Request
    /// then gets through.
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
        let next = if self.peer_is_new(code) { State::Closed } else { State::TimeWait };
        let reason = self.ending.on_reset(self.state, code, data, &text);
        //= 4340-8.3-3
        self.tear_down(ctx, next, reason);
        DROP
    }

    /// Whether a Reset with this code comes from a client that ended without notice and came back.
    /// In REQUEST, a client answers packets of another connection with Packet Error; without a
    /// connection, with No Connection. In CLOSING, the latter is the second answer to our Close,
    /// after the first was lost: then we enter TIMEWAIT as intended.
    fn peer_is_new(&self, code: ResetCode) -> bool {
        let lost = code == ResetCode::NoConnection && self.state != State::Closing;
        self.is_server() && (code == ResetCode::PacketError || lost)
    }
}
