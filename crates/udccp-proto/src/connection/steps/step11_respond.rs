//! Step 11: process RESPOND state.

use udccp_wire::PacketType;

use super::super::timers::Timer;
use super::super::{Connection, Credit, Ctx, Handled, Received};
use crate::event::EventKind;
use crate::features::Phase;
use crate::state::State;

impl Connection {
    /// Answers every Request, the first or a later one. Anything else shows that the client has our
    /// Response, and the application may accept the connection.
    pub(super) fn step_11_process_respond(
        &mut self,
        ctx: &mut Ctx<'_>,
        packet: &Received<'_>,
    ) -> Handled {
        if self.state != State::Respond {
            return Handled::Done;
        }
        //= 4340-8.1.3-3
        //= 4340-8.1.3-4
        if packet.ty == PacketType::Request {
            let is_ready = self.cc.sender_ccid().is_some() || self.install_ccids(ctx).is_ok();
            self.outbox.handshake = is_ready;
            return Handled::Done;
        }
        // Its acknowledgement number shows that the client has our Response.
        self.credit = Credit::UNLIMITED;
        self.seq.osr = packet.seq;
        self.become_state(State::Open);
        self.negotiation.fix_ccids();
        self.negotiation.set_phase(Phase::Open);
        self.timers.stop(Timer::Handshake);
        self.start_keep_alive(ctx.now);
        self.start_probing(ctx);
        self.handshake.finish_server(self.seq.gss);
        // Any packet shows the client that its handshake is done. It may have no data to wait for,
        // so send an Ack.
        self.outbox.ack |= packet.ty == PacketType::Ack;
        let Some(listener) = self.who.listener else { return Handled::Done };
        self.emit(ctx, EventKind::Incoming(listener));
        Handled::Accepted(listener)
    }
}
