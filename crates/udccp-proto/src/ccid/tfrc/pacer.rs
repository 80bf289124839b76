//! Computes when the next packet may be sent (RFC 5348 sections 4.6 and 8.3).

use udccp_base::{Duration, Instant};

/// Spaces packets by t_ipi. Missed send times may be made up for, within a time limit. A packet may
/// be sent up to half an interval early, so that a coarse clock does not lower the mean rate.
#[derive(Clone, Debug)]
pub(crate) struct RatePacer {
    /// t_gran: granularity of the driver's timers.
    granularity: Duration,
    /// How long missed send times are kept. The limit is never longer than a round-trip time.
    max_credit: Duration,
    /// Nominal send time of the last packet.
    nominal: Option<Instant>,
    /// Arguments and result of the last call of `worth`. They are the same for most packets.
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
    /// When the next packet may be sent. In the past if it may be sent at once.
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
    /// A packet was sent. Returns whether the sender has now used all that is allowed.
    ///
    /// `steady` is the interval at the allowed rate X. Even if packets are sent faster than X for a
    /// while, the missed send times are worth at most what X allows in a round-trip time.
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

/// The time in which packets `interval` apart are as many as packets `steady` apart in `rtt`.
/// `steady` is the longer interval.
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
    fn credit_depends_on_each_of_its_three_times() {
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
