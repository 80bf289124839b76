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
    /// What `worth` said last, and of what: most packets ask the same.
    last_worth: ([Duration; 3], Duration),
}

impl RatePacer {
    pub(crate) fn new(granularity: Duration, max_credit: Duration) -> Self {
        Self { granularity, max_credit, nominal: None, last_worth: Default::default() }
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
        let round = rtt.map_or(Duration::ZERO, |rtt| self.worth(rtt, interval, steady));
        let credit = self.max_credit.max(interval * 2).min(round);
        let due = self.nominal.map_or(now, |last| last + interval);
        let nominal = due.max(now - credit);
        self.nominal = Some(nominal);
        nominal + interval > now
    }

    #[inline]
    fn worth(&mut self, rtt: Duration, interval: Duration, steady: Duration) -> Duration {
        if interval >= steady {
            return rtt;
        }
        let of = [rtt, interval, steady];
        if self.last_worth.0 != of {
            self.last_worth = (of, worth(rtt, interval, steady));
        }
        self.last_worth.1
    }
}

/// The time in which as many packets leave `interval` apart as leave `steady` apart, which is more,
/// in `rtt`.
fn worth(rtt: Duration, interval: Duration, steady: Duration) -> Duration {
    let (rtt, interval, steady) = (rtt.as_nanos(), interval.as_nanos(), steady.as_nanos());
    Duration::from_nanos(match rtt.checked_mul(interval) {
        Some(product) => product / steady,
        None => (u128::from(rtt) * u128::from(interval) / u128::from(steady)) as u64,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_credit_is_worth_follows_each_of_its_three_times() {
        let us = Duration::from_micros;
        let mut pacer = RatePacer::new(us(1000), us(10_000));
        for [rtt, interval, steady] in
            [[800, 10, 20], [800, 10, 20], [900, 10, 20], [900, 15, 20], [900, 15, 45], [900, 9, 9]]
        {
            let expected = us(rtt * interval / steady);
            assert_eq!(pacer.worth(us(rtt), us(interval), us(steady)), expected);
        }
    }
}
