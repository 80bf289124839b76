//! TCP Veno: uses Vegas's estimate of the queue to distinguish congestion losses from radio losses.
//!
//! C. P. Fu, S. C. Liew, "TCP Veno: TCP Enhancement for Transmission Over Wireless Access
//! Networks", IEEE JSAC 21(2), 2003, section II. With `N = W (RTT - baseRTT) / RTT`,
//!
//! ```text
//! N < beta     W grows by one per round trip;  a loss leaves 4/5 of it
//! otherwise    by one in two round trips;      a loss leaves half
//! ```
//!
//! As in the kernels, `RTT` is the newest sample.

use udccp_base::{Duration, Instant};

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::parts::Cut;
use crate::policy::{GrowthPolicy, Window};

/// Parameters of Veno.
#[derive(Clone, Debug, PartialEq)]
pub struct VenoConfig {
    /// If fewer packets are queued, the path is not congested.
    pub beta: f64,
    /// The share of the window that is kept after a loss on a path that is not congested.
    pub random_loss_cut: Cut,
}

impl Default for VenoConfig {
    /// beta 3, 4/5 kept.
    fn default() -> Self {
        Self { beta: 3.0, random_loss_cut: Cut { keep_permille: 800 } }
    }
}

/// Samples before the estimate is used, as in the kernels.
const ENOUGH: u32 = 3;

/// The state of Veno.
#[derive(Clone, Debug)]
pub(crate) struct Veno {
    config: VenoConfig,
    base: Option<Duration>,
    newest: Duration,
    samples: u32,
}

impl Veno {
    pub(crate) fn new(config: VenoConfig) -> Self {
        Self { config, base: None, newest: Duration::ZERO, samples: 0 }
    }

    /// Whether, by the estimate, a window of `cwnd` leaves the path uncongested. `None` without an
    /// estimate; then NewReno's rules apply.
    fn is_free(&self, cwnd: u32) -> Option<bool> {
        let base = self.base.filter(|_| self.samples >= ENOUGH)?.as_secs_f64();
        let rtt = self.newest.as_secs_f64();
        Some(f64::from(cwnd) * (rtt - base) / rtt < self.config.beta)
    }
}

impl GrowthPolicy for Veno {
    const NAME: &'static str = "veno";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, _window: &mut Window, delivery: &Delivery) {
        if let Some(rtt) = delivery.rtt {
            self.base = Some(self.base.map_or(rtt, |b| b.min(rtt)));
            self.newest = rtt;
            self.samples = self.samples.saturating_add(1);
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        let free = self.is_free(window.cwnd()).unwrap_or(true);
        window.add_per_window(acked, if free { 1.0 } else { 0.5 });
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        let cwnd = window.cwnd();
        let free = self.is_free(cwnd).unwrap_or(false);
        if free { self.config.random_loss_cut.apply(cwnd) } else { Cut::HALF.apply(cwnd) }
    }
}
