//! TCP Westwood+: NewReno, but after a loss the window is set from the measured bandwidth.
//!
//! S. Mascolo et al., "TCP Westwood: Bandwidth Estimation for Enhanced Transport over Wireless
//! Links", MobiCom 2001; L. Grieco, S. Mascolo, "Performance evaluation and comparison of
//! Westwood+, New Reno and Vegas TCP congestion control", ACM SIGCOMM CCR 34(2), 2004.
//!
//! ```text
//! once in max(RTT, 50 ms)   b = packets delivered / time
//!                           f1 = 7/8 f1 + 1/8 b;  BWE = 7/8 BWE + 1/8 f1
//! congestion event          ssthresh = W = W / 2 while it is recovered from, and then
//!                           ssthresh = W = max(BWE RTT_min, 2)
//! timeout                   ssthresh = max(BWE RTT_min, 2), W = 1
//! ```
//!
//! The filter of two equal stages, the 50 ms, the new `RTT_min` after a timeout, and setting the
//! window at the end of a recovery are as in the kernels. (The paper of Westwood+ has a filter with
//! variable coefficients and sets the window when the recovery begins.)

use udccp_base::{Duration, Instant};

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::parts::Cut;
use crate::policy::{GrowthPolicy, Window};

/// Parameters of Westwood+.
#[derive(Clone, Debug, PartialEq)]
pub struct WestwoodConfig {
    /// The weight of the old value in each stage of the filter.
    pub memory: f64,
    /// The shortest time over which the bandwidth is measured.
    pub shortest_sample: Duration,
}

impl Default for WestwoodConfig {
    /// Memory 7/8, shortest sample 50 ms.
    fn default() -> Self {
        Self { memory: 0.875, shortest_sample: Duration::from_millis(50) }
    }
}

/// The state of Westwood+.
#[derive(Clone, Debug)]
pub(crate) struct Westwood {
    config: WestwoodConfig,
    packets: u32,
    since: Option<Instant>,
    /// Packets per second after the first and the second stage.
    filtered: Option<(f64, f64)>,
    rtt: Option<Duration>,
    min_rtt: Option<Duration>,
    /// A recovery is in progress; the window is set at its end.
    recovering: bool,
}

impl Westwood {
    pub(crate) fn new(config: WestwoodConfig) -> Self {
        Self {
            config,
            packets: 0,
            since: None,
            filtered: None,
            rtt: None,
            min_rtt: None,
            recovering: false,
        }
    }

    /// The window that matches the measured bandwidth; `None` before the first measurement.
    fn filled(&self) -> Option<u32> {
        let ((_, bandwidth), min_rtt) = self.filtered.zip(self.min_rtt)?;
        Some((bandwidth * min_rtt.as_secs_f64()) as u32)
    }

    fn filter(&mut self, sample: f64) {
        let m = self.config.memory;
        let mix = |old: f64, new: f64| m * old + (1.0 - m) * new;
        self.filtered = Some(match self.filtered {
            None => (sample, sample),
            Some((first, second)) => {
                let first = mix(first, sample);
                (first, mix(second, first))
            }
        });
    }
}

impl GrowthPolicy for Westwood {
    const NAME: &'static str = "westwood";

    fn needs(&self) -> Needs {
        Needs::DELIVERIES
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        if let Some(rtt) = delivery.rtt {
            self.rtt = Some(rtt);
            self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
        }
        let since = *self.since.get_or_insert(delivery.now);
        let span = delivery.now - since;
        if self.rtt.is_some_and(|rtt| span > rtt.max(self.config.shortest_sample)) {
            self.filter(f64::from(self.packets) / span.as_secs_f64());
            (self.packets, self.since) = (0, Some(delivery.now));
        }
        self.packets += delivery.delivered;
        if self.recovering && !delivery.in_recovery {
            self.recovering = false;
            let filled = self.filled().unwrap_or(window.ssthresh());
            window.set_ssthresh(filled);
            window.set_packets(f64::from(window.ssthresh()));
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) {
        window.add_per_window(acked, 1.0);
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        self.recovering = true;
        Cut::HALF.apply(window.cwnd())
    }

    fn on_timeout(&mut self, window: &mut Window) {
        self.recovering = false;
        if let Some(filled) = self.filled() {
            window.set_ssthresh(filled);
        }
        self.min_rtt = None;
    }
}
