//! The scoreboard of RFC 6675: which data is acknowledged or lost, and how much is in the pipe.
//!
//! `IsLost` depends only on the data SACKed above an offset, which increases towards lower offsets.
//! So one edge separates the lost holes from the others, and it is found from at most three ranges
//! at the back. The pipe is computed from four counters, including the bytes SACKed above that edge
//! and the bytes retransmitted below `high_rxt`; nothing iterates over the window.

use udccp_base::Instant;

use crate::ranges::{Range, RangeSet};
use crate::send::rack::{Overtaken, Sending};
use crate::send::retransmissions::Retransmissions;

/// Number of ranges SACKed above a hole that make it lost (RFC 6675 section 2).
const DUP_THRESH: usize = 3;

/// Sequence space from `una` to `nxt`, with the peer's reports about it.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    mss: u64,
    una: u64,
    nxt: u64,
    sacked: RangeSet,
    sacked_bytes: u64,
    /// All data below this that is not SACKed is lost.
    lost_edge: u64,
    /// Bytes SACKed at or above `lost_edge`.
    sacked_above_edge: u64,
    /// First offset not retransmitted since the last timeout (one past the RFC's HighRxt). A new
    /// recovery does not repeat retransmissions of the previous one that are in flight.
    high_rxt: u64,
    /// Bytes below `high_rxt` neither SACKed nor acknowledged.
    rxt_out: u64,
    /// Whether losses are detected by time, by the caller.
    by_time: bool,
    /// End of the newest SACKed range that was sent once, since the last query; 0 for none.
    newest_first: u64,
    /// Highest end of data that arrived after something sent later, and that was not retransmitted
    /// since the last timeout; 0 for none since the last query.
    reordered: u64,
    /// Highest offset SACKed before the current acknowledgement.
    highest_before: u64,
    /// Whether retransmissions that are lost again are detected, and not left to the timer.
    detects: bool,
    /// Retransmissions that may be lost again: only if one was sent, as few ends do.
    retransmissions: Option<Box<Retransmissions>>,
    /// One past the FIN, which is sent with the last segment in addition to its `mss` bytes of
    /// data.
    fin_end: u64,
    /// Blocks of the last acknowledgement, because receivers repeat them.
    last_blocks: [Range; 4],
}

impl Scoreboard {
    /// Starts at offset `start`. `mss` is the data in a full segment. `detect` enables detection of
    /// lost retransmissions before the timer expires.
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
            by_time: false,
            newest_first: 0,
            reordered: 0,
            highest_before: 0,
            detects: detect,
            retransmissions: None,
            fin_end: u64::MAX,
            last_blocks: [Range::new(0, 0); 4],
        }
    }

    /// The same for detection by time; losses are then reported with [`Self::lose_overtaken`].
    pub(crate) fn by_time(start: u64, mss: u32) -> Self {
        Self { by_time: true, ..Self::new(start, mss, true) }
    }

    /// Sets the data in a full segment, after negotiation of options.
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
        self.nxt - self.lost_edge - self.sacked_above_edge + self.rxt_out - self.lost_again()
    }

    /// Whether the first outstanding byte is lost.
    pub(crate) fn head_is_lost(&self) -> bool {
        self.una < self.lost_edge
    }

    /// Whether all outstanding data was sent once, and none of it is SACKed or, beyond `ack`, lost.
    #[inline]
    pub(crate) fn is_in_order(&self, ack: u64) -> bool {
        self.sacked.is_empty() && self.rxt_out == 0 && self.lost_edge <= ack
    }

    /// New data up to `end` was sent.
    pub(crate) fn on_new_data(&mut self, end: u64) {
        self.nxt = end;
    }

    /// Prepares for an acknowledgement, whose blocks are handled before its number.
    #[inline]
    pub(crate) fn begin_ack(&mut self) {
        self.highest_before = self.sacked.last().map_or(0, |s| s.end);
    }

    /// Handles SACK blocks; returns the number of bytes SACKed for the first time.
    pub(crate) fn on_sack(&mut self, blocks: &[Range]) -> u64 {
        let mut newly = 0;
        for (i, &block) in blocks.iter().enumerate() {
            if self.last_blocks.contains(&block) && block.start >= self.una {
                continue;
            }
            self.last_blocks[i % self.last_blocks.len()] = block;
            // Blocks below `una` report duplicates (RFC 2883) or are outdated.
            let block = block.clamp(self.una, self.nxt);
            if block.start < block.end {
                newly += self.mark(block);
            }
        }
        if newly > 0 && !self.by_time {
            self.raise_lost_edge();
            self.find_lost_again();
        }
        newly
    }

    fn find_lost_again(&mut self) {
        if self.by_time {
            return;
        }
        if let Some(r) = self.retransmissions.as_mut().filter(|_| self.rxt_out > 0) {
            let highest = self.sacked.last().map_or(self.una, |s| s.end);
            r.find_lost(self.una, highest, self.mss, &mut self.sacked);
        }
    }

    fn mark(&mut self, block: Range) -> u64 {
        let (edge, high_rxt) = (self.lost_edge, self.high_rxt);
        let (mut newly, mut above, mut rxt, mut first) = (0, 0, 0, 0);
        let retransmissions = &mut self.retransmissions;
        self.sacked.insert(block, |part| {
            newly += part.len();
            above += part.clamp(edge, u64::MAX).len();
            if part.end > high_rxt {
                first = part.end;
            }
            let again = part.clamp(0, high_rxt);
            if let Some(r) = retransmissions.as_mut().filter(|_| again.len() > 0) {
                r.on_delivered(again);
            }
            rxt += again.len();
        });
        self.newest_first = self.newest_first.max(first);
        if first <= self.highest_before {
            self.reordered = self.reordered.max(first);
        }
        self.sacked_bytes += newly;
        self.sacked_above_edge += above;
        self.rxt_out -= rxt;
        newly
    }

    /// RFC 6675 `IsLost`: three ranges, or more than two segments of bytes, SACKed above.
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

    /// Handles a cumulative acknowledgement in `una..=nxt`; returns how many of its bytes had been
    /// SACKed before.
    #[inline]
    pub(crate) fn on_cumulative_ack(&mut self, ack: u64) -> u64 {
        if !self.sacked.is_empty() || self.rxt_out > 0 {
            return self.on_ack_of_any(ack);
        }
        // The usual case: nothing was SACKed or retransmitted.
        self.una = ack;
        self.high_rxt = self.high_rxt.max(ack);
        if ack > self.lost_edge {
            self.lost_edge = ack;
            self.sacked_above_edge = 0;
        }
        0
    }

    /// The general case of [`Self::on_cumulative_ack`].
    #[inline(never)]
    fn on_ack_of_any(&mut self, ack: u64) -> u64 {
        let hole = self.sacked.first().map_or(0, |s| s.start.min(ack));
        if hole > self.high_rxt.max(self.una) && hole < self.highest_before {
            self.reordered = self.reordered.max(hole);
        }
        if let Some(r) = self.retransmissions.as_mut().filter(|_| self.rxt_out > 0) {
            if ack < self.high_rxt || self.by_time {
                self.sacked.for_each_gap(Range::new(self.una, ack), |part| r.on_delivered(part));
            }
            if ack >= self.high_rxt {
                r.clear();
            } else {
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

    /// Records losses detected by time: all data below `edge` that was sent once, and
    /// retransmissions that are `overtaken`.
    pub(crate) fn lose_overtaken(&mut self, edge: u64, overtaken: Overtaken) {
        if edge > self.lost_edge {
            let above = self.sacked.iter_back().map(|s| s.clamp(edge, u64::MAX).len());
            self.sacked_above_edge = above.take_while(|len| *len > 0).sum();
            self.lost_edge = edge;
        }
        if let Some(r) = self.retransmissions.as_mut().filter(|_| self.rxt_out > 0) {
            r.find_overtaken(self.una, overtaken, &mut self.sacked);
        }
    }

    /// End of the newest SACKed range that was sent once, and the newest retransmission that
    /// arrived, since the last call.
    pub(crate) fn take_newest(&mut self) -> (u64, Option<Sending>) {
        let again = self.retransmissions.as_mut().and_then(|r| r.take_newest());
        (core::mem::take(&mut self.newest_first), again)
    }

    /// Highest end of data that arrived after something sent later, and that was not retransmitted
    /// since the last timeout; 0 for none since the last call.
    pub(crate) fn take_reordered(&mut self) -> u64 {
        core::mem::take(&mut self.reordered)
    }

    fn lost_again(&self) -> u64 {
        self.retransmissions.as_ref().map_or(0, |r| r.pending_bytes())
    }

    /// Bytes SACKed.
    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.sacked_bytes
    }

    /// End of the highest hole that was not retransmitted, if there is one.
    pub(crate) fn last_hole_end(&self) -> Option<u64> {
        let end = self.sacked.last().map(|s| s.start)?;
        (end > self.high_rxt).then_some(end)
    }

    /// First offset not retransmitted since the last timeout.
    pub(crate) fn high_rxt(&self) -> u64 {
        self.high_rxt
    }

    /// Marks the first hole as lost after three duplicate acknowledgements of small segments,
    /// although `IsLost` does not (RFC 6675 section 5, step 1).
    pub(crate) fn lose_head(&mut self) {
        if !self.head_is_lost() {
            let end = self.sacked.first_after(self.una).map_or(self.nxt, |r| r.start);
            self.lost_edge = end.min(self.una + self.mss);
        }
    }

    /// The retransmission timer expired: all data that is not SACKed is lost, including
    /// retransmissions. SACK information is kept (RFC 6675 section 5.1): the receiver never
    /// discards data that it reported, because its advertised window covers all of it.
    pub(crate) fn on_timeout(&mut self) {
        self.high_rxt = self.una;
        self.rxt_out = 0;
        if let Some(r) = &mut self.retransmissions {
            r.clear();
        }
        self.lost_edge = self.nxt;
        self.sacked_above_edge = 0;
    }

    /// The next lost hole without a retransmission in flight (`NextSeg` rule 1), at most a segment
    /// of it.
    pub(crate) fn next_lost(&mut self) -> Option<Range> {
        let again = self.retransmissions.as_ref().and_then(|r| r.first_pending());
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

    /// The end of a segment that starts at `start` and may extend to `limit`.
    fn segment_end(&self, start: u64, limit: u64) -> u64 {
        let full = start + self.mss;
        let with_fin = if full + 1 == self.fin_end { full + 1 } else { full };
        with_fin.min(limit)
    }

    /// The last segment of the outstanding data, if it is not SACKed (`NextSeg` rule 4).
    pub(crate) fn last_unsacked(&self) -> Option<Range> {
        let low = self.sacked.last().map_or(self.una, |r| r.end).max(self.una);
        let full = self.mss + u64::from(self.nxt == self.fin_end);
        let start = low.max(self.nxt.saturating_sub(full));
        (start < self.nxt).then(|| Range::new(start, self.nxt))
    }

    /// A hole was retransmitted (not for rule 4, which does not change HighRxt).
    pub(crate) fn on_retransmit(&mut self, now: Instant, range: Range) {
        if range.start >= self.high_rxt {
            self.high_rxt = range.end;
            self.rxt_out += range.len();
        }
        if self.detects {
            self.retransmissions.get_or_insert_default().on_sent(now, range, self.nxt);
        }
    }
}

#[cfg(test)]
mod tests;
