//! Departure times of segments, for congestion controls that set a rate.

use udccp_base::{DataRate, Duration, Instant};
use udccp_cc::train_of;

/// Spreads segments over time, in trains of about a millisecond at the rate, like kernels since
/// 4.20 (TSO autosizing, earliest departure times).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacing {
    max_train: u32,
    /// Whether the delay of a late train is compensated.
    makes_up: bool,
    /// When the next train may be sent.
    until: Instant,
    /// When the last train was sent, and how many segments may still be added.
    train_at: Instant,
    train_left: u32,
    /// How late that train was; at most half of its duration is compensated.
    late: Duration,
}

impl Pacing {
    /// Uses trains of at most `max_train` segments; 1 for none.
    pub(super) fn new(max_train: u32, makes_up: bool) -> Self {
        let (until, train_at) = (Instant::ZERO, Instant::ZERO);
        Self { max_train, makes_up, until, train_at, train_left: 0, late: Duration::ZERO }
    }

    /// Whether a segment has to wait at `now`.
    pub(super) fn holds(&self, now: Instant) -> bool {
        now < self.until && (self.train_left == 0 || self.train_at != now)
    }

    /// The end of the wait.
    pub(super) fn until(&self) -> Instant {
        self.until
    }

    /// A segment was sent without pacing.
    pub(super) fn on_unpaced(&mut self, now: Instant) {
        self.until = now;
    }

    /// A segment of `bytes` was sent.
    pub(super) fn on_sent(&mut self, now: Instant, rate: DataRate, bytes: u32) {
        if self.train_left > 0 && self.train_at == now {
            self.train_left -= 1;
        } else {
            self.begin_train(now, train_of(rate, bytes, self.max_train));
        }
        let time = rate.time_for(bytes.into());
        let made_up = self.late.min(time / 2);
        self.late -= made_up;
        self.until = self.until.max(now) + (time - made_up);
    }

    fn begin_train(&mut self, now: Instant, segments: u32) {
        let is_late = self.makes_up && self.until > Instant::ZERO && now > self.until;
        self.late = if is_late { now - self.until } else { Duration::ZERO };
        (self.train_at, self.train_left) = (now, segments.saturating_sub(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One segment of 1,250 bytes takes a millisecond.
    const RATE: DataRate = DataRate::from_mbps(10);

    fn at(us: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(us)
    }

    /// The departure times of `n` segments in microseconds if one is always waiting.
    fn departures(pacing: &mut Pacing, from: u64, n: usize) -> Vec<u64> {
        let mut now = at(from);
        let mut left = Vec::new();
        while left.len() < n {
            if pacing.holds(now) {
                now = pacing.until();
            }
            pacing.on_sent(now, RATE, 1_250);
            left.push(now.as_nanos() / 1000);
        }
        left
    }

    #[test]
    fn without_trains_segments_leave_one_by_one() {
        let mut pacing = Pacing::new(1, false);
        assert_eq!(departures(&mut pacing, 5_000, 4), [5_000, 6_000, 7_000, 8_000]);
        // A pause is not compensated.
        assert_eq!(departures(&mut pacing, 20_000, 3), [20_000, 21_000, 22_000]);
    }

    #[test]
    fn a_train_is_two_segments_or_what_a_millisecond_carries() {
        let mut pacing = Pacing::new(44, true);
        let left = departures(&mut pacing, 5_000, 5);
        assert_eq!(left, [5_000, 5_000, 7_000, 7_000, 9_000]);
        assert_eq!(train_of(DataRate::from_mbps(100), 1_250, 44), 9);
        assert_eq!(train_of(DataRate::from_mbps(10_000), 1_250, 44), 44);
        assert_eq!(train_of(DataRate::from_bits_per_sec(1_000_000), 1_250, 44), 1);
    }

    #[test]
    fn what_follows_segments_that_were_not_paced_is_late() {
        let mut pacing = Pacing::new(1, true);
        pacing.on_unpaced(at(5_000));
        assert_eq!(departures(&mut pacing, 20_000, 3), [20_000, 20_500, 21_500]);
    }

    #[test]
    fn a_late_train_makes_up_for_half_of_its_time() {
        let mut pacing = Pacing::new(44, true);
        assert_eq!(departures(&mut pacing, 5_000, 2), [5_000, 5_000]);
        // Due at 7,000: half a millisecond of delay is compensated, three only partly.
        assert_eq!(departures(&mut pacing, 7_500, 3), [7_500, 7_500, 9_000]);
        let mut pacing = Pacing::new(44, true);
        assert_eq!(departures(&mut pacing, 5_000, 2), [5_000, 5_000]);
        assert_eq!(departures(&mut pacing, 10_000, 3), [10_000, 10_000, 11_000]);
    }
}
