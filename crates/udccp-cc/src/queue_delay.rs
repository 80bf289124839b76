//! Round-trip times of one round against the smallest of all: what the delay-based policies share.

use udccp_base::Duration;

use crate::delivery::Delivery;

/// So many samples in a round trip are enough: of two, both may hold a receiver's delay.
const ENOUGH: u32 = 3;

/// The smallest round-trip time of all (`baseRTT`) and of the round under way.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct QueueDelay {
    base: Option<Duration>,
    smallest: Option<Duration>,
    samples: u32,
}

/// What a round trip found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    /// The smallest round-trip time of all in seconds.
    pub(crate) base: f64,
    /// The smallest of the round in seconds.
    pub(crate) rtt: f64,
}

/// What an acknowledgement means for a policy that decides once per round trip.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Verdict {
    /// The round goes on.
    Pending,
    /// A round ended with too few samples to say anything.
    Unknown,
    /// A round ended.
    Over(Round),
}

impl QueueDelay {
    /// Takes in an acknowledgement. In loss recovery nothing but the base is learnt.
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

    /// Forgets the round under way.
    pub(crate) fn restart(&mut self) {
        (self.smallest, self.samples) = (None, 0);
    }
}

impl Round {
    /// Packets of a window of `cwnd` that wait in queues: `W (RTT - base) / RTT`, Vegas's Diff.
    pub(crate) fn queued(self, cwnd: f64) -> f64 {
        cwnd * (self.rtt - self.base) / self.rtt
    }
}
