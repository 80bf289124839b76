//! Tracks retransmissions in flight, and detects which of them were lost again.
//!
//! RFC 6675 leaves a lost retransmission to the timer. Kernels do not: those of the 2.6 series
//! considered it lost when newer data had arrived, and current ones compare send times (RFC 8985).
//! Here the order of sending is compared: three later retransmissions that arrived, or three
//! segments of data first sent later, show that one is lost. Each is examined once, so the cost
//! does not depend on the window.

use std::collections::VecDeque;

use udccp_base::Instant;

use super::rack::{Overtaken, Sending};
use crate::ranges::{Range, RangeSet};

/// By how much a later transmission must follow to count as evidence (RFC 6675's DupThresh).
const DUP_THRESH: u32 = 3;

/// Maximum number of ascending runs that are tracked; further retransmissions are left to the
/// timer.
const MAX_RUNS: usize = 8;

/// Up to so many retransmissions, a run has no room to spare: most have one or two.
const FEW: usize = 4;

/// The retransmissions since the last timeout.
#[derive(Clone, Debug, Default)]
pub(crate) struct Retransmissions {
    /// Each run ascends in offset and in order. One pass over the holes is one run; holes sent a
    /// third time start another.
    runs: Vec<VecDeque<Sent>>,
    next_order: u32,
    /// Highest order that has arrived, plus one.
    arrived: u32,
    /// The newest that has arrived.
    newest: Sending,
    /// Ranges lost again that must be sent again. None of them is SACKed.
    pending: RangeSet,
    pending_bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    start: u64,
    len: u32,
    order: u32,
    at: Instant,
    /// Data from this offset was first sent later.
    newer_from: u64,
}

impl Sent {
    fn range(&self) -> Range {
        Range::new(self.start, self.start + u64::from(self.len))
    }

    fn sending(&self) -> Sending {
        Sending { at: self.at, end: self.range().end }
    }
}

impl Retransmissions {
    /// Bytes lost again that are waiting to be sent.
    pub(crate) fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    /// The first range to send again.
    pub(crate) fn first_pending(&self) -> Option<Range> {
        self.pending.first()
    }

    /// `range` was sent again while the next new offset was `nxt`.
    pub(crate) fn on_sent(&mut self, now: Instant, range: Range, nxt: u64) {
        if self.pending_bytes > 0 {
            self.pending_bytes -= self.pending.remove(range);
        }
        let (start, len, order) = (range.start, range.len() as u32, self.next_order);
        let sent = Sent { start, len, order, at: now, newer_from: nxt };
        self.next_order += 1;
        let fits = |run: &VecDeque<Sent>| run.back().is_none_or(|b| b.start < range.start);
        match self.runs.iter().position(fits) {
            Some(i) => {
                let run = &mut self.runs[i];
                if run.len() == run.capacity() && run.len() < FEW {
                    run.reserve_exact(1);
                }
                run.push_back(sent);
            }
            None if self.runs.len() < MAX_RUNS => {
                // Most recoveries are one run.
                self.runs.reserve_exact(1);
                self.runs.push(VecDeque::from([sent]));
            }
            None => {}
        }
    }

    /// `part`, which was retransmitted, was reported for the first time.
    pub(crate) fn on_delivered(&mut self, part: Range) {
        if self.pending_bytes > 0 {
            self.pending_bytes -= self.pending.remove(part);
        }
        for run in &self.runs {
            let after = run.partition_point(|s| s.start < part.end);
            let sent = after.checked_sub(1).map(|i| run[i]);
            if let Some(s) = sent.filter(|s| s.range().end > part.start) {
                self.arrived = self.arrived.max(s.order + 1);
                self.newest = self.newest.max(s.sending());
            }
        }
    }

    /// Finds retransmissions that were lost again, after data up to `highest` was reported.
    /// `sacked` has all reported data above `una`.
    pub(crate) fn find_lost(&mut self, una: u64, highest: u64, mss: u64, sacked: &mut RangeSet) {
        let arrived = self.arrived;
        self.find(una, sacked, |s| {
            s.order + DUP_THRESH < arrived || s.newer_from + u64::from(DUP_THRESH) * mss <= highest
        });
    }

    /// Finds retransmissions that were lost again by their send times (RFC 8985).
    pub(crate) fn find_overtaken(&mut self, una: u64, overtaken: Overtaken, sacked: &mut RangeSet) {
        self.find(una, sacked, |s| overtaken.covers(s.sending()));
    }

    /// The newest that has arrived since the last call (RFC 8985).
    pub(crate) fn take_newest(&mut self) -> Option<Sending> {
        let newest = core::mem::take(&mut self.newest);
        (newest.end > 0).then_some(newest)
    }

    fn find(&mut self, una: u64, sacked: &mut RangeSet, is_lost: impl Fn(&Sent) -> bool) {
        let (pending, bytes) = (&mut self.pending, &mut self.pending_bytes);
        for run in &mut self.runs {
            while let Some(s) = run.front().copied() {
                if s.range().end > una && !is_lost(&s) {
                    break;
                }
                run.pop_front();
                let missing = s.range().clamp(una, u64::MAX);
                sacked.for_each_gap(missing, |gap| {
                    pending.insert(gap, |new| *bytes += new.len());
                });
            }
        }
    }

    /// Everything below `ack` is acknowledged.
    pub(crate) fn on_cumulative_ack(&mut self, ack: u64) {
        if self.pending_bytes > 0 {
            self.pending_bytes -= self.pending.remove_below(ack);
        }
    }

    /// Called when everything is lost, or nothing is in flight.
    pub(crate) fn clear(&mut self) {
        self.runs.iter_mut().for_each(VecDeque::clear);
        self.pending.clear();
        self.pending_bytes = 0;
        self.arrived = 0;
        self.next_order = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 10;

    const fn seg(n: u64) -> Range {
        Range::new(n * MSS, n * MSS + MSS)
    }

    /// Holes 0, 2, 4... of a window of 40 were sent again, in order.
    fn sweep() -> (Retransmissions, RangeSet) {
        let (mut r, mut sacked) = (Retransmissions::default(), RangeSet::default());
        for n in 0..20 {
            sacked.insert(seg(2 * n + 1), |_| {});
            r.on_sent(Instant::from_nanos(n), seg(2 * n), 400);
        }
        (r, sacked)
    }

    fn deliver(r: &mut Retransmissions, sacked: &mut RangeSet, n: u64) {
        sacked.insert(seg(n), |part| r.on_delivered(part));
        let highest = sacked.last().map_or(0, |l| l.end);
        r.find_lost(0, highest, MSS, sacked);
    }

    #[test]
    fn the_third_later_one_that_arrives_makes_it_lost() {
        let (mut r, mut sacked) = sweep();
        for n in [2, 4] {
            deliver(&mut r, &mut sacked, n);
            assert_eq!(r.pending_bytes(), 0);
        }
        deliver(&mut r, &mut sacked, 6);
        assert_eq!(r.first_pending(), Some(seg(0)));
        r.on_sent(Instant::from_nanos(20), seg(0), 400);
        assert_eq!((r.first_pending(), r.pending_bytes()), (None, 0));
        // Its second copy is as new as the newest; only later transmissions are evidence of its
        // loss.
        for n in [8, 10, 12, 14, 16, 18, 20, 22] {
            deliver(&mut r, &mut sacked, n);
        }
        assert_eq!(r.pending_bytes(), 0);
    }

    #[test]
    fn newer_data_that_arrives_makes_it_lost_too() {
        let (mut r, mut sacked) = sweep();
        sacked.insert(Range::new(400, 420), |_| {});
        r.find_lost(0, 420, MSS, &mut sacked);
        assert_eq!(r.pending_bytes(), 0);
        sacked.insert(Range::new(420, 430), |_| {});
        r.find_lost(0, 430, MSS, &mut sacked);
        assert_eq!(r.pending_bytes(), 200, "all twenty of them");
        r.on_cumulative_ack(15);
        assert_eq!(r.pending_bytes(), 190);
        r.on_delivered(seg(2));
        assert_eq!((r.pending_bytes(), r.first_pending()), (180, Some(seg(4))));
    }
}
