//! Step 12: process PARTOPEN state.

use udccp_wire::PacketType;

use super::super::timers::Timer;
use super::super::{Connection, Ctx, Received};
use crate::features::Phase;
use crate::state::State;

impl Connection {
    /// Acknowledges a Response. Anything else but a Sync shows that the server has received a
    /// packet of ours since its Response.
    pub(super) fn step_12_process_partopen(&mut self, ctx: &mut Ctx<'_>, packet: &Received<'_>) {
        if self.state != State::PartOpen {
            return;
        }
        match packet.ty {
            PacketType::Response => self.outbox.ack = true,
            PacketType::Sync => {}
            _ => {
                self.seq.osr = packet.seq;
                self.become_state(State::Open);
                self.negotiation.set_phase(Phase::Open);
                self.timers.stop(Timer::PartOpen);
                self.timers.stop(Timer::Handshake);
                self.handshake.finish_client();
                self.start_probing(ctx);
            }
        }
    }
}
