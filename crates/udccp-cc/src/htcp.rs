//! H-TCP: growth rises with the time since the last congestion event; the cut depends on the queue.
//!
//! D. Leith, R. Shorten, "H-TCP: TCP for high-speed and long-distance networks", PFLDnet 2004, and
//! draft-leith-tcp-htcp-06. With `D` the seconds since the last congestion event was recovered
//! from,
//!
//! ```text
//! alpha(D) = 1                                        D <= D_L
//!            1 + 10 (D - D_L) + ((D - D_L) / 2)^2     beyond
//! scaled for the round-trip time:  alpha = alpha RTT_min / 100 ms  (the ratio in 0.1 .. 2)
//! for every packet acknowledged    W = W + 2 (1 - beta) alpha / W
//! congestion event                 W = beta W
//! beta = RTT_min / RTT_max in 0.5 .. 0.8;  0.5 where the throughput before this event and the
//!        one before it differ by more than a fifth
//! ```
//!
//! As in the kernels, alpha is a whole number of at least 1 both before and after scaling, and is
//! recomputed at each step of the window. A step takes `W / alpha` packets and the acknowledgement
//! that completes it. The maximum `RTT_max` decays by 5 % of the queueing delay at every event, and
//! rises by at most 20 ms per sample.

use udccp_base::{Duration, Instant};

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::policy::{GrowthPolicy, Window};

/// Parameters of H-TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct HtcpConfig {
    /// How long growth remains that of NewReno after a congestion event, in seconds (Delta_L).
    pub delta_l_s: f64,
    /// The smallest share of the window that is kept at a cut.
    pub beta_min: f64,
    /// The largest share of the window that is kept at a cut.
    pub beta_max: f64,
    /// Relative change of throughput from which on the cut keeps only `beta_min` (Delta_B).
    pub delta_b: f64,
    /// Scale growth with the round-trip time, so that it depends on time and not on round trips.
    pub rtt_scaling: bool,
}

impl Default for HtcpConfig {
    fn default() -> Self {
        Self { delta_l_s: 1.0, beta_min: 0.5, beta_max: 0.8, delta_b: 0.2, rtt_scaling: true }
    }
}

/// Largest increase of `RTT_max` per sample.
const MAX_RTT_STEP: Duration = Duration::from_millis(20);
/// On paths with a smaller round-trip time the cut keeps only the smallest share.
const SHORTEST_ADAPTIVE: Duration = Duration::from_millis(10);

/// The state of H-TCP.
#[derive(Clone, Debug)]
pub(crate) struct Htcp {
    config: HtcpConfig,
    beta: f64,
    /// Whether the cut may depend on the queue, because throughput was steady at the last event.
    adaptive: bool,
    last_event: Instant,
    /// Whether recovery from the last event is in progress.
    recovering: bool,
    rtt: Option<Rtt>,
    throughput: Throughput,
    /// Growth per round trip, and packets acknowledged, since the last step.
    growth: f64,
    counted: u32,
}

#[derive(Clone, Copy, Debug)]
struct Rtt {
    min: Duration,
    max: Duration,
}

/// Packets per second: in the last interval, its average, and the maxima since the last event and
/// in the epoch before it.
#[derive(Clone, Copy, Debug, Default)]
struct Throughput {
    packets: u32,
    since: Instant,
    mean: f64,
    max: f64,
    max_before: f64,
}

impl Htcp {
    pub(crate) fn new(config: HtcpConfig) -> Self {
        Self {
            beta: config.beta_min,
            config,
            adaptive: false,
            last_event: Instant::ZERO,
            recovering: false,
            rtt: None,
            throughput: Throughput::default(),
            growth: 1.0,
            counted: 0,
        }
    }

    /// Growth per round trip.
    fn alpha(&self, now: Instant) -> f64 {
        let beyond = (now - self.last_event).as_secs_f64() - self.config.delta_l_s;
        let mut alpha = 1.0;
        if beyond > 0.0 {
            alpha += libm::floor(10.0 * beyond + beyond * beyond / 4.0);
        }
        if let Some(rtt) = self.rtt.filter(|_| self.config.rtt_scaling) {
            let scaled = alpha * (rtt.min.as_secs_f64() / 0.1).clamp(0.1, 2.0);
            alpha = libm::floor(scaled).max(1.0);
        }
        2.0 * (1.0 - self.beta) * alpha
    }

    fn update_beta(&mut self) {
        let HtcpConfig { beta_min, beta_max, delta_b, .. } = self.config;
        let (max, before) = (self.throughput.max, self.throughput.max_before);
        self.throughput.max_before = max;
        self.beta = beta_min;
        if (max - before).abs() > delta_b * before {
            self.adaptive = false;
        } else if let Some(rtt) = self.rtt.filter(|r| self.adaptive && r.min > SHORTEST_ADAPTIVE) {
            let share = rtt.min.as_secs_f64() / rtt.max.as_secs_f64();
            self.beta = share.clamp(beta_min, beta_max);
        } else {
            self.adaptive = true;
        }
    }

    /// Measures throughput over intervals of about a window and at least a round trip.
    fn measure(&mut self, window: &Window, delivery: &Delivery) {
        if delivery.in_recovery {
            (self.throughput.packets, self.throughput.since) = (0, delivery.now);
            return;
        }
        let Some(Rtt { min, .. }) = self.rtt else { return };
        let t = &mut self.throughput;
        t.packets += delivery.acked;
        let span = delivery.now - t.since;
        if t.packets + 1 < window.cwnd() || span < min {
            return;
        }
        let rate = f64::from(t.packets) / span.as_secs_f64();
        if delivery.now - self.last_event <= min * 3 {
            (t.mean, t.max) = (rate, rate);
        } else {
            t.mean = (3.0 * t.mean + rate) / 4.0;
            t.max = t.max.max(t.mean);
        }
        (t.packets, t.since) = (0, delivery.now);
    }
}

impl GrowthPolicy for Htcp {
    const NAME: &'static str = "htcp";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        if let Some(rtt) = delivery.rtt {
            let known = self.rtt.get_or_insert(Rtt { min: rtt, max: rtt });
            known.min = known.min.min(rtt);
            if !delivery.in_recovery && rtt > known.max && rtt <= known.max + MAX_RTT_STEP {
                known.max = rtt;
            }
        }
        if self.recovering && !delivery.in_recovery {
            (self.recovering, self.last_event) = (false, delivery.now);
        }
        self.measure(window, delivery);
    }

    fn congestion_avoidance(&mut self, window: &mut Window, ack: &AckSample, acked: u32) {
        if f64::from(self.counted) * self.growth < f64::from(window.cwnd()) {
            self.counted += acked;
            return;
        }
        window.grow(1.0);
        (self.counted, self.growth) = (0, self.alpha(ack.now));
    }

    fn ssthresh(&mut self, window: &Window, now: Instant) -> u32 {
        self.update_beta();
        if let Some(rtt) = &mut self.rtt {
            rtt.max = rtt.min + (rtt.max - rtt.min) * 95 / 100;
        }
        self.growth = self.alpha(now);
        (self.last_event, self.recovering, self.counted) = (now, true, 0);
        (f64::from(window.cwnd()) * self.beta) as u32
    }
}
