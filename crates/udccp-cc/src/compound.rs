//! Compound TCP: NewReno's window plus a second one that grows while delay is low.
//!
//! K. Tan, J. Song, Q. Zhang, M. Sridharan, "A Compound TCP Approach for High-Speed and Long
//! Distance Networks", INFOCOM 2006, equations 3 to 7, and draft-sridharan-tcpm-ctcp-02. The window
//! is `win = cwnd + dwnd`; `cwnd` grows by `1 / win` for every packet acknowledged, and once per
//! round trip, with `diff = win (RTT - baseRTT) / RTT`,
//!
//! ```text
//! dwnd = dwnd + max(alpha win^k - 1, 0)         diff < gamma
//!        max(dwnd - zeta diff, 0)               diff >= gamma
//!        max(win (1 - beta) - cwnd / 2, 0)      at a congestion event, where cwnd is halved
//! ```
//!
//! In slow start, and after a timeout, `dwnd` is zero. The threshold gamma is constant as in the
//! paper; the draft's adaptive gamma is not implemented.

use udccp_base::Instant;

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::policy::{GrowthPolicy, Window};
use crate::queue_delay::{QueueDelay, Round, Verdict};

/// Parameters of Compound TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct CompoundConfig {
    /// Factor of the growth of `dwnd`.
    pub alpha: f64,
    /// Share of the window that is cut at a congestion event, 0 to 1.
    pub beta: f64,
    /// Exponent of the growth of `dwnd`, a multiple of a quarter.
    pub k: f64,
    /// Queue in packets from which on `dwnd` shrinks.
    pub gamma: f64,
    /// How fast it shrinks with the number of packets queued.
    pub zeta: f64,
}

impl Default for CompoundConfig {
    /// alpha 1/8, beta 1/2, k 3/4, gamma 30 packets, zeta 1.
    fn default() -> Self {
        Self { alpha: 0.125, beta: 0.5, k: 0.75, gamma: 30.0, zeta: 1.0 }
    }
}

/// The state of Compound TCP.
#[derive(Clone, Debug)]
pub(crate) struct Compound {
    config: CompoundConfig,
    delay: QueueDelay,
    /// The delay-based part of the window, in packets.
    dwnd: f64,
}

impl Compound {
    pub(crate) fn new(config: CompoundConfig) -> Self {
        Self { config, delay: QueueDelay::default(), dwnd: 0.0 }
    }

    fn on_round(&mut self, window: &mut Window, round: Round) {
        let CompoundConfig { alpha, k, gamma, zeta, .. } = self.config;
        let win = window.packets();
        let diff = round.queued(win);
        let dwnd = if diff < gamma {
            self.dwnd + (alpha * libm::exp(k * libm::log(win)) - 1.0).max(0.0)
        } else {
            (self.dwnd - zeta * diff).max(0.0)
        };
        window.set_packets(win - self.dwnd + dwnd);
        self.dwnd = dwnd;
    }
}

impl GrowthPolicy for Compound {
    const NAME: &'static str = "compound";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        let verdict = self.delay.on_delivery(delivery);
        let may_judge = delivery.cwnd_limited && !window.in_slow_start();
        if let (Verdict::Over(round), true) = (verdict, may_judge) {
            self.on_round(window, round);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        window.add_per_window(acked, 1.0);
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        let win = window.packets();
        let cwnd = (win - self.dwnd) / 2.0;
        self.dwnd = (win * (1.0 - self.config.beta) - cwnd).max(0.0);
        (cwnd + self.dwnd) as u32
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.dwnd = 0.0;
        self.delay.restart();
    }

    fn on_set(&mut self) {
        self.dwnd = 0.0;
        self.delay.restart();
    }
}
