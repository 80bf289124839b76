//! Ends connections whose peer is unreachable according to ICMP messages.

use udccp_wire::Seqno;

use super::ending::{Refusal, Refused};
use super::{Connection, Ctx};
use crate::error::CloseReason;
use crate::state::State;

impl Connection {
    /// The network reports that the peer is unreachable. That ends a handshake, and has no effect
    /// on an open connection.
    pub(crate) fn on_unreachable(&mut self, ctx: &mut Ctx<'_>) {
        if matches!(self.state, State::Request | State::Respond) {
            self.tear_down(ctx, State::Closed, CloseReason::Unreachable);
        }
    }

    /// The peer's host reports that nothing there accepts our packet `seq`. That ends a handshake
    /// at once. An open connection ends only after repeated reports about ever later packets, while
    /// nothing valid arrives from the peer.
    pub(crate) fn on_port_unreachable(&mut self, ctx: &mut Ctx<'_>, seq: Seqno) {
        let reason = CloseReason::PortUnreachable;
        match self.state {
            State::Request | State::Respond => self.tear_down(ctx, State::Closed, reason),
            State::PartOpen | State::Open | State::CloseReq | State::Closing => {
                let (gss, gar) = (self.seq.gss, self.seq.gar);
                let received = self.counters().packets_received;
                match self.ending.on_refusal(Refused { seq, received, gss, gar }) {
                    Refusal::Old => {}
                    Refusal::Doubt => self.ask_for_life(),
                    Refusal::Enough => self.tear_down(ctx, State::Closed, reason),
                }
            }
            State::Closed | State::Listen | State::TimeWait => {}
        }
    }

    fn ask_for_life(&mut self) {
        if matches!(self.state, State::PartOpen | State::Open) {
            self.outbox.sync = Some(self.seq.gsr);
        }
    }
}
