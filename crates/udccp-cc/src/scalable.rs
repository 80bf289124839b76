//! Scalable TCP: growth and cut are both proportional to the window.
//!
//! T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area Networks", ACM SIGCOMM
//! CCR 33(2), 2003, section 2:
//!
//! ```text
//! for every packet acknowledged    W = W + a,  but 1 / W where that is more
//! congestion event                 W = W - b W
//! ```
//!
//! so that the time from a cut back to the old window, `log(1 / (1 - b)) / log(1 + a)` round trips,
//! is the same for all windows. Kernels up to 5.14 counted acknowledgements instead of packets and
//! had `a` = 1/50 ("to account for delayed ack"): the same growth if every second packet is
//! acknowledged, twice as much if each is. As in the kernels, the amount cut is rounded down: 4 of
//! 35 packets, which gives a tenth more throughput at that window.

use udccp_base::Instant;

use crate::control::AckSample;
use crate::parts::Cut;
use crate::policy::{GrowthPolicy, Window};

/// Parameters of Scalable TCP.
#[derive(Clone, Debug, PartialEq)]
pub struct ScalableConfig {
    /// Growth in packets for every packet acknowledged (a in the paper), or for every
    /// acknowledgement if the sender counts those.
    pub a: f64,
    /// The share of the window that is kept after a congestion event (1 - b).
    pub cut: Cut,
}

impl Default for ScalableConfig {
    /// a = 0.01, b = 0.125.
    fn default() -> Self {
        Self { a: 0.01, cut: Cut { keep_permille: 875 } }
    }
}

impl ScalableConfig {
    /// As in Linux 2.6 (`TCP_SCALABLE_AI_CNT` = 50): a = 0.02 for every acknowledgement, which the
    /// sender has to count.
    pub const fn linux_2_6() -> Self {
        Self { a: 0.02, cut: Cut { keep_permille: 875 } }
    }
}

/// The state of Scalable TCP: none.
#[derive(Clone, Debug)]
pub(crate) struct Scalable {
    config: ScalableConfig,
}

impl Scalable {
    pub(crate) fn new(config: ScalableConfig) -> Self {
        Self { config }
    }
}

impl GrowthPolicy for Scalable {
    const NAME: &'static str = "scalable";

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        let standard = 1.0 / f64::from(window.cwnd());
        window.grow(f64::from(acked) * self.config.a.max(standard));
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        let cwnd = window.cwnd();
        let lost = Cut { keep_permille: 1000_u32.saturating_sub(self.config.cut.keep_permille) };
        (cwnd - lost.apply(cwnd)).max(2)
    }
}
