//! A peer whose host answers that nobody is there (ICMP port or protocol unreachable).

use udccp_wire::Seqno;

use super::{Connection, Ctx};
use crate::error::CloseReason;
use crate::state::State;

/// So many messages in a row end an open connection. A single one may be forged, late, or of a
/// moment's confusion (RFC 5927 section 5.2).
const ENOUGH: u32 = 3;

/// What the peer's host has refused since a valid packet last arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refusals {
    count: u32,
    /// Valid packets of the peer until then.
    heard: u64,
    /// The next message has to quote a later packet: one sent since the message before.
    after: Seqno,
}

impl Connection {
    /// The peer's host says that nothing there takes our packet `seq`. That ends a handshake at
    /// once. An open connection ends when it is said again and again, of later packets each time,
    /// while nothing valid comes from the peer; a Sync asks in between, which a living peer
    /// answers.
    pub(crate) fn on_port_unreachable(&mut self, ctx: &mut Ctx<'_>, seq: Seqno) {
        let reason = CloseReason::PortUnreachable;
        match self.state {
            State::Request | State::Respond => self.tear_down(ctx, State::Closed, reason),
            State::PartOpen | State::Open | State::CloseReq | State::Closing => {
                if self.is_refused_again(seq) {
                    self.tear_down(ctx, State::Closed, reason);
                }
            }
            State::Closed | State::Listen | State::TimeWait => {}
        }
    }

    /// Counts a message about packet `seq`; whether that is enough.
    fn is_refused_again(&mut self, seq: Seqno) -> bool {
        let heard = self.counters.packets_received;
        let before = self.refusals.filter(|before| before.heard == heard);
        let (count, after) = before.map_or((0, self.seq.gar), |b| (b.count, b.after));
        if !seq.is_after(after) {
            return false;
        }
        let count = count + 1;
        self.refusals = Some(Refusals { count, heard, after: self.seq.gss });
        if count < ENOUGH && matches!(self.state, State::PartOpen | State::Open) {
            self.outbox.sync = Some(self.seq.gsr);
        }
        count >= ENOUGH
    }
}
