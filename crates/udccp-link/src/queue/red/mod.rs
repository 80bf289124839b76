//! Random early detection.

use udccp_base::{DataRate, Duration, Instant, Rng};

use super::backlogged::Fifo;
use super::{Queue, Waiting, mark};
use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;
use crate::stats::DropReason;

/// The unit in which RED counts its queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RedUnit {
    /// Every packet counts the same.
    #[default]
    Packets,
    /// The queue is counted in bytes, and a packet is dropped with a probability proportional to
    /// its length. The thresholds are still in packets, of the mean length.
    Bytes,
}

/// The settings of [`Red`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedConfig {
    /// Average queue below which nothing is dropped: `min_th`, in packets.
    pub min: f64,
    /// Average queue from which on everything is dropped (with `gentle`, from twice this):
    /// `max_th`, in packets.
    pub max: f64,
    /// Drop probability when the average reaches `max`: `max_p`, 0 to 1.
    pub max_probability: f64,
    /// Weight of a sample in the average: `w_q`, 0 to 1.
    pub weight: f64,
    /// Between `max` and twice `max` the probability rises from `max_probability` to 1 instead of
    /// jumping (S. Floyd, "Recommendation on using the gentle variant of RED", 2000).
    pub gentle: bool,
    /// The unit in which the queue is counted.
    pub unit: RedUnit,
    /// Mean length of a packet in bytes, for `RedUnit::Bytes` and for the transmission time of a
    /// packet.
    pub mean_packet: u32,
    /// Rate of the transmitter. While the queue is idle, the average falls as if packets of mean
    /// length were transmitted at this rate. `None`: it falls to zero at once.
    pub rate: Option<DataRate>,
    /// Mark packets of ECN-capable transports instead of dropping them.
    pub ecn: bool,
    /// Adapt `max_probability` to the traffic (Adaptive RED); `None`: leave it unchanged.
    pub adaptive: Option<Adaptive>,
    /// Hard limit of the queue.
    pub limit: QueueLimit,
}

/// How [`Red`] adapts `max_probability` (S. Floyd, R. Gummadi and S. Shenker, "Adaptive RED: An
/// Algorithm for Increasing the Robustness of RED's Active Queue Management", 2001, section 4).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// Time between two adaptations.
    pub interval: Duration,
    /// Factor of a decrease: `beta`.
    pub decrease: f64,
    /// Smallest and largest `max_probability`.
    pub bounds: (f64, f64),
}

impl Default for Adaptive {
    /// The published values: every 0.5 s, factor 0.9, from 0.01 to 0.5.
    fn default() -> Self {
        Self { interval: Duration::from_millis(500), decrease: 0.9, bounds: (0.01, 0.5) }
    }
}

impl RedConfig {
    /// RED between two thresholds in packets, with S. Floyd's recommendations ("RED: Discussions of
    /// Setting Parameters", 1997; gentle since 2000): `w_q` 0.002, `max_p` 0.1, gentle, in packets.
    pub const fn between(min: f64, max: f64, rate: Option<DataRate>, limit: QueueLimit) -> Self {
        Self {
            min,
            max,
            max_probability: 0.1,
            weight: 0.002,
            gentle: true,
            unit: RedUnit::Packets,
            mean_packet: 1000,
            rate,
            ecn: false,
            adaptive: None,
            limit,
        }
    }

    /// The weight with which the average has a time constant of one second: `1 - exp(-1/C)` at `C`
    /// packets per second (the same paper, section 4.3: ten round-trip times of 100 ms).
    pub fn automatic_weight(rate: DataRate, mean_packet: u32) -> f64 {
        let packets_per_sec = rate.bits_per_sec() as f64 / (8.0 * f64::from(mean_packet.max(1)));
        1.0 - libm::exp(-1.0 / packets_per_sec.max(1.0))
    }

    /// The thresholds for a queueing delay of about `target`: `min_th` is half of it, but at least
    /// 5 packets; `max_th` is three times `min_th` (the same paper, section 4.3).
    pub fn automatic_thresholds(rate: DataRate, mean_packet: u32, target: Duration) -> (f64, f64) {
        let packets_per_sec = rate.bits_per_sec() as f64 / (8.0 * f64::from(mean_packet.max(1)));
        let min = (target.as_secs_f64() * packets_per_sec / 2.0).max(5.0);
        (min, 3.0 * min)
    }
}

/// The decision on an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Take,
    /// At random: a mark is sufficient.
    Early,
    /// Beyond the thresholds: a mark is not sufficient (RFC 3168 section 7).
    Forced,
}

/// Random early detection (S. Floyd and V. Jacobson, "Random Early Detection Gateways for
/// Congestion Avoidance", 1993): drops (or marks) arrivals with a probability that grows with the
/// average queue.
///
/// At its hard limit the queue drops arrivals, whatever the average is.
#[derive(Debug)]
pub struct Red<P> {
    config: RedConfig,
    rng: Rng,
    fifo: Fifo<P>,
    /// `avg`, in packets (of mean length in byte mode).
    average: f64,
    /// The current `max_p`.
    max_probability: f64,
    /// Arrivals since the last drop, -1 while the average is below `min`.
    count: i64,
    /// Since when the queue is empty and the transmitter idle (`q_time`).
    idle_since: Option<Instant>,
    adapted: Instant,
    marked: u64,
}

impl<P: Packet> Red<P> {
    /// An empty queue. Random numbers come from `rng`, which nothing else should use.
    pub fn new(config: RedConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            fifo: Fifo::default(),
            average: 0.0,
            max_probability: config.max_probability,
            count: -1,
            idle_since: Some(Instant::ZERO),
            adapted: Instant::ZERO,
            marked: 0,
        }
    }

    /// The average queue, in packets (of mean length in byte mode).
    pub const fn average(&self) -> f64 {
        self.average
    }

    /// The current `max_p`.
    pub const fn max_probability(&self) -> f64 {
        self.max_probability
    }

    /// The current queue, in the unit of the average.
    fn queue(&self) -> f64 {
        let backlog = self.fifo.backlog();
        match self.config.unit {
            RedUnit::Packets => backlog.packets as f64,
            RedUnit::Bytes => backlog.bytes as f64 / f64::from(self.config.mean_packet.max(1)),
        }
    }

    /// The average after an arrival (Floyd and Jacobson, figure 2). After an idle time it falls by
    /// as many zero samples as packets could have been transmitted.
    fn update_average(&mut self, now: Instant) {
        let w = self.config.weight;
        match self.idle_since.take() {
            Some(since) => {
                let packet = u64::from(self.config.mean_packet);
                let each = self.config.rate.map_or(Duration::ZERO, |r| r.time_for(packet));
                let missed = (now - since).as_nanos() as f64 / each.as_nanos().max(1) as f64;
                self.average *= libm::pow(1.0 - w, missed);
            }
            None => self.average += w * (self.queue() - self.average),
        }
    }

    /// The drop probability before it is spread out: `p_b`, for a packet of mean length.
    fn base_probability(&self) -> f64 {
        let RedConfig { min, max, gentle, .. } = self.config;
        let (average, max_p) = (self.average, self.max_probability);
        if average < min {
            0.0
        } else if average < max {
            max_p * (average - min) / (max - min)
        } else if gentle && average < 2.0 * max {
            max_p + (1.0 - max_p) * (average - max) / max
        } else {
            1.0
        }
    }

    fn judge(&mut self, len: u32) -> Verdict {
        let mut probability = self.base_probability();
        if self.average < self.config.min {
            self.count = -1;
            return Verdict::Take;
        }
        if probability >= 1.0 {
            self.count = 0;
            return Verdict::Forced;
        }
        self.count += 1;
        if self.config.unit == RedUnit::Bytes {
            probability *= f64::from(len) / f64::from(self.config.mean_packet.max(1));
        }
        // p_a = p_b / (1 - count p_b): drops are spread evenly, not in clusters.
        let room = 1.0 - self.count as f64 * probability;
        let spread = if room > 0.0 { probability / room } else { 1.0 };
        if !self.rng.chance(spread) {
            return Verdict::Take;
        }
        self.count = 0;
        Verdict::Early
    }

    /// Adapts `max_p`: up by `min(0.01, max_p / 4)`, down by a factor, so that the average stays in
    /// the middle fifth between the thresholds (Adaptive RED, figure 1). Done when packets arrive.
    fn adapt(&mut self, now: Instant) {
        let Some(adaptive) = self.config.adaptive else { return };
        if now - self.adapted < adaptive.interval {
            return;
        }
        self.adapted = now;
        let span = self.config.max - self.config.min;
        let (low, high) = (self.config.min + 0.4 * span, self.config.min + 0.6 * span);
        let (least, most) = adaptive.bounds;
        if self.average > high && self.max_probability <= most {
            self.max_probability += (self.max_probability / 4.0).min(0.01);
        } else if self.average < low && self.max_probability >= least {
            self.max_probability *= adaptive.decrease;
        }
    }
}

impl<P: Packet + core::fmt::Debug + Send> Queue<P> for Red<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, idle: bool, drops: &mut Drops<P>) {
        let len = packet.wire_len();
        self.update_average(now);
        self.adapt(now);
        let verdict = self.judge(len);
        let marked =
            verdict == Verdict::Early && mark(&mut packet, self.config.ecn, &mut self.marked);
        if verdict != Verdict::Take && !marked {
            drops.push((packet, DropReason::EarlyDrop));
        } else if idle || self.config.limit.admits(self.fifo.backlog(), len) {
            self.fifo.push(now, packet);
            return;
        } else {
            drops.push((packet, DropReason::QueueFull));
        }
        if idle {
            self.idle_since = Some(now);
        }
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut Drops<P>) -> Option<Waiting<P>> {
        let first = self.fifo.pop();
        if first.is_none() {
            self.idle_since.get_or_insert(now);
        }
        first
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn limit(&self) -> QueueLimit {
        self.config.limit
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}

#[cfg(test)]
mod tests;
