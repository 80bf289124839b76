//! Step 9: process Reset.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// The receiver of a Reset holds TIMEWAIT.
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
        let reason = self.ending.on_reset(self.state, code, data, &text);
        //= 4340-8.3-3
        self.tear_down(ctx, State::TimeWait, reason);
        DROP
    }
}
