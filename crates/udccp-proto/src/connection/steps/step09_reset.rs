//! Step 9: process Reset.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// The receiver of a Reset holds TIMEWAIT (RFC 4340 section 8.3), but not where the peer has
    /// lost the connection and may make another one on the same ports (section 7.5.6): its Request
    /// gets through then.
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

    /// Whether the Reset with this code is of a client that ended without a word and came back. One
    /// in REQUEST answers with Packet Error to what is of another connection, one without a
    /// connection with No Connection. In CLOSING that is the second answer to our Close, where the
    /// first was lost: then TIMEWAIT is ours, as we wanted.
    fn peer_is_new(&self, code: ResetCode) -> bool {
        let lost = code == ResetCode::NoConnection && self.state != State::Closing;
        self.is_server() && (code == ResetCode::PacketError || lost)
    }
}
