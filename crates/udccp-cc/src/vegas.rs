//! TCP Vegas: keeps a few packets in the queue.
//!
//! L. Brakmo, L. Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE
//! JSAC 13(8), 1995, section III. Once per round trip, with `Diff = W (RTT - baseRTT) / RTT` the
//! packets in queues,
//!
//! ```text
//! slow start              ends where Diff > gamma, at W = W baseRTT / RTT + 1
//! congestion avoidance    W = W + 1 where Diff < alpha;  W - 1 where Diff > beta
//! ```
//!
//! As in the kernels: slow start doubles the window in every round trip, not in every other one;
//! `RTT` is the smallest sample of the round; losses are handled as in NewReno (the paper has finer
//! timers and a cut of a quarter); and rounds with fewer than three samples grow as in NewReno.

use udccp_base::Instant;

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::parts::{Cut, THREE_QUARTERS};
use crate::policy::{GrowthPolicy, Window};
use crate::queue_delay::{QueueDelay, Round, Verdict};

/// Parameters of Vegas, in packets.
#[derive(Clone, Debug, PartialEq)]
pub struct VegasConfig {
    /// If fewer packets are queued, the window grows.
    pub alpha: f64,
    /// If more packets are queued, the window shrinks.
    pub beta: f64,
    /// If more packets are queued, slow start ends.
    pub gamma: f64,
}

impl Default for VegasConfig {
    /// alpha 2, beta 4, gamma 1 (the kernels'; the paper tried 1 to 3 and 2 to 4).
    fn default() -> Self {
        Self { alpha: 2.0, beta: 4.0, gamma: 1.0 }
    }
}

/// The state of Vegas.
#[derive(Clone, Debug)]
pub(crate) struct Vegas {
    config: VegasConfig,
    delay: QueueDelay,
    /// The last round had too few samples: grow like NewReno.
    unknown: bool,
}

impl Vegas {
    pub(crate) fn new(config: VegasConfig) -> Self {
        Self { config, delay: QueueDelay::default(), unknown: false }
    }

    fn adjust(&self, window: &mut Window, round: Round, cwnd_limited: bool) {
        let VegasConfig { alpha, beta, gamma } = self.config;
        let cwnd = f64::from(window.cwnd());
        let diff = round.queued(cwnd);
        if window.in_slow_start() {
            if diff <= gamma {
                return;
            }
            window.set_packets((cwnd * round.base / round.rtt + 1.0).min(cwnd).max(2.0));
            window.set_ssthresh(window.ssthresh().min(window.cwnd()));
        } else if diff > beta {
            window.set_packets((cwnd - 1.0).max(2.0));
            window.set_ssthresh(window.ssthresh().min(window.cwnd()));
        } else if diff < alpha && cwnd_limited {
            window.set_packets(cwnd + 1.0);
        }
        let ssthresh = window.ssthresh().max(THREE_QUARTERS.apply(window.cwnd()));
        window.set_ssthresh(ssthresh);
    }
}

impl GrowthPolicy for Vegas {
    const NAME: &'static str = "vegas";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        match self.delay.on_delivery(delivery) {
            Verdict::Pending => {}
            Verdict::Unknown => self.unknown = true,
            Verdict::Over(round) => {
                self.unknown = false;
                self.adjust(window, round, delivery.cwnd_limited);
            }
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        if self.unknown {
            window.add_per_window(acked, 1.0);
        }
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        Cut::HALF.apply(window.cwnd())
    }

    fn on_set(&mut self) {
        self.delay.restart();
    }
}
