//! Finds out whether the peer reports congestion marks (RFC 4340 section 12.3).

use core::num::NonZeroU32;

use udccp_base::{Duration, Instant, MaybeInstant};

/// Maximum number of marks in a row that go unreported before we stop being ECN-capable.
const HIDDEN_AT_MOST: u8 = 3;

/// Minimum number of round-trip times between two marks.
const ROUNDS_BETWEEN: u64 = 3;

/// Marks a data packet now and then, as a router would, and checks whether the peer reports it. A
/// peer that hides marks and a path that clears them look alike, and are treated alike: a hidden
/// mark counts as reported, and after a few, packets are no longer ECN-capable, so routers drop
/// instead.
#[derive(Clone, Debug, Default)]
pub(super) struct MarkProbe {
    since_last: u32,
    last: MaybeInstant,
    hidden: u8,
}

impl MarkProbe {
    /// Whether to mark the data packet that is being sent. Marks are far enough apart that a
    /// receiver of CCID 3 or 4 never counts two of them as one loss event.
    pub(super) fn is_due(&mut self, now: Instant, every: NonZeroU32, rtt: Duration) -> bool {
        self.since_last = self.since_last.saturating_add(1);
        let is_due = self.since_last >= every.get()
            && self.last.get().is_none_or(|at| now - at >= rtt * ROUNDS_BETWEEN);
        if is_due {
            (self.since_last, self.last) = (0, MaybeInstant::some(now));
        }
        is_due
    }

    /// The peer reported `reported` of our marks, and did not report `hidden`.
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
