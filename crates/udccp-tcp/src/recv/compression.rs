//! SACK compression: fewer acknowledgements of out-of-order segments, as in kernels since 4.18.

use udccp_base::{Duration, Instant};

/// Acknowledgements per hole that are sent at once (`TCP_FASTRETRANS_THRESH`).
const AT_ONCE: u8 = 3;
/// Largest number of segments covered by one delayed acknowledgement (`tcp_comp_sack_nr`).
const MOST: u8 = 44;
/// Ranges that fit in every acknowledgement (`TCP_SACK_BLOCKS_EXPECTED`).
const EXPECTED_BLOCKS: usize = 2;
/// Longest delay: this (`tcp_comp_sack_delay_ns`), or a twentieth of the round-trip time if that is
/// shorter.
const LONGEST: Duration = Duration::from_millis(1);
const SHARE_OF_RTT: u64 = 20;
/// By how much the timer of a kernel is late (`tcp_comp_sack_slack_ns`).
const SLACK: Duration = Duration::from_micros(100);

/// Delays acknowledgements after a hole. The first three of a hole are sent at once. Later ones are
/// sent about a millisecond after the first segment that they cover (`__tcp_ack_snd_check`).
#[derive(Clone, Copy, Debug)]
pub(super) struct Compression {
    is_on: bool,
    /// The hole (the next offset expected), and the number of its acknowledgements sent at once.
    hole: u64,
    sent: u8,
    /// Segments whose acknowledgement is delayed.
    waiting: u8,
    deadline: Instant,
}

impl Compression {
    /// Starts with no delayed acknowledgement.
    pub(super) fn new(is_on: bool) -> Self {
        Self { is_on, hole: 0, sent: 0, waiting: 0, deadline: Instant::MAX }
    }

    /// Whether the delayed acknowledgement must be sent now, because a further segment, which
    /// belongs to the range at `place`, would push ranges out of the report.
    pub(super) fn is_full(&self, place: usize) -> bool {
        self.waiting > 0 && place >= EXPECTED_BLOCKS
    }

    /// Whether to delay the acknowledgement of a segment that arrived beyond `hole`.
    pub(super) fn holds(&mut self, now: Instant, hole: u64, rtt: Duration) -> bool {
        if !self.is_on || self.waiting >= MOST {
            return false;
        }
        if self.hole != hole {
            (self.hole, self.sent) = (hole, 0);
        }
        if self.sent < AT_ONCE {
            self.sent += 1;
            return false;
        }
        if self.waiting == 0 {
            self.deadline = now + LONGEST.min(rtt / SHARE_OF_RTT) + SLACK;
        }
        self.waiting += 1;
        true
    }

    /// When the delayed acknowledgement must be sent.
    pub(super) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// An acknowledgement was sent.
    pub(super) fn on_ack_sent(&mut self) {
        self.waiting = 0;
        self.deadline = Instant::MAX;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    const fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1000)
    }

    #[test]
    fn three_of_a_hole_leave_at_once_and_then_one_a_millisecond() {
        let mut compression = Compression::new(true);
        let held: Vec<bool> = (0..5).map(|n| compression.holds(at(600 * n), 7, RTT)).collect();
        assert_eq!(held, [false, false, false, true, true]);
        assert_eq!(compression.deadline(), at(1_800 + 1_000 + 100));
        compression.on_ack_sent();
        assert_eq!(compression.deadline(), Instant::MAX);
        assert!(compression.holds(at(3_000), 7, RTT));
        // Another hole starts again.
        assert!(!compression.holds(at(3_100), 9, RTT));
    }

    #[test]
    fn a_short_path_waits_for_a_twentieth_of_its_round_trip() {
        let mut compression = Compression::new(true);
        (0..4).for_each(|_| _ = compression.holds(at(0), 7, Duration::from_millis(4)));
        assert_eq!(compression.deadline(), at(200 + 100));
    }

    #[test]
    fn forty_four_segments_wait_at_most_and_none_that_would_push_others_out() {
        let mut compression = Compression::new(true);
        let held = (0..60).take_while(|n| compression.holds(at(0), 7, RTT) == (*n >= 3));
        assert_eq!(held.count(), 3 + 44);
        assert!(compression.is_full(2));
        assert!(!compression.is_full(1));
        compression.on_ack_sent();
        assert!(!compression.is_full(2));
        assert!(!Compression::new(false).holds(at(0), 7, RTT));
    }
}
