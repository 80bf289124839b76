//! Step 10: process REQUEST state (second part).

use super::super::timers::Timer;
use super::super::{Connection, Ctx};
use super::{DROP, Flow, GO_ON};
use crate::event::EventKind;
use crate::features::Phase;
use crate::state::State;

impl Connection {
    /// A packet that reaches this step in REQUEST is a valid Response.
    pub(super) fn step_10_leave_request(&mut self, ctx: &mut Ctx<'_>) -> Flow {
        if self.state != State::Request {
            return GO_ON;
        }
        self.become_state(State::PartOpen);
        self.negotiation.set_phase(Phase::PartOpen);
        self.outbox.handshake = false;
        self.handshake.on_response();
        self.timers.stop(Timer::Request);
        self.timers.set(Timer::Handshake, ctx.now + self.config.handshake_timeout);
        if self.install_ccids(ctx).is_err() {
            return DROP;
        }
        self.negotiation.fix_ccids();
        self.begin_quick_start(ctx.now);
        self.start_keep_alive(ctx.now);
        self.emit(ctx, EventKind::Connected);
        GO_ON
    }
}
