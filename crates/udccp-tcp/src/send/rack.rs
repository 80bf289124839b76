//! Detects losses by time: segments sent before one that arrived count as lost (RFC 8985).

use udccp_base::{Duration, Instant};

/// Added by kernels to the timers of this module (`TCP_TIMEOUT_MIN_US`).
pub(super) const TIMER_SLACK: Duration = Duration::from_millis(2);

/// Number of recoveries for which a wider reordering window is kept (RFC 8985 section 6.2, step 4).
const PERSIST: u8 = 16;

/// A transmission: its time, and the end of its segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Sending {
    /// When it was sent.
    pub(crate) at: Instant,
    /// End of the segment, which orders transmissions of the same time.
    pub(crate) end: u64,
}

/// The newest transmission that arrived, and the allowance for reordering.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rack {
    newest: Sending,
    /// Round-trip time of `newest`.
    rtt: Duration,
    reordering_seen: bool,
    /// Quarters of the smallest round-trip time in the reordering window.
    steps: u8,
    /// Recoveries until `steps` returns to one.
    persist: u8,
}

/// The transmissions that count as lost at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Overtaken {
    newest: Sending,
    /// Transmissions up to this time had time to be acknowledged.
    until: Instant,
}

impl Rack {
    /// The state before anything arrives.
    pub(super) fn new() -> Self {
        Self {
            newest: Sending::default(),
            rtt: Duration::ZERO,
            reordering_seen: false,
            steps: 1,
            persist: 0,
        }
    }

    /// A transmission arrived. `shortest` is the smallest valid round-trip time of a
    /// retransmission; a smaller one is an answer to the original (RFC 8985 section 6.2, step 2).
    pub(super) fn on_delivered(&mut self, now: Instant, sending: Sending, shortest: Duration) {
        let rtt = now - sending.at;
        if rtt >= shortest {
            // That of the newest in the RFC; in kernels, of the last that arrived.
            self.rtt = rtt;
            self.newest = self.newest.max(sending);
        }
    }

    /// A segment that was sent once arrived after one that was sent later.
    pub(super) fn on_reordering(&mut self) {
        self.reordering_seen = true;
    }

    /// The peer reported a duplicate: a retransmission was unnecessary.
    pub(super) fn on_duplicate(&mut self) {
        self.steps = self.steps.saturating_add(1);
        self.persist = PERSIST;
    }

    /// A recovery has ended.
    pub(super) fn on_recovery_end(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// How much later than a round-trip time a segment may arrive. Zero if three segments or a
    /// recovery indicate loss (`certain`) and no reordering was ever seen.
    pub(super) fn window(
        &self,
        certain: bool,
        min_rtt: Option<Duration>,
        srtt: Option<Duration>,
    ) -> Duration {
        if certain && !self.reordering_seen {
            return Duration::ZERO;
        }
        let window = min_rtt.unwrap_or_default() / 4 * u64::from(self.steps);
        window.min(srtt.unwrap_or(window))
    }

    /// The transmissions that count as lost at `now`.
    pub(super) fn overtaken(&self, now: Instant, window: Duration) -> Overtaken {
        Overtaken { newest: self.newest, until: now - (self.rtt + window) }
    }

    /// When an overtaken transmission counts as lost.
    pub(super) fn lost_at(&self, at: Instant, window: Duration) -> Instant {
        at + self.rtt + window
    }

    /// The newest transmission that arrived.
    pub(super) fn newest(&self) -> Sending {
        self.newest
    }
}

impl Overtaken {
    /// Whether a transmission that did not arrive counts as lost.
    pub(crate) fn covers(&self, sending: Sending) -> bool {
        sending < self.newest && sending.at <= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(40);

    const fn sent(ms: u64, end: u64) -> Sending {
        Sending { at: Instant::from_nanos(ms * 1_000_000), end }
    }

    const fn at(ms: u64) -> Instant {
        sent(ms, 0).at
    }

    fn newest_sent_at(ms: u64) -> Rack {
        let mut rack = Rack::new();
        rack.on_delivered(at(ms) + RTT, sent(ms, 300), Duration::ZERO);
        rack
    }

    #[test]
    fn what_left_earlier_is_lost_a_window_after_its_round_trip() {
        let rack = newest_sent_at(10);
        let window = rack.window(false, Some(RTT), Some(RTT));
        assert_eq!(window, RTT / 4);
        assert_eq!(rack.lost_at(at(6), window), at(56));
        assert!(!rack.overtaken(at(55), window).covers(sent(6, 100)));
        assert!(rack.overtaken(at(56), window).covers(sent(6, 100)));
    }

    #[test]
    fn what_left_at_the_same_time_is_ordered_by_its_place() {
        let rack = newest_sent_at(10);
        let overtaken = rack.overtaken(at(50), rack.window(true, Some(RTT), Some(RTT)));
        assert!(overtaken.covers(sent(10, 200)));
        assert!(!overtaken.covers(sent(10, 300)));
        assert!(!overtaken.covers(sent(11, 100)));
    }

    #[test]
    fn an_answer_faster_than_any_round_trip_is_not_to_a_retransmission() {
        let mut rack = newest_sent_at(10);
        rack.on_delivered(at(60), sent(30, 100), RTT);
        assert_eq!(rack.newest(), sent(10, 300));
        rack.on_delivered(at(70), sent(30, 100), RTT);
        assert_eq!(rack.newest(), sent(30, 100));
    }

    #[test]
    fn the_round_trip_is_that_of_what_arrived_last() {
        let mut rack = newest_sent_at(10);
        rack.on_delivered(at(50), sent(4, 100), Duration::ZERO);
        assert_eq!(rack.newest(), sent(10, 300));
        assert_eq!(rack.lost_at(at(6), Duration::ZERO), at(52));
    }

    #[test]
    fn reordering_keeps_the_window_and_duplicates_widen_it_for_sixteen_recoveries() {
        let mut rack = newest_sent_at(10);
        assert_eq!(rack.window(true, Some(RTT), Some(RTT)), Duration::ZERO);
        rack.on_reordering();
        assert_eq!(rack.window(true, Some(RTT), Some(RTT)), RTT / 4);
        rack.on_duplicate();
        assert_eq!(rack.window(true, Some(RTT), Some(RTT)), RTT / 2);
        for _ in 0..PERSIST {
            assert_eq!(rack.window(true, Some(RTT), Some(RTT)), RTT / 2);
            rack.on_recovery_end();
        }
        assert_eq!(rack.window(true, Some(RTT), Some(RTT)), RTT / 4);
        (0..9).for_each(|_| rack.on_duplicate());
        assert_eq!(rack.window(true, Some(RTT), Some(RTT)), RTT, "a round trip at most");
    }
}
