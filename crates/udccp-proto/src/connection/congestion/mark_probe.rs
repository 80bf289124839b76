//! Finds out whether the peer reports congestion marks (RFC 4340 section 12.3).

use core::num::NonZeroU32;

use udccp_base::{Duration, Instant, MaybeInstant};

/// Marks in a row that nobody reports before we are no longer ECN-capable.
const HIDDEN_AT_MOST: u8 = 3;

/// Round-trip times between two marks at least.
const ROUNDS_BETWEEN: u64 = 3;

/// Marks a data packet now and then, as a router would, and sees whether the mark comes back. A
/// peer that hides marks, and a path that clears them, look alike, and are answered alike: what is
/// hidden counts as reported, and after a few nothing ECN-capable is sent, so that routers drop.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkProbe {
    since_last: u32,
    last: MaybeInstant,
    hidden: u8,
}

impl MarkProbe {
    /// Whether the data packet that leaves now is to be marked. Marks are so far apart that a
    /// receiver of CCID 3 or 4 makes no one loss event of two.
    pub(super) fn is_due(&mut self, now: Instant, every: NonZeroU32, rtt: Duration) -> bool {
        self.since_last = self.since_last.saturating_add(1);
        let is_due = self.since_last >= every.get()
            && self.last.get().is_none_or(|at| now - at >= rtt * ROUNDS_BETWEEN);
        if is_due {
            (self.since_last, self.last) = (0, MaybeInstant::some(now));
        }
        is_due
    }

    /// This many marks of ours were reported, and this many were not.
    pub(super) fn on_reports(&mut self, reported: u32, hidden: u32) {
        if reported > 0 {
            self.hidden = 0;
        }
        self.hidden = self.hidden.saturating_add(u8::try_from(hidden).unwrap_or(u8::MAX));
    }

    /// Whether marks are useless on this path.
    pub(super) fn has_given_up(&self) -> bool {
        self.hidden >= HIDDEN_AT_MOST
    }
}
