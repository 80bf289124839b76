//! CUBIC: a window that is a cubic function of the time since the last cut.
//!
//! Three forms share the curve `W(t) = C (t - K)^3 + W_max`: that of kernels 2.6.19 to 2.6.24, the
//! first with CUBIC (L. Xu and I. Rhee, PFLDnet 2005), that of RFC 9438, and that of Linux 6.1,
//! which counts whole packets. All arithmetic is IEEE 754 addition, multiplication and division and
//! `libm`'s cube root, and gives the same bits everywhere.

use udccp_base::{Duration, Instant};

use crate::control::{AckSample, CongestionControl};
use crate::cubic_kernel::Kernel;
use crate::delivery::{Delivery, Needs};
use crate::hystart::{HyStart, Pace, Watch};
use crate::parts::{Cut, SlowStart};

/// The variant of CUBIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CubicForm {
    /// As in kernels 2.6.19 to 2.6.24: the Reno-friendly estimate counts acknowledgements, a
    /// timeout resets all state, and time goes on while the application sends nothing.
    Linux26,
    /// RFC 9438.
    Rfc9438,
    /// As in Linux 6.1: the curve, the Reno-friendly estimate and the window are whole packets, the
    /// window grows by at most one packet for two acknowledged, and the estimate always grows by
    /// 8/15 packets per round trip.
    Linux61,
}

/// Parameters of CUBIC.
#[derive(Clone, Debug, PartialEq)]
pub struct CubicConfig {
    /// The variant.
    pub form: CubicForm,
    /// The scaling constant C in packets per cubic second.
    pub c: f64,
    /// The share of the window that is kept after a congestion event (beta in the RFC; 1 - beta in
    /// 2.6).
    pub cut: Cut,
    /// Reduce the window further if it had not reached its last maximum (RFC 9438 section 4.7).
    pub fast_convergence: bool,
    /// Use NewReno's window where that is larger (RFC 9438 section 4.3).
    pub reno_friendly: bool,
    /// Largest growth in packets per 100 ms of round-trip time (S_max), so that the window grows
    /// linearly when it is far below its last maximum; `None`: no limit.
    pub max_increment: Option<u32>,
    /// In slow start, grow by one packet per acknowledgement, however many packets it acknowledges.
    pub slow_start_counts_acks: bool,
    /// How slow start ends before a loss; `None`: it does not.
    pub hystart: Option<HyStart>,
}

impl CubicConfig {
    /// The defaults of Linux 2.6.22: C = 0.4, 0.8 kept (819/1024), S_max = 16, no HyStart.
    pub const fn linux_2_6() -> Self {
        Self {
            form: CubicForm::Linux26,
            c: 0.4,
            cut: Cut { keep_permille: 800 },
            fast_convergence: true,
            reno_friendly: true,
            max_increment: Some(16),
            slow_start_counts_acks: true,
            hystart: None,
        }
    }

    /// RFC 9438 with standard slow start: C = 0.4, 0.7 kept.
    pub const fn rfc9438() -> Self {
        Self {
            form: CubicForm::Rfc9438,
            c: 0.4,
            cut: Cut { keep_permille: 700 },
            fast_convergence: true,
            reno_friendly: true,
            max_increment: None,
            slow_start_counts_acks: false,
            hystart: None,
        }
    }

    /// The defaults of Linux 6.1: C = 0.4, 0.7 kept, whole packets, HyStart.
    pub const fn linux_6_1() -> Self {
        Self { form: CubicForm::Linux61, ..Self::with_hystart(HyStart::Classic) }
    }

    /// RFC 9438 with HyStart (RFC 9438 section 4.10).
    pub const fn with_hystart(hystart: HyStart) -> Self {
        Self { hystart: Some(hystart), ..Self::rfc9438() }
    }

    fn keep(&self) -> f64 {
        f64::from(self.cut.keep_permille) / 1000.0
    }

    /// Growth per round trip of an additive increase with this cut that is as fast as NewReno
    /// (RFC 9438 section 4.3).
    fn alpha(&self) -> f64 {
        3.0 * (1.0 - self.keep()) / (1.0 + self.keep())
    }
}

impl Default for CubicConfig {
    fn default() -> Self {
        Self::rfc9438()
    }
}

/// One stage of congestion avoidance: the curve since the last cut.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    start: Instant,
    /// The plateau of the curve in packets.
    origin: f64,
    /// Seconds from the start to the plateau.
    k: f64,
    /// The estimate of NewReno's window (W_est), in packets.
    reno: f64,
}

impl Epoch {
    /// RFC 9438 section 4.2, equation 2.
    fn begin(now: Instant, window: f64, w_max: Option<f64>, c: f64) -> Self {
        let origin = w_max.unwrap_or(window).max(window);
        Self { start: now, origin, k: libm::cbrt((origin - window) / c), reno: window }
    }

    /// The curve `t` seconds after the start (RFC 9438 section 4.2, equation 1).
    fn window_at(&self, t: f64, c: f64) -> f64 {
        let from_plateau = t - self.k;
        c * (from_plateau * from_plateau * from_plateau) + self.origin
    }
}

/// A span of less than 292 years in seconds. Signed words are converted with one instruction.
const fn seconds(span: Duration) -> f64 {
    span.as_nanos() as i64 as f64 / 1e9
}

/// The larger of two numbers that are never NaN: one instruction, unlike `f64::max`.
const fn larger(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The smaller, likewise.
const fn smaller(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// CUBIC.
#[derive(Clone, Debug)]
pub struct Cubic {
    config: CubicConfig,
    alpha: f64,
    /// The window in packets, including the fraction.
    window: f64,
    ssthresh: u32,
    max_cwnd: u32,
    /// The window at the last cut, or less with fast convergence; `None` before the first cut and
    /// after a timeout.
    w_max: Option<f64>,
    /// The window before the last change of ssthresh.
    prior: f64,
    epoch: Option<Epoch>,
    last_ack: Instant,
    hystart: Option<Watch>,
    /// Divisor of slow start's growth.
    slowed: u32,
    /// Only for the form of Linux 6.1, which has its own curve.
    kernel: Option<Kernel>,
}

impl Cubic {
    /// Starts in slow start with `initial_cwnd` packets (at least 1).
    pub fn new(initial_cwnd: u32, config: CubicConfig) -> Self {
        Self {
            alpha: config.alpha(),
            hystart: config.hystart.map(Watch::new),
            slowed: 1,
            kernel: (config.form == CubicForm::Linux61).then(|| Kernel::new(config.cut)),
            config,
            window: f64::from(initial_cwnd.max(1)),
            ssthresh: u32::MAX,
            max_cwnd: u32::MAX,
            w_max: None,
            prior: f64::from(initial_cwnd.max(1)),
            epoch: None,
            last_ack: Instant::ZERO,
        }
    }

    /// Congestion avoidance after `acked` packets were acknowledged.
    fn congestion_avoidance(&mut self, ack: &AckSample, acked: u32) {
        if let Some(kernel) = &mut self.kernel {
            self.window += f64::from(kernel.grow(ack.now, self.window as u32, acked));
            return;
        }
        let (window, c) = (self.window, self.config.c);
        let w_max = self.w_max;
        let epoch = self.epoch.get_or_insert_with(|| Epoch::begin(ack.now, window, w_max, c));
        let t = seconds(ack.now - epoch.start);
        self.window = match self.config.form {
            CubicForm::Linux26 => self.linux26(ack, f64::from(acked), t),
            CubicForm::Rfc9438 | CubicForm::Linux61 => self.rfc9438(ack, f64::from(acked), t),
        };
    }

    /// The new window (RFC 9438 sections 4.2 to 4.5).
    fn rfc9438(&mut self, ack: &AckSample, acked: f64, t: f64) -> f64 {
        let (window, c) = (self.window, self.config.c);
        let Some(epoch) = &mut self.epoch else { return window };
        if self.config.reno_friendly {
            let alpha = if epoch.reno >= self.prior { 1.0 } else { self.alpha };
            epoch.reno += alpha * acked / window;
            if epoch.window_at(t, c) < epoch.reno {
                return window.max(epoch.reno);
            }
        }
        let rtt = seconds(ack.srtt.unwrap_or_default());
        let target = epoch.window_at(t + rtt, c).clamp(window, 1.5 * window);
        window + acked * (target - window) / window
    }

    /// The window of the 2.6 kernels grows by one packet for every `count` packets acknowledged.
    fn linux26(&mut self, ack: &AckSample, acked: f64, t: f64) -> f64 {
        let (window, c) = (self.window, self.config.c);
        let Some(epoch) = &mut self.epoch else { return window };
        let min_rtt = seconds(ack.min_rtt.unwrap_or_default());
        let missing = epoch.window_at(t + min_rtt, c) - window;
        // At or above the curve the window still grows slowly.
        let mut count = if missing > 0.0 { window / missing } else { 100.0 * window };
        if let Some(most) = self.config.max_increment.filter(|_| min_rtt > 0.0) {
            count = larger(count, 0.1 * window / (f64::from(most) * min_rtt));
        }
        if self.w_max.is_none() {
            count = 50.0;
        }
        if self.config.reno_friendly {
            // An acknowledgement counts once, however many packets it covers.
            epoch.reno += self.alpha / window;
            let behind = epoch.reno - window;
            if behind >= 1.0 {
                count = smaller(count, window / behind);
            }
        }
        window + acked / larger(count, 1.0)
    }

    /// Stops time for the curve while the window is not used (RFC 9438 section 4.2).
    fn hold_still(&mut self, now: Instant) {
        let silence = now - self.last_ack;
        if let Some(kernel) = &mut self.kernel {
            kernel.hold_still(now, silence);
        } else if let (CubicForm::Rfc9438, Some(epoch)) = (self.config.form, &mut self.epoch) {
            epoch.start += silence;
        }
    }

    fn cut(&mut self) {
        self.slowed = 1;
        let window = self.window;
        self.prior = window;
        self.ssthresh = self.config.cut.apply(self.cwnd()).max(2);
        self.epoch = None;
    }
}

impl CongestionControl for Cubic {
    fn name(&self) -> &'static str {
        "cubic"
    }

    fn cwnd(&self) -> u32 {
        self.window as u32
    }

    fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// A fraction makes no difference, since the threshold has none.
    fn in_slow_start(&self) -> bool {
        self.window < f64::from(self.ssthresh)
    }

    fn needs(&self) -> Needs {
        if self.hystart.is_some() { Needs::DELIVERIES } else { Needs::default() }
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        if let Some((kernel, rtt)) = self.kernel.as_mut().zip(delivery.rtt) {
            kernel.on_rtt(delivery.now, rtt);
        }
        // Only in the first slow start; later ones have a threshold.
        if self.ssthresh < u32::MAX {
            return;
        }
        let cwnd = self.cwnd();
        let pace = self.hystart.as_mut().map(|h| h.on_delivery(cwnd, delivery));
        match pace {
            Some(Pace::Divided(by)) => self.slowed = by,
            Some(Pace::Over) => {
                self.slowed = 1;
                self.ssthresh = cwnd.max(2);
            }
            Some(Pace::Full) | None => self.slowed = 1,
        }
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if ack.cwnd_limited {
            let mut rest = ack.newly_acked;
            let mut avoids = !self.in_slow_start();
            if !avoids {
                let counted = if self.config.slow_start_counts_acks { 1 } else { rest };
                if self.slowed > 1 {
                    self.window += f64::from(counted) / f64::from(self.slowed);
                    rest = 0;
                } else {
                    let (cwnd, unused) = SlowStart::grow(self.cwnd(), self.ssthresh, counted);
                    self.window = f64::from(cwnd);
                    rest = unused;
                }
                avoids = !self.in_slow_start();
            }
            if rest > 0 && avoids {
                self.congestion_avoidance(ack, rest);
            }
            self.window = smaller(self.window, f64::from(self.max_cwnd));
        } else {
            self.hold_still(ack.now);
        }
        self.last_ack = ack.now;
    }

    fn may_pace(&self) -> bool {
        false
    }

    fn on_congestion_event(&mut self, _now: Instant, _in_flight: u32) {
        let window = self.window;
        if let Some(kernel) = &mut self.kernel {
            self.ssthresh = kernel.cut(window as u32, self.config.fast_convergence);
            self.window = f64::from(self.ssthresh);
            self.slowed = 1;
            return;
        }
        // RFC 9438 section 4.7: a window below its last maximum leaves room for others.
        let makes_room = self.config.fast_convergence && self.w_max.is_some_and(|m| window < m);
        let share = if makes_room { (1.0 + self.config.keep()) / 2.0 } else { 1.0 };
        self.w_max = Some(window * share);
        self.cut();
        self.window = f64::from(self.ssthresh);
    }

    fn on_rto(&mut self, _now: Instant, _in_flight: u32) {
        // RFC 9438 section 4.8: the next plateau is the window at which congestion avoidance
        // begins.
        self.cut();
        if let Some(kernel) = &mut self.kernel {
            self.ssthresh = kernel.cut(self.window as u32, self.config.fast_convergence);
            kernel.reset();
        }
        self.w_max = None;
        self.window = 1.0;
    }

    fn set_window(&mut self, _now: Instant, cwnd: u32, ssthresh: u32) {
        self.slowed = 1;
        self.prior = self.window;
        self.window = f64::from(cwnd.clamp(1, self.max_cwnd));
        self.ssthresh = ssthresh.max(2);
        self.epoch = None;
        if let Some(kernel) = &mut self.kernel {
            kernel.restart();
        }
    }

    fn clamp(&mut self, max_cwnd: u32) {
        self.max_cwnd = max_cwnd.max(1);
        self.window = self.window.min(f64::from(self.max_cwnd));
    }
}
