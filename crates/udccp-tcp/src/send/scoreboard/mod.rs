//! The scoreboard of RFC 6675: which data is acknowledged or lost, and how much is in the pipe.
//!
//! `IsLost` depends only on the data SACKed above an offset, which increases towards lower offsets.
//! So one edge separates the lost holes from the others, and it is found from at most three ranges
//! at the back. The pipe is computed from four counters, including the bytes SACKed above that edge
//! and the bytes retransmitted below `high_rxt`; nothing iterates over the window.

pub(super) mod losses;

use udccp_base::Instant;

use crate::ranges::Range;
use crate::send::rack::{Overtaken, Sending};
use losses::Losses;

/// Sequence space from `una` to `nxt`, with the peer's reports about it.
#[derive(Clone, Debug)]
pub(crate) struct Scoreboard {
    una: u64,
    nxt: u64,
    /// One past the FIN, which is sent with the last segment in addition to its `mss` bytes of
    /// data.
    fin_end: u64,
    /// Only while something is missing, until the acknowledgement after the last: most of the time,
    /// nothing is.
    losses: Option<Box<Losses>>,
    rules: Rules,
}

#[derive(Clone, Copy, Debug)]
struct Rules {
    /// The data in a full segment.
    mss: u32,
    /// Whether losses are detected by time, by the caller.
    by_time: bool,
    /// Whether retransmissions that are lost again are detected, and not left to the timer.
    detects: bool,
}

impl Scoreboard {
    /// Starts at offset `start`. `mss` is the data in a full segment. `detect` enables detection of
    /// lost retransmissions before the timer expires.
    pub(crate) fn new(start: u64, mss: u32, detect: bool) -> Self {
        let rules = Rules { mss, by_time: false, detects: detect };
        Self { una: start, nxt: start, fin_end: u64::MAX, losses: None, rules }
    }

    /// The same for detection by time; losses are then reported with [`Self::lose_overtaken`].
    pub(crate) fn by_time(start: u64, mss: u32) -> Self {
        let rules = Rules { mss, by_time: true, detects: true };
        Self { rules, ..Self::new(start, mss, true) }
    }

    /// Sets the data in a full segment, after negotiation of options.
    pub(crate) fn set_mss(&mut self, mss: u32) {
        self.rules.mss = mss;
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
        self.losses.as_ref().map_or(self.flight(), |losses| losses.pipe(self.nxt))
    }

    /// Whether the first outstanding byte is lost.
    pub(crate) fn head_is_lost(&self) -> bool {
        self.losses.as_ref().is_some_and(|losses| losses.covers(self.una))
    }

    /// Whether all outstanding data was sent once, and none of it is SACKed or, beyond `ack`, lost.
    #[inline]
    pub(crate) fn is_in_order(&self, ack: u64) -> bool {
        self.losses.as_ref().is_none_or(|losses| losses.end_at(ack))
    }

    /// New data up to `end` was sent.
    pub(crate) fn on_new_data(&mut self, end: u64) {
        self.nxt = end;
    }

    /// Prepares for an acknowledgement, whose blocks are handled before its number.
    #[inline]
    pub(crate) fn begin_ack(&mut self) {
        let Some(losses) = &mut self.losses else { return };
        losses.begin_ack();
        if losses.end_at(self.una) {
            self.losses = None;
        }
    }

    fn losses_mut(&mut self) -> &mut Losses {
        let una = self.una;
        self.losses.get_or_insert_with(|| Box::new(Losses::new(una)))
    }

    /// Handles SACK blocks; returns the number of bytes SACKed for the first time.
    pub(crate) fn on_sack(&mut self, blocks: &[Range]) -> u64 {
        let (edges, rules) = ((self.una, self.nxt), self.rules);
        let is_outstanding = |block: &Range| block.clamp(edges.0, edges.1).len() > 0;
        if self.losses.is_none() && !blocks.iter().any(is_outstanding) {
            return 0;
        }
        self.losses_mut().on_sack(blocks, edges, rules)
    }

    /// Handles a cumulative acknowledgement in `una..=nxt`; returns how many of its bytes had been
    /// SACKed before.
    #[inline]
    pub(crate) fn on_cumulative_ack(&mut self, ack: u64) -> u64 {
        let una = core::mem::replace(&mut self.una, ack);
        match &mut self.losses {
            Some(losses) => losses.on_cumulative_ack(una, ack, self.rules),
            None => 0,
        }
    }

    /// Records losses detected by time: all data below `edge` that was sent once, and
    /// retransmissions that are `overtaken`.
    pub(crate) fn lose_overtaken(&mut self, edge: u64, overtaken: Overtaken) {
        let una = self.una;
        if self.losses.is_some() || edge > una {
            self.losses_mut().lose_overtaken(una, edge, overtaken);
        }
    }

    /// End of the newest SACKed range that was sent once, and the newest retransmission that
    /// arrived, since the last call.
    pub(crate) fn take_newest(&mut self) -> (u64, Option<Sending>) {
        self.losses.as_mut().map_or((0, None), |losses| losses.take_newest())
    }

    /// Highest end of data that arrived after something sent later, and that was not retransmitted
    /// since the last timeout; 0 for none since the last call.
    pub(crate) fn take_reordered(&mut self) -> u64 {
        self.losses.as_mut().map_or(0, |losses| losses.take_reordered())
    }

    /// Bytes SACKed.
    pub(crate) fn sacked_bytes(&self) -> u64 {
        self.losses.as_ref().map_or(0, |losses| losses.sacked_bytes)
    }

    /// End of the highest hole that was not retransmitted, if there is one.
    pub(crate) fn last_hole_end(&self) -> Option<u64> {
        self.losses.as_ref()?.last_hole_end()
    }

    /// First offset not retransmitted since the last timeout.
    pub(crate) fn high_rxt(&self) -> u64 {
        self.losses.as_ref().map_or(self.una, |losses| losses.high_rxt)
    }

    /// Marks the first hole as lost after three duplicate acknowledgements of small segments,
    /// although `IsLost` does not (RFC 6675 section 5, step 1).
    pub(crate) fn lose_head(&mut self) {
        let (edges, mss) = ((self.una, self.nxt), self.rules.mss.into());
        self.losses_mut().lose_head(edges, mss);
    }

    /// The retransmission timer expired: all data that is not SACKed is lost, including
    /// retransmissions. SACK information is kept (RFC 6675 section 5.1): the receiver never
    /// discards data that it reported, because its advertised window covers all of it.
    pub(crate) fn on_timeout(&mut self) {
        let (una, nxt) = (self.una, self.nxt);
        self.losses_mut().on_timeout(una, nxt);
    }

    /// The next lost hole without a retransmission in flight (`NextSeg` rule 1), at most a segment
    /// of it.
    pub(crate) fn next_lost(&mut self) -> Option<Range> {
        let hole = self.losses.as_mut()?.next_lost(self.una)?;
        Some(self.segment_of(hole))
    }

    /// The next hole below the highest SACKed byte, lost or not (`NextSeg` rule 3).
    pub(crate) fn next_maybe_lost(&mut self) -> Option<Range> {
        let hole = self.losses.as_mut()?.next_maybe_lost(self.una)?;
        Some(self.segment_of(hole))
    }

    /// The first segment of a hole.
    fn segment_of(&self, hole: Range) -> Range {
        let full = hole.start + u64::from(self.rules.mss);
        let with_fin = if full + 1 == self.fin_end { full + 1 } else { full };
        Range::new(hole.start, with_fin.min(hole.end))
    }

    /// The last segment of the outstanding data, if it is not SACKed (`NextSeg` rule 4).
    pub(crate) fn last_unsacked(&self) -> Option<Range> {
        let highest = self.losses.as_ref().and_then(|losses| losses.highest());
        let low = highest.unwrap_or(self.una).max(self.una);
        let full = u64::from(self.rules.mss) + u64::from(self.nxt == self.fin_end);
        let start = low.max(self.nxt.saturating_sub(full));
        (start < self.nxt).then(|| Range::new(start, self.nxt))
    }

    /// A hole was retransmitted (not for rule 4, which does not change HighRxt).
    pub(crate) fn on_retransmit(&mut self, now: Instant, range: Range) {
        let (nxt, rules) = (self.nxt, self.rules);
        self.losses_mut().on_retransmit(now, range, nxt, rules);
    }
}

#[cfg(test)]
mod tests;
