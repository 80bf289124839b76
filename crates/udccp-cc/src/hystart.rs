//! HyStart and HyStart++: end slow start before the queue overflows.
//!
//! S. Ha, I. Rhee, "Taming the elephants: New TCP slow start", Computer Networks 55(9), 2011,
//! section 4, with the constants of the kernels. From 16 packets on, slow start ends in a round
//! where
//!
//! ```text
//! delay    the smallest of the first 8 round-trip times exceeds RTT_min by
//!          clamp(RTT_min / 8, 4 ms, 16 ms)
//! train    acknowledgements no more than 2 ms apart have arrived for (RTT_min + d) / 2
//! ```
//!
//! with `d` the time that four of the largest bursts take at twice the window's rate, at most 1 ms
//! (kernels since 5.5, for paths of less than a few milliseconds; below 2 Gbit/s it is 1 ms).
//!
//! RFC 9406 (HyStart++) compares the smallest round-trip time of the round with that of the round
//! before. At first it slows growth down to a quarter for five rounds (conservative slow start,
//! CSS), and returns to slow start if the delay decreases again.

use udccp_base::{Duration, Instant};

use crate::delivery::Delivery;

/// The variant of HyStart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HyStart {
    /// Ha and Rhee 2011, as in the kernels' CUBIC.
    Classic,
    /// RFC 9406.
    PlusPlus,
}

/// Smaller windows are ignored (classic).
const LOW_WINDOW: u32 = 16;
/// Samples needed in a round before its smallest round-trip time is used (`N_RTT_SAMPLE`).
const SAMPLES: u32 = 8;
/// Bounds of the increase that ends slow start (`MIN_RTT_THRESH`, `MAX_RTT_THRESH`), and its
/// divisor.
const LEAST_RISE: Duration = Duration::from_millis(4);
const MOST_RISE: Duration = Duration::from_millis(16);
const RISE_DIVISOR: u64 = 8;
/// Largest gap between acknowledgements of one train (classic).
const TRAIN_GAP: Duration = Duration::from_millis(2);
/// Bytes of four bursts of segmentation offload, and the longest time allowed for them (classic).
const BURSTS_BYTES: u64 = 4 << 16;
const MOST_FOR_BURSTS: Duration = Duration::from_millis(1);
/// Rounds of conservative slow start (`CSS_ROUNDS`), and the divisor of its growth.
const CSS_ROUNDS: u32 = 5;
const CSS_DIVISOR: u32 = 4;

/// How slow start grows now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// As usual.
    Full,
    /// Growth is divided by this.
    Divided(u32),
    /// Slow start is over.
    Over,
}

/// The state of slow start.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    kind: HyStart,
    round_began: Instant,
    last_ack: Instant,
    /// The smallest round-trip time of all packets (classic).
    min_rtt: Duration,
    /// The smallest round-trip time of the round, of its first samples, and the number of samples.
    smallest: Duration,
    samples: u32,
    /// The smallest round-trip time of the previous round (HyStart++).
    before: Duration,
    css: Option<Css>,
}

/// Conservative slow start.
#[derive(Clone, Copy, Debug)]
struct Css {
    baseline: Duration,
    rounds: u32,
}

impl Watch {
    pub(crate) fn new(kind: HyStart) -> Self {
        Self {
            kind,
            round_began: Instant::ZERO,
            last_ack: Instant::ZERO,
            min_rtt: Duration::MAX,
            smallest: Duration::MAX,
            samples: 0,
            before: Duration::MAX,
            css: None,
        }
    }

    /// Handles an acknowledgement in slow start with a window of `cwnd`.
    pub(crate) fn on_delivery(&mut self, cwnd: u32, delivery: &Delivery) -> Pace {
        if delivery.round_start {
            self.begin_round(delivery.now);
        }
        self.min_rtt = delivery.rtt.map_or(self.min_rtt, |rtt| self.min_rtt.min(rtt));
        match self.kind {
            HyStart::Classic if cwnd < LOW_WINDOW => Pace::Full,
            HyStart::Classic => self.classic(cwnd, delivery),
            HyStart::PlusPlus => self.plus_plus(delivery),
        }
    }

    fn begin_round(&mut self, now: Instant) {
        self.before = if self.samples >= SAMPLES { self.smallest } else { Duration::MAX };
        (self.smallest, self.samples) = (Duration::MAX, 0);
        (self.round_began, self.last_ack) = (now, now);
        if let Some(css) = &mut self.css {
            css.rounds += 1;
        }
    }

    fn sample(&mut self, rtt: Duration) {
        self.smallest = self.smallest.min(rtt);
        self.samples += 1;
    }

    fn classic(&mut self, cwnd: u32, delivery: &Delivery) -> Pace {
        let min_rtt = self.min_rtt;
        if min_rtt == Duration::MAX {
            return Pace::Full;
        }
        if delivery.now - self.last_ack <= TRAIN_GAP {
            self.last_ack = delivery.now;
            let enough = (min_rtt + for_bursts(cwnd, delivery)) / 2;
            if delivery.now - self.round_began > enough {
                return Pace::Over;
            }
        }
        let Some(rtt) = delivery.rtt else { return Pace::Full };
        // A round-trip time after the first samples may still be the smallest of all.
        let enough = self.samples >= SAMPLES;
        self.sample(rtt);
        if enough && self.smallest > min_rtt + rise(min_rtt) { Pace::Over } else { Pace::Full }
    }

    /// RFC 9406 section 4.2.
    fn plus_plus(&mut self, delivery: &Delivery) -> Pace {
        if let Some(rtt) = delivery.rtt {
            self.sample(rtt);
        }
        let enough = self.samples >= SAMPLES;
        match self.css {
            None if enough && self.before < Duration::MAX => {
                if self.smallest >= self.before + rise(self.before) {
                    self.css = Some(Css { baseline: self.smallest, rounds: 0 });
                    return Pace::Divided(CSS_DIVISOR);
                }
                Pace::Full
            }
            None => Pace::Full,
            Some(css) if enough && self.smallest < css.baseline => {
                self.css = None;
                Pace::Full
            }
            Some(css) if css.rounds >= CSS_ROUNDS => Pace::Over,
            Some(_) => Pace::Divided(CSS_DIVISOR),
        }
    }
}

/// How much bursts may add to the length of a train.
fn for_bursts(cwnd: u32, delivery: &Delivery) -> Duration {
    let window_bytes = u64::from(cwnd) * u64::from(delivery.packet_bytes);
    let srtt = delivery.srtt.unwrap_or_default();
    (srtt * BURSTS_BYTES / (2 * window_bytes).max(1)).min(MOST_FOR_BURSTS)
}

/// The increase over `rtt` that ends slow start.
fn rise(rtt: Duration) -> Duration {
    (rtt / RISE_DIVISOR).max(LEAST_RISE).min(MOST_RISE)
}
