//! Proportional integral controller enhanced.

use udccp_base::{Duration, Instant, Rng};

use super::backlogged::Fifo;
use super::{Queue, Waiting, mark};
use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;
use crate::stats::DropReason;

/// The settings of a [`Pie`] (RFC 8033 section 4 and appendix A).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PieConfig {
    /// The target of the queueing delay: `QDELAY_REF`.
    pub target: Duration,
    /// Time between two updates of the drop probability: `T_UPDATE`.
    pub update: Duration,
    /// Weight of the deviation from the target, per second.
    pub alpha: f64,
    /// Weight of the trend, per second.
    pub beta: f64,
    /// How long early drops are suspended after a period without congestion: `MAX_BURST`.
    pub max_burst: Duration,
    /// Mean length of a packet in bytes. There is no early drop while at most twice this many bytes
    /// wait.
    pub mean_packet: u32,
    /// Mark packets of ECN-capable transports instead of dropping them, while the probability is
    /// below [`mark_below`](Self::mark_below).
    pub ecn: bool,
    /// From this probability on, packets are dropped instead of marked: `mark_ecnth`.
    pub mark_below: f64,
    /// Hard limit of the queue.
    pub limit: QueueLimit,
}

impl Default for PieConfig {
    /// The RFC's values: target 15 ms, update 15 ms, alpha 1/8, beta 1 1/4, burst 150 ms; marking
    /// below 10 %, no ECN, no limit.
    fn default() -> Self {
        Self {
            target: Duration::from_millis(15),
            update: Duration::from_millis(15),
            alpha: 0.125,
            beta: 1.25,
            max_burst: Duration::from_millis(150),
            mean_packet: 1000,
            ecn: false,
            mark_below: 0.1,
            limit: QueueLimit::Unlimited,
        }
    }
}

/// PIE (RFC 8033): drops (or marks) arrivals with a probability that a controller adjusts so that
/// the queueing delay approaches its target.
///
/// This is the basic scheme of appendix A, which derives the delay from the time stamp of the last
/// packet that left (section 4.3), with the limit on the increase per step (section 5.5). The timer
/// is not an event: updates that are due are made at the next arrival or departure.
#[derive(Debug)]
pub struct Pie<P> {
    config: PieConfig,
    rng: Rng,
    fifo: Fifo<P>,
    probability: f64,
    burst_allowance: Duration,
    delay: Duration,
    old_delay: Duration,
    next_update: Instant,
    marked: u64,
}

impl<P: Packet> Pie<P> {
    /// An empty queue. Random numbers come from `rng`, which nothing else should use.
    pub fn new(config: PieConfig, rng: Rng) -> Self {
        Self {
            config,
            rng,
            fifo: Fifo::default(),
            probability: 0.0,
            burst_allowance: config.max_burst,
            delay: Duration::ZERO,
            old_delay: Duration::ZERO,
            next_update: Instant::ZERO + config.update,
            marked: 0,
        }
    }

    /// The current drop probability.
    pub const fn probability(&self) -> f64 {
        self.probability
    }

    fn catch_up(&mut self, now: Instant) {
        while self.next_update <= now && !self.config.update.is_zero() {
            self.next_update += self.config.update;
            self.update();
        }
    }

    /// `calculate_drop_prob` (RFC 8033 section 4.2 and appendix A).
    fn update(&mut self) {
        let seconds = |d: Duration| d.as_secs_f64();
        let off = seconds(self.delay) - seconds(self.config.target);
        let trend = seconds(self.delay) - seconds(self.old_delay);
        let step = self.config.alpha * off + self.config.beta * trend;
        let mut step = step / auto_tuning(self.probability);
        if self.probability >= 0.1 {
            step = step.min(0.02);
        }
        self.probability += step;
        if self.delay.is_zero() && self.old_delay.is_zero() {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.old_delay = self.delay;
        self.burst_allowance = self.burst_allowance.saturating_sub(self.config.update);
    }

    /// Allows the next burst when congestion has ended (section 4.4).
    fn allow_burst(&mut self) {
        let calm = |d: Duration| d < self.config.target / 2;
        if self.probability <= 0.0 && calm(self.delay) && calm(self.old_delay) {
            self.burst_allowance = self.config.max_burst;
        }
    }

    /// Whether this arrival is selected at random (`drop_early`).
    fn picks(&mut self) -> bool {
        let calm = self.old_delay < self.config.target / 2 && self.probability < 0.2;
        let short = self.fifo.backlog().bytes <= 2 * u64::from(self.config.mean_packet);
        self.burst_allowance.is_zero() && !calm && !short && self.rng.chance(self.probability)
    }
}

/// The factor by which steps are scaled down at small probabilities (RFC 8033 section 4.2).
fn auto_tuning(probability: f64) -> f64 {
    const STEPS: [(f64, f64); 6] = [
        (0.000_001, 2048.0),
        (0.000_01, 512.0),
        (0.000_1, 128.0),
        (0.001, 32.0),
        (0.01, 8.0),
        (0.1, 2.0),
    ];
    STEPS.iter().find(|(below, _)| probability < *below).map_or(1.0, |(_, divisor)| *divisor)
}

impl<P: Packet + core::fmt::Debug + Send> Queue<P> for Pie<P> {
    fn enqueue(&mut self, now: Instant, mut packet: P, idle: bool, drops: &mut Drops<P>) {
        self.catch_up(now);
        self.allow_burst();
        let full = !idle && !self.config.limit.admits(self.fifo.backlog(), packet.wire_len());
        if full {
            drops.push((packet, DropReason::QueueFull));
        } else if self.picks() {
            let ecn = self.config.ecn && self.probability < self.config.mark_below;
            if mark(&mut packet, ecn, &mut self.marked) {
                self.fifo.push(now, packet);
            } else {
                drops.push((packet, DropReason::EarlyDrop));
            }
        } else {
            self.fifo.push(now, packet);
        }
    }

    fn dequeue(&mut self, now: Instant, _drops: &mut Drops<P>) -> Option<Waiting<P>> {
        self.catch_up(now);
        let first = self.fifo.pop();
        self.delay = first.as_ref().map_or(Duration::ZERO, |first| now - first.since);
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
