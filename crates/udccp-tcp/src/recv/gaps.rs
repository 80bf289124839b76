//! What arrived beyond a hole, and what the next acknowledgement reports of it.

use udccp_base::{Duration, Instant};

use super::compression::Compression;
use crate::ranges::{Range, RangeSet};

/// Data out of order and duplicates. An end has this only while it has some to report.
#[derive(Debug)]
pub(crate) struct Gaps {
    /// Ranges beyond the next offset expected that have arrived.
    beyond: RangeSet,
    /// The ranges to report, most recent first (RFC 2018 section 4).
    report: [Range; 4],
    report_len: u8,
    /// A duplicate to report once (RFC 2883).
    duplicate: Option<Range>,
    compression: Compression,
}

impl Gaps {
    pub(super) fn new(compresses: bool) -> Self {
        Self {
            beyond: RangeSet::default(),
            report: [Range::new(0, 0); 4],
            report_len: 0,
            duplicate: None,
            compression: Compression::new(compresses),
        }
    }

    /// Whether nothing is missing, and nothing is to be reported.
    pub(super) fn is_closed(&self) -> bool {
        self.beyond.is_empty() && !self.has_blocks()
    }

    /// The ranges to report, most recent first.
    fn reported(&self) -> &[Range] {
        &self.report[..usize::from(self.report_len)]
    }

    /// Adds a segment, of which `taken` is kept. Returns the index of its range among those
    /// reported before, and whether it has any new byte.
    pub(super) fn keep(&mut self, taken: Range) -> (usize, bool) {
        let mut fresh = 0;
        let merged = self.beyond.insert(taken, |part| fresh += part.len());
        let known = self.reported();
        let touches = |old: &Range| old.end >= merged.start && merged.end >= old.start;
        let place = known.iter().position(touches).unwrap_or(known.len());
        // The range with this segment comes first; ranges merged into it are removed.
        let mut report = [merged; 4];
        let mut len = 1;
        for old in known {
            let apart = old.end < merged.start || merged.end < old.start;
            if apart && len < report.len() {
                report[len] = *old;
                len += 1;
            }
        }
        (self.report, self.report_len) = (report, len as u8);
        (place, fresh > 0)
    }

    /// The next acknowledgement reports that this arrived before.
    pub(super) fn note_duplicate(&mut self, range: Range) {
        self.duplicate = Some(range);
    }

    /// Whether an out-of-order segment, which belongs to the range at `place` among those reported,
    /// is acknowledged at once. The next offset expected is `hole`.
    pub(super) fn acknowledges(
        &mut self,
        now: Instant,
        (hole, place): (u64, usize),
        rtt: Duration,
    ) -> bool {
        self.compression.is_full(place) || !self.compression.holds(now, hole, rtt)
    }

    /// Everything up to `end` has arrived. Returns the end of what is now in order; `None` if
    /// nothing was beyond.
    pub(super) fn advance(&mut self, end: u64) -> Option<u64> {
        if self.beyond.is_empty() {
            return None;
        }
        let joined = self.beyond.first_after(end).filter(|r| r.start <= end);
        let end = joined.map_or(end, |joined| joined.end);
        self.beyond.remove_below(end);
        self.forget_reports_below(end);
        Some(end)
    }

    fn forget_reports_below(&mut self, edge: u64) {
        let mut len = 0;
        for i in 0..usize::from(self.report_len) {
            if self.report[i].end > edge {
                self.report[len] = self.report[i];
                len += 1;
            }
        }
        self.report_len = len as u8;
    }

    /// When an acknowledgement that waits for more segments must be sent.
    pub(super) fn deadline(&self) -> Instant {
        self.compression.deadline()
    }

    pub(super) fn on_ack_sent(&mut self) {
        self.compression.on_ack_sent();
        self.duplicate = None;
    }

    /// Whether the next acknowledgement carries SACK blocks.
    pub(super) fn has_blocks(&self) -> bool {
        self.report_len > 0 || self.duplicate.is_some()
    }

    /// Calls `block` for the SACK blocks of the next acknowledgement, in order.
    pub(super) fn for_each_block(&self, mut block: impl FnMut(Range)) {
        if let Some(duplicate) = self.duplicate {
            block(duplicate);
        }
        self.reported().iter().copied().for_each(&mut block);
    }
}
