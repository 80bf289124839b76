//! TCP Hybla: long paths grow as fast as a reference path of 25 ms.
//!
//! C. Caini, R. Firrincieli, "TCP Hybla: a TCP Enhancement for Heterogeneous Networks", Int. J. of
//! Satellite Communications and Networking 22, 2004, equation 9. With `rho = max(RTT / RTT0, 1)`,
//! for every packet acknowledged
//!
//! ```text
//! slow start              W = W + 2^rho - 1
//! congestion avoidance    W = W + rho^2 / W
//! ```
//!
//! so that the window in packets per second follows that of a NewReno flow with RTT0. As in the
//! kernels, `rho` follows the smallest smoothed round-trip time, and slow start after a timeout is
//! NewReno's. The paper's estimate of the first threshold and its pacing are not included. The
//! exponent is at most 16. Without these two limits, the window overshoots on long paths: at 200 ms
//! `rho` is 8, and every packet acknowledged in the first slow start adds 255.

use udccp_base::{Duration, Instant};

use crate::control::AckSample;
use crate::parts::Cut;
use crate::policy::{GrowthPolicy, Window};

/// Parameters of Hybla.
#[derive(Clone, Debug, PartialEq)]
pub struct HyblaConfig {
    /// The reference round-trip time (RTT0).
    pub rtt0: Duration,
    /// Largest exponent in slow start.
    pub max_exponent: f64,
}

impl Default for HyblaConfig {
    fn default() -> Self {
        Self { rtt0: Duration::from_millis(25), max_exponent: 16.0 }
    }
}

/// The state of Hybla.
#[derive(Clone, Debug)]
pub(crate) struct Hybla {
    config: HyblaConfig,
    srtt: Duration,
    rho: f64,
    /// Growth in slow start per packet acknowledged.
    slow_start: f64,
    /// Whether a timeout occurred and the threshold is not reached yet: the path is known to be
    /// full.
    after_timeout: bool,
}

impl Hybla {
    pub(crate) fn new(config: HyblaConfig) -> Self {
        Self { config, srtt: Duration::MAX, rho: 1.0, slow_start: 1.0, after_timeout: false }
    }

    fn follow(&mut self, ack: &AckSample) {
        if let Some(srtt) = ack.srtt.filter(|srtt| *srtt < self.srtt) {
            self.srtt = srtt;
            self.rho = (srtt.as_secs_f64() / self.config.rtt0.as_secs_f64()).max(1.0);
            self.slow_start = libm::exp2(self.rho.min(self.config.max_exponent)) - 1.0;
        }
    }
}

impl GrowthPolicy for Hybla {
    const NAME: &'static str = "hybla";

    fn slow_start(&mut self, window: &mut Window, ack: &AckSample, acked: u32) -> u32 {
        self.follow(ack);
        if self.after_timeout {
            return window.slow_start(acked);
        }
        window.slow_start_by(f64::from(acked) * self.slow_start);
        0
    }

    fn congestion_avoidance(&mut self, window: &mut Window, ack: &AckSample, acked: u32) {
        self.follow(ack);
        self.after_timeout = false;
        window.add_per_window(acked, self.rho * self.rho);
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        Cut::HALF.apply(window.cwnd())
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.after_timeout = true;
    }

    fn on_set(&mut self) {
        self.after_timeout = false;
    }
}
