//! Step 13: process CloseReq.

use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};
use crate::state::State;

impl Connection {
    /// The server closes and leaves TIMEWAIT to us. In CLOSING our Close was lost, or is in flight:
    /// another one is harmless, and every CloseReq must be answered (section 8.3).
    pub(super) fn step_13_process_closereq(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) {
        if packet.ty != PacketType::CloseReq {
            return;
        }
        //= 4340-8.3-1
        if self.state.is_before_closereq() {
            self.send_close(ctx);
        } else if self.state == State::Closing {
            self.outbox.close = true;
        }
    }
}
