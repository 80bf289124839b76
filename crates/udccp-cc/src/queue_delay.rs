//! Compares the round-trip times of a round with the smallest of all, for the delay-based policies.

use udccp_base::Duration;

use crate::delivery::Delivery;

/// Samples needed per round trip: two are too few, because both may include a receiver's delay.
const ENOUGH: u32 = 3;

/// The smallest round-trip time of all (`baseRTT`) and of the current round.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueDelay {
    base: Option<Duration>,
    smallest: Option<Duration>,
    samples: u32,
}

/// The result of a round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The smallest round-trip time of all in seconds.
    pub(crate) base: f64,
    /// The smallest of the round in seconds.
    pub(crate) rtt: f64,
}

/// The result of an acknowledgement for a policy that decides once per round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// The round continues.
    Pending,
    /// A round ended with too few samples.
    Unknown,
    /// A round ended.
    Over(Round),
}

impl QueueDelay {
    /// Handles an acknowledgement. During loss recovery only the base is updated.
    pub(crate) fn on_delivery(&mut self, delivery: &Delivery) -> Verdict {
        let smaller = |old: Option<Duration>, rtt| Some(old.map_or(rtt, |o: Duration| o.min(rtt)));
        if let Some(rtt) = delivery.rtt {
            self.base = smaller(self.base, rtt);
            self.smallest = smaller(self.smallest, rtt);
            self.samples += 1;
        }
        if !delivery.in_recovery && !delivery.round_start {
            return Verdict::Pending;
        }
        let (smallest, samples) = (self.smallest.take(), core::mem::take(&mut self.samples));
        match (self.base, smallest) {
            _ if delivery.in_recovery => Verdict::Pending,
            (Some(base), Some(rtt)) if samples >= ENOUGH => {
                Verdict::Over(Round { base: base.as_secs_f64(), rtt: rtt.as_secs_f64() })
            }
            _ => Verdict::Unknown,
        }
    }

    /// Discards the current round.
    pub(crate) fn restart(&mut self) {
        (self.smallest, self.samples) = (None, 0);
    }
}

impl Round {
    /// The number of packets of a window `cwnd` that are queued: `W (RTT - base) / RTT`, Vegas's
    /// Diff.
    pub(crate) fn queued(self, cwnd: f64) -> f64 {
        cwnd * (self.rtt - self.base) / self.rtt
    }
}
