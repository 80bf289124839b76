//! YeAH-TCP: Scalable TCP while the queue is short, otherwise NewReno with removal of the queue.
//!
//! A. Baiocchi, A. Castellani, F. Vacirca, "YeAH-TCP: Yet Another Highspeed TCP", PFLDnet 2007.
//! Once per round trip, with `Q = W (RTT - baseRTT) / RTT` and `L = (RTT - baseRTT) / baseRTT`,
//!
//! ```text
//! Q < alpha and L < 1 / phi    fast mode: Scalable TCP's growth
//! otherwise                    slow mode: NewReno's growth, and where Q > alpha the window
//!                              gives up min(Q / gamma, W / 2), but not below what NewReno has
//! congestion event             W - min(max(W / 8, Q), W / 2);  W / 2 where slow mode has lasted
//!                              rho rounds: the path is shared with greedy flows
//! ```
//!
//! `reno_count` estimates the window of a NewReno flow. It grows by one per round of slow mode and
//! is reset after `zeta` rounds of fast mode. Form and constants are the kernels'.

use udccp_base::Instant;

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::policy::{GrowthPolicy, Window};
use crate::queue_delay::{QueueDelay, Round, Verdict};

/// Parameters of YeAH.
#[derive(Clone, Debug, PartialEq)]
pub struct YeahConfig {
    /// Most packets queued in fast mode (`Q_max`).
    pub alpha: f64,
    /// One part in gamma of the queue is given up at once.
    pub gamma: f64,
    /// Smallest share of the window that is cut at a congestion event.
    pub delta: f64,
    /// Largest share of the window that is given up at once.
    pub epsilon: f64,
    /// Fast mode requires a queueing delay below one part in phi of the base round-trip time.
    pub phi: f64,
    /// Rounds of slow mode after which a congestion event halves the window, as in NewReno.
    pub rho: u32,
    /// Rounds of fast mode after which the estimate of the NewReno flow is reset.
    pub zeta: u32,
    /// Growth in fast mode for every packet acknowledged (a of Scalable TCP).
    pub scalable_a: f64,
}

impl Default for YeahConfig {
    fn default() -> Self {
        Self {
            alpha: 80.0,
            gamma: 1.0,
            delta: 0.125,
            epsilon: 0.5,
            phi: 8.0,
            rho: 16,
            zeta: 50,
            scalable_a: 0.01,
        }
    }
}

/// The state of YeAH.
#[derive(Clone, Debug)]
pub(crate) struct Yeah {
    config: YeahConfig,
    delay: QueueDelay,
    /// Packets queued in the last round (Q).
    queued: f64,
    /// Consecutive rounds of slow mode.
    slow_rounds: u32,
    fast_rounds: u32,
    /// The estimate of NewReno's window in packets.
    reno_count: u32,
}

impl Yeah {
    pub(crate) fn new(config: YeahConfig) -> Self {
        let delay = QueueDelay::default();
        Self { config, delay, queued: 0.0, slow_rounds: 0, fast_rounds: 0, reno_count: 2 }
    }

    fn on_round(&mut self, window: &mut Window, round: Round) {
        let YeahConfig { alpha, gamma, epsilon, phi, zeta, .. } = self.config;
        let cwnd = f64::from(window.cwnd());
        let queued = round.queued(cwnd);
        self.queued = queued;
        if queued <= alpha && round.rtt - round.base <= round.base / phi {
            self.slow_rounds = 0;
            self.fast_rounds += 1;
            if self.fast_rounds > zeta {
                (self.reno_count, self.fast_rounds) = (2, 0);
            }
            return;
        }
        if queued > alpha && window.cwnd() > self.reno_count {
            let less = cwnd - (queued / gamma).min(cwnd * epsilon);
            window.set_packets(less.max(f64::from(self.reno_count)));
            window.set_ssthresh(window.cwnd());
        }
        self.reno_count = match self.reno_count {
            0..=2 => (window.cwnd() / 2).max(2),
            more => more + 1,
        };
        self.slow_rounds += 1;
    }
}

impl GrowthPolicy for Yeah {
    const NAME: &'static str = "yeah";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        if let Verdict::Over(round) = self.delay.on_delivery(delivery) {
            self.on_round(window, round);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        if self.slow_rounds > 0 {
            window.add_per_window(acked, 1.0);
        } else {
            let standard = 1.0 / f64::from(window.cwnd());
            window.grow(f64::from(acked) * self.config.scalable_a.max(standard));
        }
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        let cwnd = f64::from(window.cwnd());
        let half = (cwnd / 2.0).max(2.0);
        let less = if self.slow_rounds < self.config.rho {
            self.queued.min(half).max(cwnd * self.config.delta)
        } else {
            half
        };
        self.fast_rounds = 0;
        self.reno_count = (self.reno_count / 2).max(2);
        // In whole packets, as in the kernels: an eighth of 15 is one.
        (cwnd - libm::floor(less)).max(2.0) as u32
    }

    fn on_set(&mut self) {
        self.delay.restart();
    }
}
