//! Step 15: process Sync.

use udccp_wire::PacketType;

use super::super::{Connection, Ctx, Received};

impl Connection {
    /// Answers every valid Sync at once.
    pub(super) fn step_15_process_sync(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) {
        //= 4340-8.2-1
        //= 4340-5.7-3
        if packet.ty == PacketType::Sync {
            self.outbox.sync_acks.push(packet.seq);
        }
        if let (PacketType::SyncAck, Some(ackno)) = (packet.ty, packet.ackno) {
            let change = self.path.on_probe_answer(ctx.now, ackno);
            self.follow_path(ctx, change);
        }
    }
}
