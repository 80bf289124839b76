//! What leaves when the endpoint is drained: control packets first, then data as congestion
//! control allows, then an acknowledgement if one is still owed.

mod ack;
mod control;
mod data;
mod packet;

use udccp_base::Datagram;

use super::{Connection, Ctx};

impl Connection {
    /// The next packet to send, or `None` when all is said.
    pub(crate) fn poll_transmit(&mut self, ctx: &mut Ctx<'_>) -> Option<Datagram> {
        if !self.outbox.has_no_control()
            && let Some(packet) = self.transmit_control(ctx)
        {
            return Some(packet);
        }
        if !self.state.transfers() {
            return None;
        }
        if !self.send_queue.is_empty()
            && let Some(packet) = self.transmit_data(ctx)
        {
            return Some(packet);
        }
        // Deciding about an acknowledgement may call for a Sync instead.
        self.transmit_ack(ctx).or_else(|| self.transmit_control(ctx))
    }
}
