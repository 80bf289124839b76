//! Measures how late the emulator forwarded packets, and judges whether the run is valid.

use udccp_base::{Duration, Instant};
use udccp_link::DelayHistogram;

/// A packet is late if the host gets it this long after its scheduled time.
pub const DEADLINE: Duration = Duration::from_millis(1);
/// A run is invalid if more than this share of its packets was late, in percent.
pub const LATE_PERCENT: f64 = 1.0;
/// A run is invalid if its rate error is above this, in percent.
pub const RATE_ERROR_PERCENT: f64 = 1.0;
/// Length of the periods over which rates are compared.
const STRETCH: Duration = Duration::from_secs(1);
/// If a host gets nothing for this long, it has no service to compare.
const PAUSE: Duration = Duration::from_millis(100);

/// How well a run kept time, over all packets of all flows in both directions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Timing {
    /// Packets delivered to hosts.
    pub packets: u64,
    /// Packets delivered more than [`DEADLINE`] after their time.
    pub late: u64,
    /// Scheduling delay, from the time at which a host should get a packet to the time at which it
    /// gets it.
    pub delay_p50: Duration,
    /// The same, 99th percentile.
    pub delay_p99: Duration,
    /// The same, the longest.
    pub delay_max: Duration,
    /// Rate error: how much the service by the clock differs from the configured service, over
    /// periods of a second; 99th percentile of the absolute value, in percent.
    pub rate_error_percent: f64,
    /// Packets that the kernel dropped before the emulator read them.
    pub unread: u64,
    /// Packets from hosts that the network does not carry (not IP, or fragments), and packets that
    /// a host's kernel refused.
    pub refused: u64,
}

impl Timing {
    /// Why the run is invalid, or `None` if it is valid.
    pub fn invalid_reason(&self) -> Option<String> {
        let late_percent = 100.0 * self.late as f64 / self.packets.max(1) as f64;
        if late_percent > LATE_PERCENT {
            return Some(format!(
                "{late_percent:.1} % of the packets were more than {DEADLINE} late (at most \
                 {LATE_PERCENT} % is allowed)"
            ));
        }
        if self.rate_error_percent > RATE_ERROR_PERCENT {
            return Some(format!(
                "the rate error is {:.2} % (at most {RATE_ERROR_PERCENT} % is allowed)",
                self.rate_error_percent
            ));
        }
        (self.unread > 0).then(|| {
            format!("{} packets of hosts were lost before the emulator read them", self.unread)
        })
    }
}

/// Records when packets are delivered to hosts.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    delay: DelayHistogram,
    late: u64,
    refused: u64,
    hosts: Vec<Stretches>,
}

/// Divides one host's packets into periods. Each goes from the first packet of one period to the
/// first of the next, so that the same packets are served in it by network time and by clock time.
#[derive(Clone, Debug, Default)]
struct Stretches {
    /// Start of the period in network time and in clock time.
    begin: Option<(Instant, Instant)>,
    last: Instant,
    /// In millionths.
    errors: DelayHistogram,
}

impl Meter {
    /// A meter for this many hosts.
    pub(crate) fn new(hosts: usize) -> Self {
        Self { hosts: vec![Stretches::default(); hosts], ..Self::default() }
    }

    /// Records that a host got a packet scheduled for `meant`.
    #[inline]
    pub(crate) fn delivered(&mut self, host: usize, meant: Instant, at: Instant) {
        let delay = at.saturating_since(meant);
        self.delay.record(delay);
        self.late += u64::from(delay > DEADLINE);
        if let Some(stretches) = self.hosts.get_mut(host) {
            stretches.delivered(meant, at.max(meant));
        }
    }

    /// Records a packet that was not carried or not accepted.
    #[cold]
    pub(crate) fn refused(&mut self) {
        self.refused += 1;
    }

    pub(crate) fn finish(&self, unread: u64) -> Timing {
        let mut errors = DelayHistogram::default();
        self.hosts.iter().for_each(|host| errors.merge(&host.errors));
        let quantile = |q| self.delay.quantile(q).unwrap_or(Duration::ZERO);
        let error = errors.quantile(0.99).unwrap_or(Duration::ZERO).as_nanos();
        Timing {
            packets: self.delay.count(),
            late: self.late,
            delay_p50: quantile(0.5),
            delay_p99: quantile(0.99),
            delay_max: self.delay.max().unwrap_or(Duration::ZERO),
            rate_error_percent: error as f64 / 10_000.0,
            unread,
            refused: self.refused,
        }
    }
}

impl Stretches {
    #[inline]
    fn delivered(&mut self, meant: Instant, at: Instant) {
        let has_paused = meant.saturating_since(self.last) >= PAUSE;
        self.last = meant;
        let Some((begin_meant, begin_at)) = self.begin.filter(|_| !has_paused) else {
            self.begin = Some((meant, at));
            return;
        };
        let configured = meant.saturating_since(begin_meant);
        if configured >= STRETCH {
            let real = at.saturating_since(begin_at);
            let parts = real.abs_diff(configured).as_nanos() * 1_000_000 / configured.as_nanos();
            self.errors.record(Duration::from_nanos(parts));
            self.begin = Some((meant, at));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(us * 1_000)
    }

    /// A run with one packet per millisecond, each late by `late_us`.
    fn run(seconds: u64, late_us: impl Fn(u64) -> u64) -> Timing {
        let mut meter = Meter::new(1);
        for ms in 0..1_000 * seconds {
            meter.delivered(0, at(1_000 * ms), at(1_000 * ms + late_us(ms)));
        }
        meter.finish(0)
    }

    #[test]
    fn a_steady_delay_is_no_rate_error() {
        let timing = run(20, |_| 300);
        assert_eq!((timing.packets, timing.late, timing.rate_error_percent), (20_000, 0, 0.0));
        assert_eq!(timing.delay_max, Duration::from_micros(300));
        assert_eq!(timing.invalid_reason(), None);
    }

    #[test]
    fn a_clock_that_runs_slow_is_a_rate_error() {
        // 2 % slow.
        let timing = run(20, |ms| 20 * ms);
        assert!((1.99..2.01).contains(&timing.rate_error_percent), "{timing:?}");
        assert!(timing.invalid_reason().unwrap().contains("late"));
    }

    #[test]
    fn one_packet_in_a_hundred_may_be_late() {
        let timing = run(20, |ms| if ms % 101 == 50 { 5_000 } else { 10 });
        assert_eq!(timing.late, 198);
        assert_eq!(timing.invalid_reason(), None, "{timing:?}");
        let timing = run(20, |ms| if ms % 99 == 50 { 5_000 } else { 10 });
        let reason = timing.invalid_reason().unwrap();
        assert!(reason.starts_with("1.0 % of the packets were more than 1 ms late"), "{reason}");
    }

    #[test]
    fn a_pause_of_the_sender_is_no_error() {
        let mut meter = Meter::new(1);
        for turn in 0..5 {
            for ms in 0..1_300 {
                let meant = 2_000_000 * turn + 1_000 * ms;
                meter.delivered(0, at(meant), at(meant + 100 * turn));
            }
        }
        let timing = meter.finish(3);
        assert!(timing.rate_error_percent < 0.001, "{timing:?}");
        assert!(timing.invalid_reason().unwrap().contains("3 packets of hosts were lost"));
    }
}
