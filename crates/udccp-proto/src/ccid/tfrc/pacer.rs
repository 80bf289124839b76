//! Computes when the next packet may leave (RFC 5348 sections 4.6 and 8.3).

use udccp_base::{Duration, Instant};

/// Spreads packets by t_ipi, lets unused send times be used later for a bounded time, and lets a
/// packet leave up to half an interval early, so that a coarse clock keeps the mean rate.
#[derive(Clone, Debug)]
pub(crate) struct RatePacer {
    /// t_gran: how coarsely the driver's timers fire.
    granularity: Duration,
    /// Unused send times are kept for so long, and never longer than a round-trip time.
    max_credit: Duration,
    /// Nominal time of the packet sent last.
    nominal: Option<Instant>,
}

impl RatePacer {
    pub(crate) fn new(granularity: Duration, max_credit: Duration) -> Self {
        Self { granularity, max_credit, nominal: None }
    }

    /// t_delta = min(t_ipi, t_gran, rtt)/2.
    fn early(&self, interval: Duration, rtt: Option<Duration>) -> Duration {
        rtt.map_or(Duration::ZERO, |rtt| interval.min(self.granularity).min(rtt) / 2)
    }

    //= 5348-4.6-1
    /// When the next packet may leave; in the past where it may leave at once.
    pub(crate) fn next(&self, interval: Duration, rtt: Option<Duration>) -> Instant {
        match self.nominal {
            Some(last) => last + interval - self.early(interval, rtt),
            None => Instant::ZERO,
        }
    }

    //= 5348-4.6-2
    //= 5348-4.6-3
    //= 5348-4.6-4
    //= 5348-4.6-5
    /// A packet left. True where this was all that is allowed now.
    ///
    /// `steady` is the interval at the allowed rate X. Where packets leave faster than that for a
    /// while, what was not sent is still no more than X allows in a round-trip time.
    pub(crate) fn on_sent(
        &mut self,
        now: Instant,
        interval: Duration,
        steady: Duration,
        rtt: Option<Duration>,
    ) -> bool {
        let round = rtt.map_or(Duration::ZERO, |rtt| worth(rtt, interval, steady));
        let credit = self.max_credit.max(interval * 2).min(round);
        let due = self.nominal.map_or(now, |last| last + interval);
        let nominal = due.max(now - credit);
        self.nominal = Some(nominal);
        nominal + interval > now
    }
}

/// The time in which as many packets leave `interval` apart as leave `steady` apart in `rtt`; no
/// longer than that.
fn worth(rtt: Duration, interval: Duration, steady: Duration) -> Duration {
    if interval >= steady {
        return rtt;
    }
    let (rtt, interval, steady) = (rtt.as_nanos(), interval.as_nanos(), steady.as_nanos());
    Duration::from_nanos(match rtt.checked_mul(interval) {
        Some(product) => product / steady,
        None => (u128::from(rtt) * u128::from(interval) / u128::from(steady)) as u64,
    })
}
