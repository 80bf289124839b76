//! BBR v1: paces at the measured bandwidth and keeps about the path's capacity in flight.
//!
//! N. Cardwell et al., "BBR: Congestion-Based Congestion Control", ACM Queue 14(5), 2016;
//! draft-cardwell-iccrg-bbr-congestion-control-00; samples by
//! draft-cheng-iccrg-delivery-rate-estimation-00.
//!
//! ```text
//! BtlBw  = largest delivery rate of the last 10 rounds
//! RTprop = smallest round-trip time of the last 10 s
//! rate   = pacing_gain BtlBw (less 1 %)        cwnd = cwnd_gain BtlBw RTprop + 3 packets
//!
//! STARTUP    gains 739/256 (2 / ln 2), until BtlBw grew by less than 25 % in three rounds
//! DRAIN      pacing gain 88/256, until no more is in flight than BtlBw RTprop
//! PROBE_BW   pacing gains 5/4, 3/4 and six times 1, an RTprop each; cwnd gain 2
//! PROBE_RTT  4 packets for 200 ms and a round, where RTprop was not met for 10 s
//! ```
//!
//! Losses do not reduce the window: in the first round of a recovery packets are conserved, then
//! the window returns to its target, and at the end its earlier value is restored. The detection of
//! policers (long-term sampling) of the kernels is left out. Later additions of kernels are
//! settings of [`BbrConfig`], and room for bursts of segmentation offload is `set_trains`. The
//! first phase of PROBE_BW is derived from the time at which it begins, so that flows differ but
//! runs can be repeated.

mod bursts;
mod config;
mod filter;
mod path;
#[cfg(test)]
mod tests;

pub use config::BbrConfig;

use udccp_base::{DataRate, Duration, Instant, Seed};

use crate::control::{AckSample, CongestionControl};
use crate::delivery::{Delivery, Needs};
use crate::pacer::train_of;
use crate::rate::whole_micros;
use bursts::ExtraAcked;
use filter::WindowedMax;
use path::parts;

/// Up to this many packets, the window grows regardless of the estimate (`TCP_INIT_CWND`).
const FIRST_PACKETS: u64 = 10;

/// The states of BBR (draft section 3.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// A visit to PROBE_RTT.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    /// The time at which the window had drained.
    drained_at: Option<Instant>,
    round_done: bool,
}

/// BBR v1.
#[derive(Clone, Debug)]
pub(crate) struct Bbr {
    config: BbrConfig,
    mode: Mode,
    cwnd: u32,
    max_cwnd: u32,
    /// The window before a recovery or a visit to PROBE_RTT.
    prior_cwnd: u32,
    bandwidth: WindowedMax,
    packet_bytes: u32,
    round: u64,
    round_start: bool,
    /// The round ends with the delivery of a packet that was sent after this many delivered bytes.
    round_end: u64,
    delivered: u64,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    full_bandwidth: u64,
    full_count: u32,
    full: bool,
    phase: usize,
    phase_began: Instant,
    /// The time of the last delivery, in whole microseconds.
    delivered_at: Instant,
    /// The gain of the rate since the last acknowledgement.
    gain: u64,
    probe: Probe,
    /// Samples of packets sent at these counts of delivered bytes are limited by PROBE_RTT's
    /// window.
    probed: Option<(u64, u64)>,
    in_recovery: bool,
    conserve: bool,
    idle_restart: bool,
    /// Bursts of acknowledgements.
    bursts: ExtraAcked,
    /// Bytes per second; `None` before the first round-trip time.
    rate: Option<u64>,
    /// Largest number of packets that leave at once.
    max_train: u32,
}

impl Bbr {
    /// Starts in STARTUP with `initial_cwnd` packets (at least 1).
    pub(crate) fn new(initial_cwnd: u32, config: BbrConfig) -> Self {
        Self {
            config,
            mode: Mode::Startup,
            cwnd: initial_cwnd.max(1),
            max_cwnd: u32::MAX,
            prior_cwnd: 0,
            bandwidth: WindowedMax::default(),
            packet_bytes: 1,
            round: 0,
            round_start: false,
            round_end: 0,
            delivered: 0,
            min_rtt: None,
            min_rtt_at: Instant::ZERO,
            full_bandwidth: 0,
            full_count: 0,
            full: false,
            phase: 0,
            phase_began: Instant::ZERO,
            delivered_at: Instant::ZERO,
            gain: 0,
            probe: Probe::default(),
            probed: None,
            in_recovery: false,
            conserve: false,
            idle_restart: false,
            bursts: ExtraAcked::default(),
            rate: None,
            max_train: 1,
        }
    }

    /// In units of 1/256, like all gains here.
    fn pacing_gain(&self) -> u64 {
        parts(match self.mode {
            Mode::Startup => self.config.high_gain,
            Mode::Drain => self.config.drain_gain,
            Mode::ProbeBw => self.config.cycle[self.phase],
            Mode::ProbeRtt => 1.0,
        })
    }

    fn cwnd_gain(&self) -> u64 {
        parts(match self.mode {
            Mode::Startup | Mode::Drain => self.config.high_gain,
            Mode::ProbeBw => self.config.cwnd_gain,
            Mode::ProbeRtt => 1.0,
        })
    }

    /// Packets that leave at once.
    fn train(&self) -> u32 {
        let rate = DataRate::from_bytes_per_sec(self.rate.unwrap_or(0));
        train_of(rate, self.packet_bytes, self.max_train)
    }

    /// The path's capacity in packets times `gain`, with packets queued in the hosts; `None` before
    /// the first sample.
    fn target(&self, gain: u64) -> Option<u32> {
        self.target_with(gain, 0)
    }

    /// Bandwidths and windows are counted in packets, which have this many bytes from now on.
    fn resize(&mut self, packet_bytes: u32) {
        let from = std::mem::replace(&mut self.packet_bytes, packet_bytes);
        if from != packet_bytes {
            let unit = |bandwidth| path::resized(bandwidth, from, packet_bytes);
            self.bandwidth.convert(unit);
            self.full_bandwidth = unit(self.full_bandwidth);
        }
    }

    /// Like `target`, with `more` packets for bursts of acknowledgements.
    fn target_with(&self, gain: u64, more: u32) -> Option<u32> {
        let path = path::packets_of(self.bandwidth.get(), self.min_rtt?, gain);
        let mut target =
            path.saturating_add(more).saturating_add(self.config.quantum * self.train());
        target = target.saturating_add(target % 2);
        // The probing phase must exceed the path's capacity even if that is only a few packets.
        let probing = self.mode == Mode::ProbeBw && self.phase == 0;
        Some(target.saturating_add(if probing { 2 } else { 0 }))
    }

    /// Counts rounds and measures the bandwidth (draft sections 4.1.1.3 and 4.1.1.5).
    fn update_bandwidth(&mut self, delivery: &Delivery) {
        self.round_start = false;
        let Some(sample) = delivery.rate else { return };
        self.delivered = sample.total_delivered;
        if sample.prior_delivered >= self.round_end {
            self.round_end = self.delivered;
            self.round += 1;
            self.round_start = true;
            self.conserve = false;
        }
        let packet_bytes = u64::from(self.packet_bytes);
        let rate = path::bandwidth(sample.delivered_bytes, packet_bytes, sample.interval);
        let limited = self.is_limited(delivery);
        if !limited || rate >= self.bandwidth.get() {
            self.bandwidth.update(self.round, rate, self.config.bandwidth_rounds);
        }
    }

    /// Whether the sample may be below the path's bandwidth.
    fn is_limited(&self, delivery: &Delivery) -> bool {
        let probed = |at| self.probed.is_some_and(|(from, to)| (from..=to).contains(&at));
        delivery.rate.is_some_and(|s| s.app_limited || probed(s.prior_delivered))
    }

    /// How many of `in_flight` packets are still in flight when the next ones leave. Includes the
    /// next ones if the rate is to increase the number in flight (`bbr_packets_in_net_at_edt`).
    fn at_departure(&self, delivery: &Delivery, in_flight: u32) -> u32 {
        if !self.config.counts_departures {
            return in_flight;
        }
        let wait = delivery.departure.saturating_since(delivery.now);
        let leaving = if self.gain > parts(1.0) { self.train() } else { 0 };
        (in_flight + leaving).saturating_sub(path::carried(self.bandwidth.get(), wait))
    }

    /// Starts the next phase of PROBE_BW if it is due (draft section 4.3.4).
    fn update_phase(&mut self, delivery: &Delivery) {
        if self.mode != Mode::ProbeBw {
            return;
        }
        let min_rtt = self.min_rtt.unwrap_or(Duration::ZERO);
        let is_long = self.delivered_at - self.phase_began > min_rtt;
        let before = self.at_departure(delivery, delivery.prior_in_flight);
        let (gain, even) = (self.gain, parts(1.0));
        let reached = |gain| self.target(gain).is_none_or(|target| before >= target);
        let next = if gain > even {
            is_long && (delivery.lost > 0 || reached(gain))
        } else if gain < even {
            is_long || self.target(even).is_none_or(|target| before <= target)
        } else {
            is_long
        };
        if next {
            self.phase = (self.phase + 1) % self.config.cycle.len();
            self.phase_began = self.delivered_at;
        }
    }

    /// Checks whether STARTUP has filled the pipe (draft section 4.3.2.2).
    fn check_full(&mut self, delivery: &Delivery) {
        if self.full || !self.round_start || self.is_limited(delivery) {
            return;
        }
        let now = self.bandwidth.get();
        if now >= path::scaled(self.full_bandwidth, parts(self.config.full_growth)) {
            (self.full_bandwidth, self.full_count) = (now, 0);
            return;
        }
        self.full_count += 1;
        self.full = self.full_count >= self.config.full_rounds;
    }

    fn check_drain(&mut self, delivery: &Delivery) {
        if self.mode == Mode::Startup && self.full {
            self.mode = Mode::Drain;
        }
        let in_flight = self.at_departure(delivery, delivery.in_flight);
        let drained = self.target(parts(1.0)).is_some_and(|target| in_flight <= target);
        if self.mode == Mode::Drain && drained {
            self.enter_probe_bw(delivery.now);
        }
    }

    /// The cycle may begin with any phase except the draining one.
    fn enter_probe_bw(&mut self, now: Instant) {
        let phases = self.config.cycle.len() as u64;
        let drawn = Seed(now.as_nanos()).stream("bbr-cycle").below(phases - 1) as usize;
        self.mode = Mode::ProbeBw;
        self.phase = if drawn == 0 { 0 } else { drawn + 1 };
        self.phase_began = self.delivered_at;
    }

    /// Updates the smallest round-trip time, and starts PROBE_RTT if it is due (draft section
    /// 4.3.5).
    fn update_min_rtt(&mut self, delivery: &Delivery) {
        let now = delivery.now;
        if self.min_rtt.is_none() {
            self.min_rtt_at = now;
        }
        let (window, tick) = (self.config.min_rtt_window, self.config.tick);
        let expired = path::is_over(self.min_rtt_at, now, window, tick);
        let micros = |rtt: Duration| Duration::from_micros(path::micros(rtt));
        let is_new = |rtt: &Duration| expired || self.min_rtt.is_none_or(|min| *rtt < min);
        if let Some(rtt) = delivery.rtt.map(micros).filter(is_new) {
            (self.min_rtt, self.min_rtt_at) = (Some(rtt), now);
        }
        if expired && !self.idle_restart && self.mode != Mode::ProbeRtt && self.min_rtt.is_some() {
            self.mode = Mode::ProbeRtt;
            self.save_cwnd();
            self.probe = Probe::default();
            self.probed = Some((self.delivered, self.delivered));
        }
        if self.mode == Mode::ProbeRtt {
            self.probe_rtt(delivery);
        }
        if delivery.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn probe_rtt(&mut self, delivery: &Delivery) {
        let in_flight = u64::from(delivery.in_flight) * u64::from(self.packet_bytes);
        let from = self.probed.map_or(self.delivered, |(from, _)| from);
        self.probed = Some((from, self.delivered + in_flight));
        match self.probe.drained_at {
            None if delivery.in_flight <= self.config.min_cwnd => {
                self.probe = Probe { drained_at: Some(delivery.now), round_done: false };
                self.round_end = self.delivered;
            }
            None => {}
            Some(since) => {
                self.probe.round_done |= self.round_start;
                let (time, tick) = (self.config.probe_rtt_duration, self.config.tick);
                if self.probe.round_done && path::is_over(since, delivery.now, time, tick) {
                    self.end_probe_rtt(delivery.now);
                }
            }
        }
    }

    fn end_probe_rtt(&mut self, now: Instant) {
        self.min_rtt_at = now;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        if self.full {
            self.enter_probe_bw(now);
        } else {
            self.mode = Mode::Startup;
        }
    }

    fn save_cwnd(&mut self) {
        let is_cut = self.in_recovery || self.mode == Mode::ProbeRtt;
        self.prior_cwnd = if is_cut { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
    }

    /// Updates the rate, which only rises until the pipe is full (draft section 4.2.1).
    fn update_rate(&mut self, delivery: &Delivery) {
        let srtt = delivery.srtt.filter(|s| !s.is_zero());
        if let (None, Some(srtt)) = (self.rate, srtt) {
            let first = path::bandwidth_of(self.cwnd, srtt);
            self.rate = Some(self.paced(first, parts(self.config.high_gain)));
        }
        let bandwidth = self.bandwidth.get();
        if bandwidth > 0 {
            let rate = self.paced(bandwidth, self.gain);
            if self.full || self.rate.is_none_or(|old| rate > old) {
                self.rate = Some(rate);
            }
        }
    }

    /// `gain` times `bandwidth` in bytes per second.
    fn paced(&self, bandwidth: u64, gain: u64) -> u64 {
        path::pacing_rate(bandwidth, self.packet_bytes.into(), gain, self.config.pacing_margin)
    }

    /// Updates the window (draft section 4.2.3).
    fn update_cwnd(&mut self, delivery: &Delivery) {
        if delivery.delivered > 0 {
            self.cwnd = self.next_cwnd(delivery);
        }
        self.cwnd = self.cwnd.min(self.max_cwnd);
        if self.mode == Mode::ProbeRtt {
            self.cwnd = self.cwnd.min(self.config.min_cwnd);
        }
    }

    fn next_cwnd(&mut self, delivery: &Delivery) -> u32 {
        let acked = delivery.delivered;
        let mut cwnd = self.cwnd.saturating_sub(delivery.lost).max(1);
        if delivery.in_recovery && !self.in_recovery {
            self.conserve = true;
            self.round_end = self.delivered;
            cwnd = delivery.in_flight + acked;
        } else if !delivery.in_recovery && self.in_recovery {
            self.conserve = false;
            cwnd = cwnd.max(self.prior_cwnd);
        }
        self.in_recovery = delivery.in_recovery;
        if self.conserve {
            return cwnd.max(delivery.in_flight + acked);
        }
        let more = if self.full { self.bursts.most(self.bandwidth.get()) } else { 0 };
        let target = self.target_with(self.cwnd_gain(), more).unwrap_or(u32::MAX);
        if self.full {
            cwnd = (cwnd + acked).min(target);
        } else if cwnd < target || self.delivered < FIRST_PACKETS * u64::from(self.packet_bytes) {
            cwnd += acked;
        }
        cwnd.max(self.config.min_cwnd)
    }
}

impl CongestionControl for Bbr {
    fn name(&self) -> &'static str {
        "bbr"
    }

    fn cwnd(&self) -> u32 {
        self.cwnd
    }

    fn ssthresh(&self) -> u32 {
        u32::MAX
    }

    fn needs(&self) -> Needs {
        Needs { rates: true, own_recovery: true, ..Needs::DELIVERIES }
    }

    fn on_delivery(&mut self, delivery: &Delivery) {
        self.resize(delivery.packet_bytes.max(1));
        if delivery.delivered > 0 {
            self.delivered_at = whole_micros(delivery.now);
        }
        self.update_bandwidth(delivery);
        if self.config.allows_bursts && delivery.rate.is_some() && delivery.delivered > 0 {
            let (rate, cwnd) = (self.bandwidth.get(), self.cwnd);
            self.bursts.update(self.delivered_at, delivery.delivered, self.round_start, rate, cwnd);
        }
        self.update_phase(delivery);
        self.check_full(delivery);
        self.check_drain(delivery);
        self.update_min_rtt(delivery);
        self.gain = self.pacing_gain();
        self.update_rate(delivery);
        self.update_cwnd(delivery);
    }

    fn on_ack(&mut self, _ack: &AckSample) {}

    fn on_congestion_event(&mut self, _now: Instant, _in_flight: u32) {
        self.save_cwnd();
    }

    fn on_rto(&mut self, _now: Instant, _in_flight: u32) {
        self.save_cwnd();
        self.in_recovery = true;
        self.conserve = false;
        self.full_bandwidth = 0;
        self.cwnd = 1;
    }

    fn set_window(&mut self, _now: Instant, cwnd: u32, _ssthresh: u32) {
        self.cwnd = cwnd.clamp(1, self.max_cwnd);
    }

    fn set_trains(&mut self, max_packets: u32) {
        self.max_train = max_packets.max(1);
    }

    fn clamp(&mut self, max_cwnd: u32) {
        self.max_cwnd = max_cwnd.max(1);
        self.cwnd = self.cwnd.min(self.max_cwnd);
    }

    fn exit_slow_start(&mut self, _now: Instant) {}

    /// After an idle time BBR paces at the estimate without probing; the window stays.
    fn on_idle_restart(&mut self, _now: Instant, _restart_window: u32) {
        self.idle_restart = true;
        if self.mode == Mode::ProbeBw {
            self.rate = Some(self.paced(self.bandwidth.get(), parts(1.0)));
        }
    }

    fn pacing_rate(&self) -> Option<DataRate> {
        self.rate.map(|rate| DataRate::from_bytes_per_sec(rate.max(1)))
    }
}
