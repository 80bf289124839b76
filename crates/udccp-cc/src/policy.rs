//! Grows and cuts a window by a policy; the common part of all TCP variants.
//!
//! A variant computes the growth in congestion avoidance and the window after a congestion event.
//! The rest (slow start, bounds, timeouts, changes from outside) is in [`PolicyWindow`].

use core::fmt;

use udccp_base::Instant;

use crate::control::{AckSample, CongestionControl};
use crate::delivery::{Delivery, Needs};
use crate::parts::SlowStart;

/// The window that a policy changes.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    /// In packets, including the fraction.
    packets: f64,
    ssthresh: u32,
    max: u32,
}

impl Window {
    fn new(initial: u32) -> Self {
        Self { packets: f64::from(initial.max(1)), ssthresh: u32::MAX, max: u32::MAX }
    }

    /// The window in whole packets. A rounding error just below a whole number is rounded up.
    pub(crate) fn cwnd(&self) -> u32 {
        (self.packets + 1e-6) as u32
    }

    pub(crate) fn in_slow_start(&self) -> bool {
        self.cwnd() < self.ssthresh
    }

    /// Adds packets, or fractions of one.
    pub(crate) fn grow(&mut self, packets: f64) {
        self.packets += packets;
    }

    /// Slow start by `acked` packets; returns those left over for congestion avoidance.
    pub(crate) fn slow_start(&mut self, acked: u32) -> u32 {
        let (cwnd, rest) = SlowStart::grow(self.cwnd(), self.ssthresh, acked);
        self.packets = f64::from(cwnd);
        rest
    }

    /// Additive increase by `packets` per window of packets acknowledged.
    pub(crate) fn add_per_window(&mut self, acked: u32, packets: f64) {
        self.packets += f64::from(acked) * packets / f64::from(self.cwnd());
    }

    /// Slow start by `per_packet` packets for each acknowledged, up to the threshold.
    pub(crate) fn slow_start_by(&mut self, packets: f64) {
        self.packets = (self.packets + packets).min(f64::from(self.ssthresh));
    }

    /// Sets the window to `packets` (at least 1); the threshold stays.
    pub(crate) fn set_packets(&mut self, packets: f64) {
        self.packets = packets.max(1.0);
    }

    /// The slow start threshold.
    pub(crate) fn ssthresh(&self) -> u32 {
        self.ssthresh
    }

    /// Sets the threshold to `packets` (at least 2).
    pub(crate) fn set_ssthresh(&mut self, packets: u32) {
        self.ssthresh = packets.max(2);
    }

    /// In packets, including the fraction.
    pub(crate) fn packets(&self) -> f64 {
        self.packets
    }

    fn set(&mut self, cwnd: u32, ssthresh: u32) {
        self.packets = f64::from(cwnd.clamp(1, self.max));
        self.ssthresh = ssthresh.max(2);
    }

    fn limit(&mut self) {
        self.packets = self.packets.clamp(1.0, f64::from(self.max));
    }
}

/// The part of window growth that differs between variants.
pub(crate) trait GrowthPolicy: Send + fmt::Debug {
    /// The short name in reports.
    const NAME: &'static str;

    /// What the sender has to provide.
    fn needs(&self) -> Needs {
        Needs::default()
    }

    /// Handles an acknowledgement, in recovery or not.
    fn on_delivery(&mut self, _window: &mut Window, _delivery: &Delivery) {}

    /// Slow start by `acked` packets; returns those left over for congestion avoidance.
    fn slow_start(&mut self, window: &mut Window, _ack: &AckSample, acked: u32) -> u32 {
        window.slow_start(acked)
    }

    /// Congestion avoidance: `acked` packets of a full window were acknowledged.
    fn congestion_avoidance(&mut self, window: &mut Window, ack: &AckSample, acked: u32);

    /// Handles a congestion event; returns the new threshold, which also becomes the window. Also
    /// called before [`GrowthPolicy::on_timeout`], and then sets only the threshold.
    fn ssthresh(&mut self, window: &Window, now: Instant) -> u32;

    /// The timer expired. The threshold has been set, and the window is one packet.
    fn on_timeout(&mut self, _window: &mut Window) {}

    /// The window was set from outside.
    fn on_set(&mut self) {}
}

/// A window that is controlled by a policy.
#[derive(Clone, Debug)]
pub(crate) struct PolicyWindow<P> {
    window: Window,
    policy: P,
}

impl<P: GrowthPolicy> PolicyWindow<P> {
    /// Starts in slow start with `initial_cwnd` packets (at least 1).
    pub(crate) fn new(initial_cwnd: u32, policy: P) -> Self {
        Self { window: Window::new(initial_cwnd), policy }
    }
}

impl<P: GrowthPolicy + Clone + 'static> CongestionControl for PolicyWindow<P> {
    fn name(&self) -> &'static str {
        P::NAME
    }

    fn cwnd(&self) -> u32 {
        self.window.cwnd()
    }

    fn ssthresh(&self) -> u32 {
        self.window.ssthresh
    }

    fn needs(&self) -> Needs {
        self.policy.needs()
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.policy.on_delivery(&mut self.window, delivery);
        self.window.limit();
    }

    fn on_ack(&mut self, ack: &AckSample) {
        if !ack.cwnd_limited {
            return;
        }
        let mut rest = ack.newly_acked;
        if self.window.in_slow_start() {
            rest = self.policy.slow_start(&mut self.window, ack, rest);
        }
        if rest > 0 && !self.window.in_slow_start() {
            self.policy.congestion_avoidance(&mut self.window, ack, rest);
        }
        self.window.limit();
    }

    fn may_pace(&self) -> bool {
        false
    }

    fn on_congestion_event(&mut self, now: Instant, _in_flight: u32) {
        let ssthresh = self.policy.ssthresh(&self.window, now);
        self.window.set(ssthresh.max(2), ssthresh);
    }

    fn on_rto(&mut self, now: Instant, _in_flight: u32) {
        let ssthresh = self.policy.ssthresh(&self.window, now);
        self.window.set(1, ssthresh);
        self.policy.on_timeout(&mut self.window);
    }

    fn set_window(&mut self, _now: Instant, cwnd: u32, ssthresh: u32) {
        self.window.set(cwnd, ssthresh);
        self.policy.on_set();
    }

    fn clamp(&mut self, max_cwnd: u32) {
        self.window.max = max_cwnd.max(1);
        self.window.limit();
    }
}
