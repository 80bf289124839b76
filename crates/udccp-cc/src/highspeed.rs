//! HighSpeed TCP (RFC 3649): additive increase and cut depend on the window.
//!
//! At a loss rate of `P1` the window is to be `W1`; up to `W` it behaves like NewReno. In between
//! (RFC 3649 section 5), with `S = (log P1 - log P) / (log W1 - log W)` the slope of the response
//! function:
//!
//! ```text
//! b(w) = (B - 0.5) (log w - log W) / (log W1 - log W) + 0.5
//! p(w) = P (w / W)^S,  with P = 1.5 / W^2 rounded to 0.001 as the RFC has it
//! a(w) = w^2 p(w) 2 b(w) / (2 - b(w))
//! ```
//!
//! The kernels take `a` and `b` from the table of the RFC's appendix B, where `a` is the next whole
//! number ([`HighSpeedConfig::linux_6_1`]); here `b` is always continuous.

use udccp_base::Instant;

use crate::control::AckSample;
use crate::policy::{GrowthPolicy, Window};

/// Parameters of HighSpeed TCP (RFC 3649 section 5).
#[derive(Clone, Debug, PartialEq)]
pub struct HighSpeedConfig {
    /// Up to this window, in packets, growth and cut are those of NewReno (`Low_Window`, W).
    pub low_window: f64,
    /// The loss rate for `low_window` (`Low_P`, P).
    pub low_p: f64,
    /// The window in packets for a loss rate of `high_p` (`High_Window`, W1).
    pub high_window: f64,
    /// The loss rate for `high_window` (`High_P`, P1).
    pub high_p: f64,
    /// The share of the window that is cut at `high_window` (`High_Decrease`, B).
    pub high_decrease: f64,
    /// Round growth per round trip up to a whole number, as in the table of appendix B.
    pub whole_increase: bool,
}

impl HighSpeedConfig {
    /// As in Linux 6.1, which uses the table for growth.
    pub fn linux_6_1() -> Self {
        Self { whole_increase: true, ..Self::default() }
    }
}

impl Default for HighSpeedConfig {
    fn default() -> Self {
        let (low_p, high_p) = (1e-3, 1e-7);
        Self {
            low_window: 38.0,
            low_p,
            high_window: 83_000.0,
            high_p,
            high_decrease: 0.1,
            whole_increase: false,
        }
    }
}

/// The state of HighSpeed TCP.
#[derive(Clone, Debug)]
pub(crate) struct HighSpeed {
    config: HighSpeedConfig,
    /// Growth per round trip at the window in `at`.
    increase: f64,
    at: u32,
}

impl HighSpeed {
    pub(crate) fn new(config: HighSpeedConfig) -> Self {
        Self { config, increase: 1.0, at: 0 }
    }

    /// The position of `w` between the two windows on a logarithmic scale: 0 at the lower one.
    fn position(&self, w: f64) -> f64 {
        let HighSpeedConfig { low_window, high_window, .. } = self.config;
        libm::log(w / low_window) / libm::log(high_window / low_window)
    }

    /// The share of the window that is cut, b(w).
    fn decrease(&self, w: f64) -> f64 {
        (self.config.high_decrease - 0.5) * self.position(w) + 0.5
    }

    /// Growth in packets per round trip, a(w).
    fn increase(&self, w: f64) -> f64 {
        let HighSpeedConfig { low_p, high_p, .. } = self.config;
        let p = libm::exp(libm::log(low_p) + self.position(w) * libm::log(high_p / low_p));
        let b = self.decrease(w);
        let increase = w * w * p * 2.0 * b / (2.0 - b);
        if self.config.whole_increase { libm::ceil(increase) } else { increase }
    }
}

impl GrowthPolicy for HighSpeed {
    const NAME: &'static str = "highspeed";

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        let cwnd = window.cwnd();
        if cwnd != self.at {
            let w = f64::from(cwnd);
            let standard = w <= self.config.low_window;
            self.increase = if standard { 1.0 } else { self.increase(w).max(1.0) };
            self.at = cwnd;
        }
        window.add_per_window(acked, self.increase);
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        let w = f64::from(window.cwnd());
        let b = if w <= self.config.low_window { 0.5 } else { self.decrease(w) };
        (w * (1.0 - b)) as u32
    }
}
