//! BIC: a window that searches for the capacity of the path between two bounds.
//!
//! L. Xu, K. Harfoush, I. Rhee, "Binary Increase Congestion Control (BIC) for Fast Long-Distance
//! Networks", INFOCOM 2004, in the form of the 2.6 kernels, whose default it was until 2.6.18.
//!
//! With `W_max` the window of the last congestion event, a window `W` grows every round trip by
//!
//! | where | growth |
//! |---|---|
//! | `W <= low_window` | 1 |
//! | `(W_max - W) / B > S_max` | `S_max` (additive increase) |
//! | below `W_max` | `(W_max - W) / B` (binary search) |
//! | within 2 B below and B above `W_max` | `B / smooth_part` |
//! | up to `W_max + (B - 1) S_max` | `(W - W_max) / (B - 1)` (max probing) |
//! | beyond | `S_max` |
//!
//! and a congestion event leaves `beta W`. Divisions are integer divisions as in the kernels. The
//! kernels multiply growth by their estimate of packets per acknowledgement. Until 3.17 they
//! counted acknowledgements, so in effect packets counted, as here by default. Since 3.18 they
//! count packets and still multiply, which doubles the growth of the table above `low_window`
//! ([`BicConfig::linux_6_1`]).

use udccp_base::Instant;

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::parts::{Cut, Ticks, WholePackets};
use crate::policy::{GrowthPolicy, Window};

/// Parameters of BIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BicConfig {
    /// Largest growth in packets per round trip (`S_max`).
    pub max_increment: u32,
    /// Up to this window, in packets, growth and cut are those of NewReno.
    pub low_window: u32,
    /// Binary search covers one part in `b` of the distance per round trip; 2 in the paper, 4 in
    /// the kernels (`BICTCP_B`).
    pub b: u32,
    /// Round trips in which the window grows by `b` packets around the last maximum.
    pub smooth_part: u32,
    /// The share of the window that is kept after a congestion event (1 - beta in the paper).
    pub cut: Cut,
    /// Reduce the window further if it had not reached its last maximum.
    pub fast_convergence: bool,
    /// Before the first congestion event, and after a timeout, the window grows by at least one
    /// packet per this many acknowledged (20: 5 % per round trip).
    pub unknown_count: u32,
    /// Above `low_window`, multiply growth by the packets per acknowledgement: a moving average of
    /// weight 1/16 that starts at 2, in whole sixteenths (kernels since 3.18).
    pub times_ack_ratio: bool,
}

impl BicConfig {
    /// The defaults of Linux 2.6.22: `S_max` 16, low window 14, B 4, 819/1024 kept.
    pub const fn linux_2_6() -> Self {
        Self {
            max_increment: 16,
            low_window: 14,
            b: 4,
            smooth_part: 20,
            cut: Cut { keep_permille: 800 },
            fast_convergence: true,
            unknown_count: 20,
            times_ack_ratio: false,
        }
    }

    /// The defaults of Linux 6.1, unchanged since 3.18.
    pub const fn linux_6_1() -> Self {
        Self { times_ack_ratio: true, ..Self::linux_2_6() }
    }
}

impl Default for BicConfig {
    fn default() -> Self {
        Self::linux_2_6()
    }
}

/// The unit and the averaging length of the packets per acknowledgement.
const SIXTEENTHS: u32 = 16;

/// The state of BIC.
#[derive(Clone, Debug)]
pub(crate) struct Bic {
    config: BicConfig,
    /// The window at the last congestion event, or less with fast convergence; 0 before the first.
    w_max: u32,
    /// Packets per acknowledgement, in sixteenths.
    ack_ratio: u32,
    whole: WholePackets,
    /// Linux's result for a window, kept while the window does not change.
    kept: Option<Kept>,
}

/// The growth for one window.
#[derive(Clone, Copy, Debug)]
struct Kept {
    window: u32,
    tick: u64,
    count: u32,
}

/// Ticks for which the growth of a window is kept (`HZ / 32`).
const KEPT_TICKS: u64 = Ticks::PER_SECOND / 32;

impl Bic {
    pub(crate) fn new(config: BicConfig) -> Self {
        Self {
            config,
            w_max: 0,
            ack_ratio: 2 * SIXTEENTHS,
            whole: WholePackets::default(),
            kept: None,
        }
    }

    /// Packets to be acknowledged per packet of growth.
    fn count(&self, cwnd: u32) -> u32 {
        let BicConfig { max_increment, low_window, b, smooth_part, .. } = self.config;
        if cwnd <= low_window {
            return cwnd;
        }
        let smooth = cwnd * smooth_part / b;
        let count = if cwnd < self.w_max {
            match (self.w_max - cwnd) / b {
                step if step > max_increment => cwnd / max_increment,
                0 | 1 => smooth,
                step => cwnd / step,
            }
        } else {
            match cwnd - self.w_max {
                beyond if beyond < b => smooth,
                beyond if beyond < max_increment * (b - 1) => cwnd * (b - 1) / beyond,
                _ => cwnd / max_increment,
            }
        };
        let most = if self.w_max == 0 { self.config.unknown_count } else { u32::MAX };
        count.min(most).max(1)
    }

    /// The same in Linux since 3.18, which does not apply the ratio to a small window.
    fn count_by_ratio(&self, cwnd: u32) -> u32 {
        let count = self.count(cwnd);
        if cwnd <= self.config.low_window {
            return count;
        }
        (count.saturating_mul(SIXTEENTHS) / self.ack_ratio.max(1)).max(1)
    }
}

impl GrowthPolicy for Bic {
    const NAME: &'static str = "bic";

    fn needs(&self) -> Needs {
        if self.config.times_ack_ratio { Needs::DELIVERIES } else { Needs::default() }
    }

    fn on_delivery(&mut self, _window: &mut Window, delivery: &Delivery) {
        if delivery.was_in_order {
            let sixteenth = self.ack_ratio / SIXTEENTHS;
            self.ack_ratio = self.ack_ratio + delivery.advanced - sixteenth;
        }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, ack: &AckSample, acked: u32) {
        let cwnd = window.cwnd();
        if !self.config.times_ack_ratio {
            window.grow(f64::from(acked) / f64::from(self.count(cwnd)));
            return;
        }
        let tick = Ticks::at(ack.now);
        let is_kept = |k: &Kept| k.window == cwnd && tick - k.tick <= KEPT_TICKS;
        let count = match self.kept.filter(is_kept) {
            Some(kept) => kept.count,
            None => self.count_by_ratio(cwnd),
        };
        if self.kept.is_none_or(|k| !is_kept(&k)) {
            self.kept = Some(Kept { window: cwnd, tick, count });
        }
        window.grow(f64::from(self.whole.grow(count, acked)));
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        let (cwnd, cut) = (window.cwnd(), self.config.cut);
        self.whole.reset();
        let makes_room = self.config.fast_convergence && cwnd < self.w_max;
        if self.config.times_ack_ratio {
            let beta = cut.in_1024ths();
            self.w_max = if makes_room { cwnd * (1024 + beta) / 2048 } else { cwnd };
            let is_small = cwnd <= self.config.low_window;
            return if is_small { cwnd / 2 } else { cwnd * beta / 1024 }.max(2);
        }
        let midway = Cut { keep_permille: (1000 + cut.keep_permille) / 2 };
        self.w_max = if makes_room { midway.apply(cwnd) } else { cwnd };
        let cut = if cwnd <= self.config.low_window { Cut::HALF } else { cut };
        cut.apply(cwnd).max(2)
    }

    fn on_timeout(&mut self, _window: &mut Window) {
        self.w_max = 0;
        self.ack_ratio = 2 * SIXTEENTHS;
        self.kept = None;
    }
}
