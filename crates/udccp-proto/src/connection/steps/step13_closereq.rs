//! Step 13: process CloseReq.

use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};

impl Connection {
    /// The server wants to close and leaves TIMEWAIT to us.
    pub(super) fn step_13_process_closereq(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) {
        if packet.ty == PacketType::CloseReq && self.state.is_before_closereq() {
            self.send_close(ctx);
        }
    }
}
