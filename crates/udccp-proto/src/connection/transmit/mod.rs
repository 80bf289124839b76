//! Sends when the endpoint is drained: control packets first, then data as congestion control
//! allows, then an acknowledgement if one is still owed.

mod ack;
mod control;
mod data;
mod packet;
mod run;

use udccp_base::Datagram;

use super::{Connection, Ctx};

impl Connection {
    /// Puts the next packet to send into `out`; false when nothing is left. It is built where it is
    /// wanted, since a datagram is large to hand from function to function.
    pub(crate) fn poll_transmit(&mut self, ctx: &mut Ctx<'_>, out: &mut Option<Datagram>) -> bool {
        if !self.outbox.has_no_control() && self.transmit_control(ctx, out) {
            return true;
        }
        // Before the handshake is done nothing leaves, but messages may grow too old.
        if !self.send.queue().is_empty() && self.transmit_data(ctx, out) {
            return true;
        }
        // Deciding about data or an acknowledgement may call for a Close or a Sync instead.
        (self.state.transfers() && self.transmit_ack(ctx, out))
            || (!self.outbox.has_no_control() && self.transmit_control(ctx, out))
    }
}
