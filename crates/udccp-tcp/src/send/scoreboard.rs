//! The scoreboard of RFC 6675: what is acknowledged, what is lost, how much is in the pipe.
//!
//! `IsLost` only looks at what was SACKed *above* an offset, which grows downwards, so one edge
//! separates the lost holes from the others, and it is found from at most three stretches at the
//! back. With the bytes SACKed above that edge and the bytes retransmitted below `high_rxt`, the
//! pipe is a sum of four counters: nothing here walks the window.

use super::retransmissions::Retransmissions;
use crate::ranges::{Range, RangeSet};

/// Number of stretches SACKed above a hole that make it lost (RFC 6675 section 2).
const DUP_THRESH: usize = 3;

/// Sequence space from `una` to `nxt`, with what the peer reported about it.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    mss: u64,
    una: u64,
    nxt: u64,
    sacked: RangeSet,
    sacked_bytes: u64,
    /// Everything below that is not SACKed is lost.
    lost_edge: u64,
    /// Bytes SACKed at or above `lost_edge`.
    sacked_above_edge: u64,
    /// First offset not retransmitted since the last timeout (one past the RFC's HighRxt). A new
    /// recovery does not send again what the one before it has on its way.
    high_rxt: u64,
    /// Bytes below `high_rxt` neither SACKed nor acknowledged.
    rxt_out: u64,
    /// Follows retransmissions that may be lost again; `None` leaves them to the timer.
    retransmissions: Option<Retransmissions>,
    /// One past the FIN, which rides on the last segment beyond its `mss` bytes of data.
    fin_end: u64,
    /// Blocks of the last acknowledgement: receivers repeat them.
    last_blocks: [Range; 4],
}

impl Scoreboard {
    /// Nothing sent; the next offset is `start`. `mss` is the data in a full segment.
    /// `detect` finds lost retransmissions before the timer does.
    pub(crate) fn new(start: u64, mss: u32, detect: bool) -> Self {
        Self {
            mss: u64::from(mss),
            una: start,
            nxt: start,
            sacked: RangeSet::default(),
            sacked_bytes: 0,
            lost_edge: start,
            sacked_above_edge: 0,
            high_rxt: start,
            rxt_out: 0,
            retransmissions: detect.then(Retransmissions::default),
            fin_end: u64::MAX,
            last_blocks: [Range::new(0, 0); 4],
        }
    }

    /// Sets the data in a full segment, once options are agreed.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.mss = u64::from(mss);
    }

    /// A FIN occupies the last offset before `end`.
    pub(crate) fn set_fin(&mut self, end: u64) {
        self.fin_end = end;
    }

    /// First offset not cumulatively acknowledged.
    pub(crate) fn una(&self) -> u64 {
        self.una
    }

    /// Next offset to send for the first time.
    pub(crate) fn nxt(&self) -> u64 {
        self.nxt
    }

    /// Bytes sent and not cumulatively acknowledged.
    pub(crate) fn flight(&self) -> u64 {
        self.nxt - self.una
    }

    /// Bytes believed to be in the network (RFC 6675 `SetPipe`).
    pub(crate) fn pipe(&self) -> u64 {
        let lost_again = self.retransmissions.as_ref().map_or(0, |r| r.pending_bytes());
        self.nxt - self.lost_edge - self.sacked_above_edge + self.rxt_out - lost_again
    }

    /// Whether the first outstanding byte is lost.
    pub(crate) fn head_is_lost(&self) -> bool {
        self.una < self.lost_edge
    }

    /// New data up to `end` was sent.
    pub(crate) fn on_new_data(&mut self, end: u64) {
        self.nxt = end;
    }

    /// Takes in SACK blocks; returns the number of bytes SACKed for the first time.
    pub(crate) fn on_sack(&mut self, blocks: &[Range]) -> u64 {
        let mut newly = 0;
        for (i, &block) in blocks.iter().enumerate() {
            if self.last_blocks.contains(&block) && block.start >= self.una {
                continue;
            }
            self.last_blocks[i % self.last_blocks.len()] = block;
            // Blocks below `una` are reports of duplicates (RFC 2883) or old news.
            let block = block.clamp(self.una, self.nxt);
            if block.start < block.end {
                newly += self.mark(block);
            }
        }
        if newly > 0 {
            self.raise_lost_edge();
            self.find_lost_again();
        }
        newly
    }

    fn find_lost_again(&mut self) {
        if let Some(r) = self.retransmissions.as_mut().filter(|_| self.rxt_out > 0) {
            let highest = self.sacked.last().map_or(self.una, |s| s.end);
            r.find_lost(self.una, highest, self.mss, &mut self.sacked);
        }
    }

    fn mark(&mut self, block: Range) -> u64 {
        let (edge, high_rxt) = (self.lost_edge, self.high_rxt);
        let (mut newly, mut above, mut rxt) = (0, 0, 0);
        let retransmissions = &mut self.retransmissions;
        self.sacked.insert(block, |part| {
            newly += part.len();
            above += part.clamp(edge, u64::MAX).len();
            let again = part.clamp(0, high_rxt);
            if let Some(r) = retransmissions.as_mut().filter(|_| again.len() > 0) {
                r.on_delivered(again);
            }
            rxt += again.len();
        });
        self.sacked_bytes += newly;
        self.sacked_above_edge += above;
        self.rxt_out -= rxt;
        newly
    }

    /// RFC 6675 `IsLost`: three stretches, or more than two segments of bytes, SACKed above.
    fn raise_lost_edge(&mut self) {
        let mut above = 0;
        for (i, stretch) in self.sacked.iter_back().enumerate() {
            above += stretch.len();
            if i + 1 >= DUP_THRESH || above > (DUP_THRESH as u64 - 1) * self.mss {
                if stretch.start > self.lost_edge {
                    self.lost_edge = stretch.start;
                    self.sacked_above_edge = above;
                }
                return;
            }
        }
    }

    /// Takes in a cumulative acknowledgement in `una..=nxt`; returns how many of its bytes had
    /// been SACKed before.
    pub(crate) fn on_cumulative_ack(&mut self, ack: u64) -> u64 {
        if let Some(r) = self.retransmissions.as_mut().filter(|_| self.rxt_out > 0) {
            if ack >= self.high_rxt {
                r.clear();
            } else {
                self.sacked.for_each_gap(Range::new(self.una, ack), |part| r.on_delivered(part));
                r.on_cumulative_ack(ack);
            }
        }
        let covered = self.sacked.remove_below(ack);
        self.sacked_bytes -= covered;
        self.rxt_out =
            if ack >= self.high_rxt { 0 } else { self.rxt_out - (ack - self.una - covered) };
        self.una = ack;
        self.high_rxt = self.high_rxt.max(ack);
        self.find_lost_again();
        if ack > self.lost_edge {
            self.lost_edge = ack;
            self.sacked_above_edge = self.sacked_bytes;
        }
        covered
    }

    /// Three duplicate acknowledgements of small segments: the first hole is lost although
    /// `IsLost` does not say so (RFC 6675 section 5, step 1).
    pub(crate) fn lose_head(&mut self) {
        if !self.head_is_lost() {
            let end = self.sacked.first_after(self.una).map_or(self.nxt, |r| r.start);
            self.lost_edge = end.min(self.una + self.mss);
        }
    }

    /// The retransmission timer expired: all that is not SACKed is lost, retransmissions too.
    /// SACK information is kept (RFC 6675 section 5.1): the receiver's buffer never takes back
    /// what it reported, because the window it advertises covers all of it.
    pub(crate) fn on_timeout(&mut self) {
        self.high_rxt = self.una;
        self.rxt_out = 0;
        if let Some(r) = &mut self.retransmissions {
            r.clear();
        }
        self.lost_edge = self.nxt;
        self.sacked_above_edge = 0;
    }

    /// The next lost hole that has no retransmission on its way (`NextSeg` rule 1), at most a
    /// segment of it.
    pub(crate) fn next_lost(&mut self) -> Option<Range> {
        let again = self.retransmissions.as_ref().and_then(Retransmissions::first_pending);
        if let Some(again) = again {
            return Some(Range::new(again.start, self.segment_end(again.start, again.end)));
        }
        if self.high_rxt >= self.lost_edge {
            return None;
        }
        self.next_hole(self.lost_edge)
    }

    /// The next hole below the highest SACKed byte, lost or not (`NextSeg` rule 3).
    pub(crate) fn next_maybe_lost(&mut self) -> Option<Range> {
        let highest = self.sacked.last()?.start;
        self.next_hole(highest)
    }

    fn next_hole(&mut self, limit: u64) -> Option<Range> {
        let mut start = self.high_rxt.max(self.una);
        let mut next = self.sacked.first_after(start);
        if let Some(covering) = next.filter(|r| r.start <= start) {
            start = covering.end;
            next = self.sacked.first_after(start);
        }
        let hole_end = next.map_or(limit, |r| r.start.min(limit));
        (start < hole_end).then(|| Range::new(start, self.segment_end(start, hole_end)))
    }

    /// Where a segment from `start` ends that may reach up to `limit`.
    fn segment_end(&self, start: u64, limit: u64) -> u64 {
        let full = start + self.mss;
        let with_fin = if full + 1 == self.fin_end { full + 1 } else { full };
        with_fin.min(limit)
    }

    /// The last segment of the outstanding data, where it is not SACKed (`NextSeg` rule 4).
    pub(crate) fn last_unsacked(&self) -> Option<Range> {
        let low = self.sacked.last().map_or(self.una, |r| r.end).max(self.una);
        let full = self.mss + u64::from(self.nxt == self.fin_end);
        let start = low.max(self.nxt.saturating_sub(full));
        (start < self.nxt).then(|| Range::new(start, self.nxt))
    }

    /// A hole was retransmitted (not for rule 4, which leaves HighRxt alone).
    pub(crate) fn on_retransmit(&mut self, range: Range) {
        if range.start >= self.high_rxt {
            self.high_rxt = range.end;
            self.rxt_out += range.len();
        }
        if let Some(r) = &mut self.retransmissions {
            r.on_sent(range, self.nxt);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u32 = 100;

    fn board(segments: u64) -> Scoreboard {
        let mut b = Scoreboard::new(1, MSS, false);
        b.on_new_data(1 + segments * 100);
        b
    }

    /// Segments `from..to`, counted from zero.
    fn segs(from: u64, to: u64) -> Range {
        Range::new(1 + from * 100, 1 + to * 100)
    }

    #[test]
    fn the_third_segment_above_a_hole_makes_it_lost() {
        let mut b = board(10);
        assert_eq!(b.on_sack(&[segs(1, 2)]), 100);
        assert_eq!(b.on_sack(&[segs(1, 3)]), 100);
        assert!(!b.head_is_lost());
        assert_eq!(b.pipe(), 800);
        assert_eq!(b.on_sack(&[segs(1, 4)]), 100);
        assert!(b.head_is_lost());
        assert_eq!(b.pipe(), 600, "one lost, three SACKed");
        assert_eq!(b.next_lost(), Some(segs(0, 1)));
        b.on_retransmit(segs(0, 1));
        assert_eq!(b.pipe(), 700);
        assert_eq!(b.next_lost(), None);
        assert_eq!(b.on_cumulative_ack(401), 300);
        assert_eq!((b.pipe(), b.flight()), (600, 600));
    }

    #[test]
    fn three_small_stretches_count_like_three_segments() {
        let mut b = board(10);
        let at = |n: u64| Range::new(1 + n * 100, 11 + n * 100);
        b.on_sack(&[at(3)]);
        b.on_sack(&[at(5), at(3)]);
        assert!(!b.head_is_lost());
        b.on_sack(&[at(7), at(5), at(3)]);
        assert!(b.head_is_lost());
        assert_eq!(b.next_lost(), Some(segs(0, 1)));
    }

    #[test]
    fn holes_are_retransmitted_in_order_and_only_once() {
        let mut b = board(20);
        b.on_sack(&[segs(1, 2)]);
        b.on_sack(&[segs(4, 5), segs(1, 2)]);
        b.on_sack(&[segs(6, 9), segs(4, 5), segs(1, 2)]);
        let mut sent = Vec::new();
        while let Some(r) = b.next_lost() {
            b.on_retransmit(r);
            sent.push(r);
        }
        assert_eq!(sent, [segs(0, 1), segs(2, 3), segs(3, 4), segs(5, 6)]);
        assert_eq!(b.next_maybe_lost(), None);
        assert_eq!(b.last_unsacked(), Some(segs(19, 20)));
    }

    #[test]
    fn a_timeout_makes_everything_lost_but_keeps_what_arrived() {
        let mut b = board(6);
        b.on_sack(&[segs(2, 3)]);
        b.on_timeout();
        assert_eq!(b.pipe(), 0);
        let mut sent = Vec::new();
        while let Some(r) = b.next_lost() {
            b.on_retransmit(r);
            sent.push(r);
        }
        assert_eq!(sent, [segs(0, 1), segs(1, 2), segs(3, 4), segs(4, 5), segs(5, 6)]);
        assert_eq!(b.pipe(), 500);
        b.on_new_data(701);
        assert_eq!(b.pipe(), 600);
        assert_eq!(b.on_sack(&[segs(6, 7)]), 100);
        assert_eq!(b.pipe(), 500);
    }

    /// The counters against the definitions of RFC 6675, byte by byte, under random reports.
    #[test]
    fn the_counters_agree_with_the_definitions() {
        let mut rng = udccp_base::Seed(23).stream("scoreboard");
        for _ in 0..30 {
            let mut b = board(0);
            let mut model = Model { una: 1, nxt: 1, sacked: Vec::new(), high_rxt: 1, lost_edge: 1 };
            for _ in 0..50 {
                match rng.below(4) {
                    0 => {
                        model.nxt += 1 + rng.below(300);
                        b.on_new_data(model.nxt);
                    }
                    1 if model.nxt > model.una => {
                        let start = model.una + rng.below(model.nxt - model.una);
                        let end = (start + 1 + rng.below(250)).min(model.nxt);
                        let newly = b.on_sack(&[Range::new(start, end)]);
                        assert_eq!(newly, model.sack(start, end));
                        model.raise_lost_edge();
                    }
                    2 if rng.chance(0.3) => {
                        let ack = model.una + rng.below(model.nxt - model.una + 1);
                        let ack = model.first_unsacked(ack);
                        b.on_cumulative_ack(ack);
                        model.una = ack;
                        model.high_rxt = model.high_rxt.max(ack);
                    }
                    _ => {
                        assert_eq!(b.next_lost().map(|r| r.start), model.next_lost());
                        if let Some(r) = b.next_lost() {
                            assert!((r.start..r.end).all(|s| !model.is_sacked(s)));
                            b.on_retransmit(r);
                            model.high_rxt = r.end;
                        }
                    }
                }
                assert_eq!(b.pipe(), model.pipe());
            }
        }
    }

    struct Model {
        una: u64,
        nxt: u64,
        sacked: Vec<u64>,
        high_rxt: u64,
        lost_edge: u64,
    }

    impl Model {
        fn is_sacked(&self, s: u64) -> bool {
            self.sacked.binary_search(&s).is_ok()
        }

        fn sack(&mut self, start: u64, end: u64) -> u64 {
            let before = self.sacked.len();
            self.sacked.extend(start..end);
            self.sacked.sort_unstable();
            self.sacked.dedup();
            (self.sacked.len() - before) as u64
        }

        fn first_unsacked(&self, from: u64) -> u64 {
            (from..).find(|s| !self.is_sacked(*s)).unwrap()
        }

        fn is_lost(&self, s: u64) -> bool {
            let above: Vec<u64> = self.sacked.iter().copied().filter(|x| *x > s).collect();
            let stretches =
                above.iter().filter(|x| **x == s + 1 || !self.is_sacked(**x - 1)).count();
            stretches >= 3 || above.len() as u64 > 2 * u64::from(MSS)
        }

        /// Once lost, lost for good, although merging stretches lower their number.
        fn raise_lost_edge(&mut self) {
            let unsacked = (self.una..self.nxt).rev().filter(|s| !self.is_sacked(*s));
            let lost_below = unsacked.into_iter().find(|s| self.is_lost(*s)).map_or(0, |s| s + 1);
            self.lost_edge = self.lost_edge.max(lost_below);
        }

        fn pipe(&self) -> u64 {
            let unsacked = (self.una..self.nxt).filter(|s| !self.is_sacked(*s));
            let counts = |s| u64::from(s >= self.lost_edge) + u64::from(s < self.high_rxt);
            unsacked.map(counts).sum()
        }

        fn next_lost(&self) -> Option<u64> {
            let from = self.high_rxt.max(self.una);
            (from..self.lost_edge).find(|s| !self.is_sacked(*s))
        }
    }
}
