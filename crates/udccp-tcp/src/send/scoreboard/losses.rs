//! What is SACKed, lost or retransmitted of the outstanding data.

use udccp_base::Instant;

use super::Rules;
use crate::ranges::{Range, RangeSet};
use crate::send::rack::{Overtaken, Sending};
use crate::send::retransmissions::Retransmissions;

/// Number of ranges SACKed above a hole that make it lost (RFC 6675 section 2).
const DUP_THRESH: usize = 3;
/// SACK blocks that fit into the options beside timestamps.
const REMEMBERED: usize = 3;

/// Counters and ranges above `una`, which the scoreboard has. It makes them when something is
/// missing, and drops them when nothing is any more.
#[derive(Clone, Debug)]
pub(in crate::send) struct Losses {
    sacked: RangeSet,
    pub(super) sacked_bytes: u64,
    /// All data below this that is not SACKed is lost.
    lost_edge: u64,
    /// Bytes SACKed at or above `lost_edge`.
    sacked_above_edge: u64,
    /// First offset not retransmitted since the last timeout (one past the RFC's HighRxt). A new
    /// recovery does not repeat retransmissions of the previous one that are in flight.
    pub(super) high_rxt: u64,
    /// Bytes below `high_rxt` neither SACKed nor acknowledged.
    rxt_out: u64,
    /// End of the newest SACKed range that was sent once, since the last query; 0 for none.
    newest_first: u64,
    /// Highest end of data that arrived after something sent later, and that was not retransmitted
    /// since the last timeout; 0 for none since the last query.
    reordered: u64,
    /// Highest offset SACKed before the current acknowledgement.
    highest_before: u64,
    /// Retransmissions that may be lost again, if that is detected.
    retransmissions: Retransmissions,
    /// Blocks of the last acknowledgement: receivers repeat them, and to look for each among many
    /// ranges takes long.
    last_blocks: [Range; REMEMBERED],
}

impl Losses {
    pub(super) fn new(una: u64) -> Self {
        Self {
            sacked: RangeSet::default(),
            sacked_bytes: 0,
            lost_edge: una,
            sacked_above_edge: 0,
            high_rxt: una,
            rxt_out: 0,
            newest_first: 0,
            reordered: 0,
            highest_before: 0,
            retransmissions: Retransmissions::default(),
            last_blocks: [Range::new(0, 0); REMEMBERED],
        }
    }

    pub(super) fn pipe(&self, nxt: u64) -> u64 {
        let lost_again = self.retransmissions.pending_bytes();
        nxt - self.lost_edge - self.sacked_above_edge + self.rxt_out - lost_again
    }

    /// Whether data at `una` is lost.
    pub(super) fn covers(&self, una: u64) -> bool {
        una < self.lost_edge
    }

    /// Whether all data above `ack` was sent once, and none of it is SACKed or lost.
    pub(super) fn end_at(&self, ack: u64) -> bool {
        self.sacked.is_empty() && self.rxt_out == 0 && self.lost_edge <= ack
    }

    pub(super) fn begin_ack(&mut self) {
        self.highest_before = self.sacked.last().map_or(0, |s| s.end);
    }

    pub(super) fn on_sack(
        &mut self,
        blocks: &[Range],
        (una, nxt): (u64, u64),
        rules: Rules,
    ) -> u64 {
        let mut newly = 0;
        for (i, &block) in blocks.iter().enumerate() {
            if self.last_blocks.contains(&block) && block.start >= una {
                continue;
            }
            self.last_blocks[i % REMEMBERED] = block;
            // Blocks below `una` report duplicates (RFC 2883) or are outdated.
            let block = block.clamp(una, nxt);
            if block.start < block.end {
                newly += self.mark(block);
            }
        }
        if newly > 0 && !rules.by_time {
            self.raise_lost_edge(rules.mss.into());
            self.find_lost_again(una, rules);
        }
        newly
    }

    fn find_lost_again(&mut self, una: u64, rules: Rules) {
        if !rules.by_time && self.rxt_out > 0 {
            let highest = self.sacked.last().map_or(una, |s| s.end);
            self.retransmissions.find_lost(una, highest, rules.mss.into(), &mut self.sacked);
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
            if again.len() > 0 {
                retransmissions.on_delivered(again);
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
    fn raise_lost_edge(&mut self, mss: u64) {
        let mut above = 0;
        for (i, stretch) in self.sacked.iter_back().enumerate() {
            above += stretch.len();
            if i + 1 >= DUP_THRESH || above > (DUP_THRESH as u64 - 1) * mss {
                if stretch.start > self.lost_edge {
                    self.lost_edge = stretch.start;
                    self.sacked_above_edge = above;
                }
                return;
            }
        }
    }

    pub(super) fn on_cumulative_ack(&mut self, una: u64, ack: u64, rules: Rules) -> u64 {
        let hole = self.sacked.first().map_or(0, |s| s.start.min(ack));
        if hole > self.high_rxt.max(una) && hole < self.highest_before {
            self.reordered = self.reordered.max(hole);
        }
        if self.rxt_out > 0 {
            let r = &mut self.retransmissions;
            if ack < self.high_rxt || rules.by_time {
                self.sacked.for_each_gap(Range::new(una, ack), |part| r.on_delivered(part));
            }
            if ack >= self.high_rxt {
                r.clear();
            } else {
                r.on_cumulative_ack(ack);
            }
        }
        let covered = self.sacked.remove_below(ack);
        self.sacked_bytes -= covered;
        self.rxt_out = if ack >= self.high_rxt { 0 } else { self.rxt_out - (ack - una - covered) };
        self.high_rxt = self.high_rxt.max(ack);
        self.find_lost_again(ack, rules);
        if ack > self.lost_edge {
            self.lost_edge = ack;
            self.sacked_above_edge = self.sacked_bytes;
        }
        covered
    }

    pub(super) fn lose_overtaken(&mut self, una: u64, edge: u64, overtaken: Overtaken) {
        if edge > self.lost_edge {
            let above = self.sacked.iter_back().map(|s| s.clamp(edge, u64::MAX).len());
            self.sacked_above_edge = above.take_while(|len| *len > 0).sum();
            self.lost_edge = edge;
        }
        if self.rxt_out > 0 {
            self.retransmissions.find_overtaken(una, overtaken, &mut self.sacked);
        }
    }

    pub(super) fn take_newest(&mut self) -> (u64, Option<Sending>) {
        (core::mem::take(&mut self.newest_first), self.retransmissions.take_newest())
    }

    pub(super) fn take_reordered(&mut self) -> u64 {
        core::mem::take(&mut self.reordered)
    }

    pub(super) fn last_hole_end(&self) -> Option<u64> {
        let end = self.sacked.last().map(|s| s.start)?;
        (end > self.high_rxt).then_some(end)
    }

    /// End of the highest SACKed range.
    pub(super) fn highest(&self) -> Option<u64> {
        self.sacked.last().map(|r| r.end)
    }

    /// Marks the first hole as lost, if no data is: at most `mss` bytes of it.
    pub(super) fn lose_head(&mut self, (una, nxt): (u64, u64), mss: u64) {
        if !self.covers(una) {
            let end = self.sacked.first_after(una).map_or(nxt, |r| r.start);
            self.lost_edge = end.min(una + mss);
        }
    }

    pub(super) fn on_timeout(&mut self, una: u64, nxt: u64) {
        self.high_rxt = una;
        self.rxt_out = 0;
        self.retransmissions.clear();
        self.lost_edge = nxt;
        self.sacked_above_edge = 0;
    }

    /// The next lost data without a retransmission in flight (`NextSeg` rule 1).
    pub(super) fn next_lost(&mut self, una: u64) -> Option<Range> {
        if let Some(again) = self.retransmissions.first_pending() {
            return Some(again);
        }
        if self.high_rxt >= self.lost_edge {
            return None;
        }
        self.next_hole(una, self.lost_edge)
    }

    /// The next hole below the highest SACKed byte, lost or not (`NextSeg` rule 3).
    pub(super) fn next_maybe_lost(&mut self, una: u64) -> Option<Range> {
        let highest = self.sacked.last()?.start;
        self.next_hole(una, highest)
    }

    fn next_hole(&mut self, una: u64, limit: u64) -> Option<Range> {
        let mut start = self.high_rxt.max(una);
        let mut next = self.sacked.first_after(start);
        if let Some(covering) = next.filter(|r| r.start <= start) {
            start = covering.end;
            next = self.sacked.first_after(start);
        }
        let hole_end = next.map_or(limit, |r| r.start.min(limit));
        (start < hole_end).then(|| Range::new(start, hole_end))
    }

    pub(super) fn on_retransmit(&mut self, now: Instant, range: Range, nxt: u64, rules: Rules) {
        if range.start >= self.high_rxt {
            self.high_rxt = range.end;
            self.rxt_out += range.len();
        }
        if rules.detects {
            self.retransmissions.on_sent(now, range, nxt);
        }
    }
}
