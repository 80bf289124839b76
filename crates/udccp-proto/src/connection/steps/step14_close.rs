//! Step 14: process Close.

use udccp_wire::{PacketType, ResetCode};

use super::super::{Connection, Ctx, Received};
use super::{DROP, Flow, GO_ON};
use crate::state::State;

impl Connection {
    /// Confirms a Close with a Reset. The connection has then ended here.
    pub(super) fn step_14_process_close(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
    ) -> Flow {
        if packet.ty != PacketType::Close {
            return GO_ON;
        }
        let reason = self.ending.on_close(self.state);
        //= 4340-8.3-2
        self.post_reset(ResetCode::Closed, [0; 3]);
        self.tear_down(ctx, State::Closed, reason);
        DROP
    }
}
