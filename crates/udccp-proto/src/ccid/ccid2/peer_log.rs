//! Detects losses among the peer's acknowledgements.

use udccp_base::Ecn;
use udccp_wire::Seqno;

use crate::ccid::ReceivedInfo;

/// Number of packets in the log, one bit each.
const DEPTH: u64 = 64;

/// The last 64 sequence numbers of the peer. Bit k is the packet k before the newest.
#[derive(Clone, Debug, Default)]
pub(super) struct PeerLog {
    newest: Option<Seqno>,
    received: u64,
    /// Holes that were data packets (according to NDP Count) or were counted already.
    settled: u64,
}

impl PeerLog {
    //= 4341-6.1.1-1
    /// Records a packet. Returns whether it shows that an acknowledgement was lost or marked.
    ///
    /// A hole counts when three later packets have arrived. It counts as an acknowledgement unless
    /// the NDP Count of the packet after it shows that it was data (RFC 4341 section 6.1.1).
    #[inline(always)]
    pub(super) fn on_packet(&mut self, packet: &ReceivedInfo) -> bool {
        let marked = !packet.is_data && packet.ecn == Ecn::Ce;
        if self.is_whole() && self.newest == Some(packet.seq.prev()) {
            // The normal case.
            (self.newest, self.settled) = (Some(packet.seq), self.settled << 1);
            return marked;
        }
        self.on_other(packet.seq, packet.ndp_count == Some(0)) || marked
    }

    /// Does the same if there are holes, or if the packet is out of order.
    #[cold]
    #[inline(never)]
    fn on_other(&mut self, seq: Seqno, follows_data: bool) -> bool {
        let Some(newest) = self.newest else {
            (self.newest, self.received, self.settled) = (Some(seq), 1, !1);
            return false;
        };
        let step = seq.distance_from(newest);
        if step <= 0 {
            let age = step.unsigned_abs();
            self.received |= if age < DEPTH { 1 << age } else { 0 };
            return false;
        }
        self.newest = Some(seq);
        let overflow = self.shift(step.unsigned_abs());
        if follows_data && self.received & 2 == 0 {
            self.settled |= 2;
        }
        self.count_holes() || overflow
    }

    /// Whether the log has no holes.
    pub(super) fn is_whole(&self) -> bool {
        self.received == u64::MAX
    }

    /// Records the next `count` packets, up to `newest`. The log must have no holes.
    pub(super) fn skip_to(&mut self, newest: Seqno, count: u32) {
        self.newest = Some(newest);
        self.settled = self.settled.checked_shl(count).unwrap_or(0);
    }

    /// Advances by `step` packets. Returns whether open holes left the log.
    fn shift(&mut self, step: u64) -> bool {
        if step >= DEPTH {
            (self.received, self.settled) = (1, !1);
            return true;
        }
        let falling = !(u64::MAX >> step);
        let lost = !(self.received | self.settled) & falling != 0;
        self.received = self.received << step | 1;
        self.settled <<= step;
        lost
    }

    fn count_holes(&mut self) -> bool {
        let second = self.received & (self.received - 1);
        let third = second & second.wrapping_sub(1);
        if second == 0 || third == 0 {
            return false;
        }
        let older_than_third = !(u64::MAX >> (DEPTH as u32 - 1 - third.trailing_zeros()));
        let holes = !(self.received | self.settled) & older_than_third;
        self.settled |= holes;
        holes != 0
    }
}
