//! TCP-LP: low priority; uses only capacity that other flows leave unused.
//!
//! A. Kuzmanovic, E. Knightly, "TCP-LP: low-priority service via end-point congestion control",
//! IEEE/ACM ToN 14(4), 2006 (INFOCOM 2003), sections III and IV. With `d` the smoothed one-way
//! delay and its extremes, congestion shows early where
//!
//! ```text
//! d > d_min + delta (d_max - d_min)
//! ```
//!
//! The first indication halves the window and begins an inference phase of `itti` = 3 RTT, in
//! which the window does not grow; another one within it leaves a window of one packet and begins
//! the phase again. Otherwise NewReno.
//!
//! Known differences: an indication within a round trip of the last one belongs to the same
//! congestion event (the kernels change the extremes, with the same effect). The threshold falls
//! with the window at the first indication, so that slow start does not cause the next one (the
//! kernels do not change it). One-way delays are timestamp differences with a resolution of one
//! millisecond; without timestamps the round-trip time is used. The acknowledgement of a single
//! packet in flight is ignored, the smaller of two samples is used, and the first slow start
//! continues until a loss, to measure `d_max`.

use udccp_base::{Duration, Instant};

use crate::control::AckSample;
use crate::delivery::{Delivery, Needs};
use crate::parts::Cut;
use crate::policy::{GrowthPolicy, Window};

/// Parameters of TCP-LP.
#[derive(Clone, Debug, PartialEq)]
pub struct LpConfig {
    /// Share of the range of delays that counts as congestion (delta).
    pub delta: f64,
    /// Weight of a new sample in the smoothed delay (gamma).
    pub gamma: f64,
    /// Length of the inference phase in round trips (itti).
    pub inference_rtts: u64,
}

impl Default for LpConfig {
    /// delta 0.15, gamma 1/8, 3 round trips.
    fn default() -> Self {
        Self { delta: 0.15, gamma: 0.125, inference_rtts: 3 }
    }
}

/// The state of TCP-LP.
#[derive(Clone, Debug)]
pub(crate) struct Lp {
    config: LpConfig,
    /// The first timestamp difference; the others are relative to it.
    reference: Option<u32>,
    delay: Option<Delay>,
    newest: f64,
    last_indication: Option<Instant>,
    rtt: Duration,
}

/// One-way delays in milliseconds, plus an unknown constant.
#[derive(Clone, Copy, Debug)]
struct Delay {
    smoothed: f64,
    min: f64,
    max: f64,
}

impl Lp {
    pub(crate) fn new(config: LpConfig) -> Self {
        Self {
            config,
            reference: None,
            delay: None,
            newest: f64::INFINITY,
            last_indication: None,
            rtt: Duration::ZERO,
        }
    }

    fn delay_of(&mut self, delivery: &Delivery) -> Option<f64> {
        match delivery.one_way_ticks {
            Some(ticks) => {
                let reference = *self.reference.get_or_insert(ticks);
                Some(f64::from(ticks.wrapping_sub(reference) as i32))
            }
            None => delivery.rtt.map(Duration::as_millis_f64),
        }
    }

    fn observe(&mut self, sample: f64) -> bool {
        let LpConfig { delta, gamma, .. } = self.config;
        // One of two samples may include the receiver's delay.
        let before = core::mem::replace(&mut self.newest, sample);
        let sample = sample.min(before);
        let first = Delay { smoothed: sample, min: sample, max: sample };
        let d = self.delay.get_or_insert(first);
        d.min = d.min.min(sample);
        d.max = d.max.max(sample);
        d.smoothed += gamma * (sample - d.smoothed);
        d.smoothed > d.min + delta * (d.max - d.min)
    }

    fn since_indication(&self, now: Instant) -> Option<Duration> {
        self.last_indication.map(|at| now - at)
    }

    fn in_inference(&self, now: Instant) -> bool {
        let phase = self.rtt * self.config.inference_rtts;
        self.since_indication(now).is_some_and(|since| since < phase)
    }
}

impl GrowthPolicy for Lp {
    const NAME: &'static str = "lp";

    fn needs(&self) -> Needs {
        Needs { one_way: true, ..Needs::DELIVERIES }
    }

    fn on_delivery(&mut self, window: &mut Window, delivery: &Delivery) {
        // The acknowledgement of a single packet may include the receiver's delay.
        if delivery.acked == 0 || delivery.in_flight == 0 {
            return;
        }
        self.rtt = delivery.srtt.unwrap_or(self.rtt);
        let Some(sample) = self.delay_of(delivery) else { return };
        let congested = self.observe(sample);
        // The first slow start measures the maximum delay. Until it ends at a loss, any increase
        // would look like congestion.
        let learning = window.ssthresh() == u32::MAX;
        let same = self.since_indication(delivery.now).is_some_and(|since| since < self.rtt);
        if !congested || learning || same || delivery.in_recovery {
            return;
        }
        if self.in_inference(delivery.now) {
            window.set_packets(1.0);
        } else {
            let half = Cut::HALF.apply(window.cwnd());
            window.set_ssthresh(half);
            window.set_packets(f64::from(half));
        }
        self.last_indication = Some(delivery.now);
    }

    fn slow_start(&mut self, window: &mut Window, ack: &AckSample, acked: u32) -> u32 {
        if self.in_inference(ack.now) { 0 } else { window.slow_start(acked) }
    }

    fn congestion_avoidance(&mut self, window: &mut Window, ack: &AckSample, acked: u32) {
        if !self.in_inference(ack.now) {
            window.add_per_window(acked, 1.0);
        }
    }

    fn ssthresh(&mut self, window: &Window, _now: Instant) -> u32 {
        Cut::HALF.apply(window.cwnd())
    }
}
