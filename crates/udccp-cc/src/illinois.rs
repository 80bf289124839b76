//! TCP-Illinois: loss triggers the cut, while delay sets the growth and the size of the cut.
//!
//! S. Liu, T. Basar, R. Srikant, "TCP-Illinois: A loss- and delay-based congestion control
//! algorithm for high-speed networks", Performance Evaluation 65, 2008, section 3. Once per round
//! trip, with `d_a` the mean queueing delay of the round and `d_m` the largest of all,
//!
//! ```text
//! alpha = alpha_max                    d_a <= d_1 = 0.01 d_m
//!         k_1 / (k_2 + d_a)            otherwise, falling to alpha_min at d_m
//! beta  = beta_min                     d_a <= d_2 = 0.1 d_m
//!         linear                       in between
//!         beta_max                     d_a >= d_3 = 0.8 d_m
//! W = W + alpha / W for every packet acknowledged;  W = W - beta W at a congestion event
//! ```
//!
//! Below `win_thresh` packets alpha is 1 and beta 0.5. After the delay has once passed `d_1`,
//! alpha returns to its maximum only after `theta` rounds below.
//!
//! In kernels since 4.6 the acknowledgement that ends a recovery counts for growth. Illinois counts
//! all packets that it covers, which gives about a round trip's growth at once
//! ([`IllinoisConfig::linux_6_1`]).

use udccp_base::{Duration, Instant};

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::policy::{GrowthPolicy, Window};

/// Parameters of Illinois.
#[derive(Clone, Debug, PartialEq)]
pub struct IllinoisConfig {
    /// Smallest growth per round trip, in packets.
    pub alpha_min: f64,
    /// Largest growth per round trip, in packets.
    pub alpha_max: f64,
    /// Smallest share of the window that is cut.
    pub beta_min: f64,
    /// Largest share of the window that is cut.
    pub beta_max: f64,
    /// Below this window, in packets, growth and cut are those of NewReno.
    pub win_thresh: u32,
    /// Rounds of low delay after which growth is the largest again.
    pub theta: u32,
    /// The acknowledgement that ends a recovery counts for growth with all packets that it covers.
    pub grows_after_recovery: bool,
}

impl IllinoisConfig {
    /// As in Linux 6.1.
    pub fn linux_6_1() -> Self {
        Self { grows_after_recovery: true, ..Self::default() }
    }
}

impl Default for IllinoisConfig {
    fn default() -> Self {
        Self {
            alpha_min: 0.3,
            alpha_max: 10.0,
            beta_min: 0.125,
            beta_max: 0.5,
            win_thresh: 15,
            theta: 5,
            grows_after_recovery: false,
        }
    }
}

/// The state of Illinois.
#[derive(Clone, Debug)]
pub(crate) struct Illinois {
    config: IllinoisConfig,
    alpha: f64,
    beta: f64,
    base: Duration,
    max: Duration,
    /// Sum and number of the round's samples.
    sum: Duration,
    samples: u64,
    /// Whether the delay has exceeded `d_1`, and the number of rounds below it since then.
    above: bool,
    low_rounds: u32,
    in_recovery: bool,
}

impl Illinois {
    pub(crate) fn new(config: IllinoisConfig) -> Self {
        Self {
            alpha: config.alpha_max,
            beta: config.beta_max,
            config,
            base: Duration::MAX,
            max: Duration::ZERO,
            sum: Duration::ZERO,
            samples: 0,
            above: false,
            low_rounds: 0,
            in_recovery: false,
        }
    }

    fn update(&mut self, cwnd: u32) {
        if cwnd < self.config.win_thresh {
            (self.alpha, self.beta) = (1.0, self.config.beta_max);
        } else if self.samples > 0 {
            let largest = (self.max - self.base).as_secs_f64();
            let mean = (self.sum / self.samples - self.base).as_secs_f64();
            self.alpha = self.alpha(mean, largest);
            self.beta = self.beta(mean, largest);
        }
        (self.sum, self.samples) = (Duration::ZERO, 0);
    }

    fn alpha(&mut self, mean: f64, largest: f64) -> f64 {
        let IllinoisConfig { alpha_min, alpha_max, theta, .. } = self.config;
        let d1 = 0.01 * largest;
        if mean <= d1 {
            if self.above {
                self.low_rounds += 1;
                if self.low_rounds < theta {
                    return self.alpha;
                }
            }
            (self.above, self.low_rounds) = (false, 0);
            return alpha_max;
        }
        self.above = true;
        let slope = (largest - d1) * alpha_min / (alpha_max - alpha_min);
        slope * alpha_max / (slope - d1 + mean)
    }

    fn beta(&self, mean: f64, largest: f64) -> f64 {
        let IllinoisConfig { beta_min, beta_max, .. } = self.config;
        let (d2, d3) = (0.1 * largest, 0.8 * largest);
        if mean <= d2 {
            beta_min
        } else if mean >= d3 {
            beta_max
        } else {
            beta_min + (beta_max - beta_min) * (mean - d2) / (d3 - d2)
        }
    }
}

impl GrowthPolicy for Illinois {
    const NAME: &'static str = "illinois";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        if let Some(rtt) = delivery.rtt {
            self.base = self.base.min(rtt);
            self.max = self.max.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
        if delivery.round_start {
            self.update(window.cwnd());
        }
        let recovered = core::mem::replace(&mut self.in_recovery, delivery.in_recovery);
        if self.config.grows_after_recovery && recovered && !self.in_recovery {
            let cwnd = f64::from(window.cwnd());
            window.grow(libm::floor(f64::from(delivery.advanced) * self.alpha / cwnd));
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        window.add_per_window(acked, self.alpha);
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        (f64::from(window.cwnd()) * (1.0 - self.beta)) as u32
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        (self.alpha, self.beta) = (1.0, self.config.beta_max);
        (self.above, self.low_rounds) = (false, 0);
        (self.sum, self.samples) = (Duration::ZERO, 0);
    }
}
