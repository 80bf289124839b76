//! Computes when the next packet may be sent (RFC 5348 sections 4.6 and 8.3).

use udccp_base::{Duration, Instant, MaybeInstant};

/// Spaces packets by t_ipi. Missed send times may be made up for, within a time limit. A packet may
/// be sent up to half an interval early, so that a coarse clock does not lower the mean rate.
#[derive(Clone, Debug)]
pub(crate) struct RatePacer {
    /// t_gran: granularity of the driver's timers.
    granularity: Duration,
    /// How long missed send times are kept. The limit is never longer than a round-trip time.
    max_credit: Duration,
    /// Nominal send time of the last packet.
    nominal: MaybeInstant,
}

/// What does not change between packets at one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pace {
    /// t_ipi.
    pub(crate) interval: Duration,
    /// t_ipi - t_delta: from the nominal send time of a packet to when the next may be sent.
    wait: Duration,
    /// How long missed send times are kept.
    credit: Duration,
}

impl RatePacer {
    pub(crate) fn new(granularity: Duration, max_credit: Duration) -> Self {
        Self { granularity, max_credit, nominal: MaybeInstant::NONE }
    }

    //= 5348-4.6-4
    //= 5348-4.6-5
    /// The pace of packets `interval` apart. Missed send times count for at most `limit`, and zero
    /// while no round-trip time is known.
    ///
    /// `steady` is the interval at the allowed rate X. Even if packets are sent faster than X for a
    /// while, the missed send times are worth at most what X allows in that limit.
    pub(crate) fn pace(
        &self,
        interval: Duration,
        steady: Duration,
        rtt: Option<Duration>,
        limit: Option<Duration>,
    ) -> Pace {
        // t_delta = min(t_ipi, t_gran, rtt)/2.
        let early = rtt.map_or(Duration::ZERO, |rtt| interval.min(self.granularity).min(rtt) / 2);
        let round = limit.map_or(Duration::ZERO, |limit| worth(limit, interval, steady));
        let credit = self.max_credit.max(interval * 2).min(round);
        Pace { interval, wait: interval - early, credit }
    }

    //= 5348-4.6-1
    /// When the next packet may be sent. In the past if it may be sent at once.
    #[inline]
    pub(crate) fn next(&self, pace: &Pace) -> Instant {
        self.nominal.get().map_or(Instant::ZERO, |last| last + pace.wait)
    }

    //= 5348-4.6-2
    //= 5348-4.6-3
    /// A packet was sent. Returns whether the sender has now used all that is allowed.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Instant, pace: &Pace) -> bool {
        let due = self.nominal.get().map_or(now, |last| last + pace.interval);
        let nominal = due.max(now - pace.credit);
        self.nominal = MaybeInstant::some(nominal);
        nominal + pace.interval > now
    }
}

/// The time in which packets `interval` apart are as many as packets `steady` apart in `rtt`. At
/// most `rtt`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credit_depends_on_each_of_its_three_times() {
        let us = Duration::from_micros;
        let pacer = RatePacer::new(us(1000), us(10_000));
        for [rtt, interval, steady] in
            [[800, 10, 20], [800, 10, 20], [900, 10, 20], [900, 15, 20], [900, 15, 45], [900, 9, 9]]
        {
            let expected = us(rtt * interval / steady);
            let rtt = Some(us(rtt));
            assert_eq!(pacer.pace(us(interval), us(steady), rtt, rtt).credit, expected);
        }
    }
}
