//! Remembers that nothing unusual is going on, so that most packets do not have to find that out
//! again.

use core::fmt;

use udccp_base::Ecn;

use super::Connection;
use crate::state::State;

/// The ECN codepoint of data and acknowledgements while the connection is as it usually is
/// (`Connection::find_usual`). Set after a general turn. Whatever may change the result clears it;
/// the next general turn sets it again.
#[derive(Clone, Copy, Default)]
pub(super) struct Usual(Option<Ecn>);

/// Leaves the contents out: tests compare connections that use fast paths with others.
impl fmt::Debug for Usual {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Usual").finish_non_exhaustive()
    }
}

impl Connection {
    /// The caller may change anything.
    #[inline]
    pub(crate) fn forget_usual(&mut self) {
        self.usual = Usual(None);
    }

    /// A general turn has ended.
    #[inline]
    pub(super) fn note_usual(&mut self) {
        self.usual = Usual(self.find_usual());
    }

    /// The ECN codepoint of packets that may take a fast path; `None` if none may.
    #[inline(always)]
    pub(super) fn usual(&self) -> Option<Ecn> {
        debug_assert!(self.usual.0.is_none() || self.usual.0 == self.find_usual());
        self.usual.0
    }

    /// The ECN codepoint if the connection is open, negotiates nothing, has no packets to send but
    /// data and acknowledgements, and these have no options but those of acknowledgements and NDP
    /// Counts.
    fn find_usual(&self) -> Option<Ecn> {
        let is_open = self.state == State::Open
            && !self.ending.is_closed_by_us()
            && !self.recv.is_shut()
            && self.timing.is_greeting_known()
            && !self.waits_for_ecn_confirm();
        let owes_nothing = self.outbox.has_no_control()
            && self.negotiation.is_settled()
            && !self.timing.owes_echo()
            && !self.send.queue().has_deadlines()
            && self.handshake.cookies().is_empty();
        let is_known_path =
            self.quick_start.is_none() && !self.credit.is_limited() && !self.path.has_odd_reports();
        let follows_settings = !self.config.long_way_only && self.config.ecn_probe.is_none();
        let is_plain = self.negotiation.agreed().is_plain;
        let is_usual = is_plain && is_open && owes_nothing && is_known_path && follows_settings;
        is_usual.then(|| self.lasting_ecn())
    }

    /// The ECN codepoint of data and acknowledgements while no packet is marked as a probe.
    fn lasting_ecn(&self) -> Ecn {
        let is_capable = self.config.ecn && !self.negotiation.agreed().peer_ecn_incapable;
        if is_capable { self.cc.unprobed_ecn() } else { Ecn::NotEct }
    }
}
