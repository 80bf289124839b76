//! Propagation: a delay that may vary, and packets that overtake.

use std::collections::VecDeque;
use std::sync::Arc;

use udccp_base::{Duration, Instant, Rng};

use crate::change::Change;
use crate::gather::{Gather, Gathering};
use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::stats::LinkStats;

/// How the delay of one packet differs from that of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Variation {
    /// Not at all.
    #[default]
    None,
    /// Later by a time drawn uniformly from zero to this.
    Uniform(Duration),
    /// Normally distributed around the delay of the link with this standard deviation; what would
    /// be below zero is drawn again.
    Normal(Duration),
    /// Later by what a record says: from each time (since the begin, ascending) on, this much.
    /// After the last time it stays.
    Trace(Arc<[(Duration, Duration)]>),
}

/// Packets that leave their place in the line, as netem's `reorder` has them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of the candidates, 0..=1, each picked independently.
    pub probability: f64,
    /// Every `gap`-th packet is a candidate; 1 makes all candidates.
    pub gap: u64,
    /// A picked packet is later by this, so that those behind overtake it. `None`: it is not
    /// delayed at all, so that it overtakes those ahead (which is what netem does).
    pub by: Option<Duration>,
}

/// What a [`Delay`] is made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayConfig {
    /// The delay of the link.
    pub delay: Duration,
    /// How each packet's differs.
    pub variation: Variation,
    /// Let packets arrive in the order in which their delays end. Otherwise none arrives before
    /// the one ahead of it.
    pub free_order: bool,
    /// Packets picked to leave their place.
    pub reorder: Option<Reorder>,
    /// What the far end sees together. Nothing, where packets may overtake.
    pub gather: Gather,
}

/// Holds every packet for a delay.
#[derive(Debug)]
pub struct Delay<P> {
    config: DelayConfig,
    gathering: Option<Gathering>,
    rng: Rng,
    reorder_rng: Rng,
    /// By delivery, then by arrival.
    line: VecDeque<(Instant, P)>,
    /// Delivery of the last packet that keeps its place.
    last: Instant,
    seen: u64,
    /// The second of a pair of normal deviates.
    spare: Option<f64>,
    stats: LinkStats,
}

impl<P: Packet> Delay<P> {
    /// `rng` and `reorder` should be streams that nothing else draws from.
    pub fn new(config: DelayConfig, rng: Rng, reorder: Rng) -> Self {
        Self {
            gathering: Gathering::new(config.gather),
            config,
            rng,
            reorder_rng: reorder,
            line: VecDeque::new(),
            last: Instant::ZERO,
            seen: 0,
            spare: None,
            stats: LinkStats::default(),
        }
    }

    /// The delay of a packet that arrives at `now`.
    fn draw(&mut self, now: Instant) -> Duration {
        let delay = self.config.delay;
        match &self.config.variation {
            Variation::None => delay,
            Variation::Uniform(below) => {
                delay + Duration::from_nanos(self.rng.below(below.as_nanos()))
            }
            Variation::Normal(deviation) => {
                let (mean, deviation) = (delay.as_secs_f64(), deviation.as_secs_f64());
                loop {
                    let drawn = mean + deviation * self.normal();
                    if drawn >= 0.0 {
                        return Duration::from_secs_f64(drawn);
                    }
                }
            }
            Variation::Trace(steps) => {
                let since = now - Instant::ZERO;
                let past = steps.partition_point(|(from, _)| *from <= since);
                delay + past.checked_sub(1).map_or(Duration::ZERO, |i| steps[i].1)
            }
        }
    }

    /// A standard normal deviate (G. E. P. Box and M. E. Muller, 1958), by portable functions.
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let radius = libm::sqrt(2.0 * self.rng.exp_f64());
        let angle = core::f64::consts::TAU * self.rng.unit_f64();
        self.spare = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }

    fn is_picked(&mut self) -> bool {
        let Some(reorder) = self.config.reorder else { return false };
        self.seen.is_multiple_of(reorder.gap.max(1)) && self.reorder_rng.chance(reorder.probability)
    }
}

impl<P: Packet + core::fmt::Debug + Send> Link<P> for Delay<P> {
    fn handle_packet(&mut self, now: Instant, packet: P, _drops: &mut Drops<P>) {
        self.stats.arrived.count(packet.wire_len());
        self.seen += 1;
        let mut deliver = now + self.draw(now);
        if self.is_picked() {
            let by = self.config.reorder.and_then(|reorder| reorder.by);
            deliver = by.map_or(now, |by| deliver + by);
        } else if !self.config.free_order {
            deliver = deliver.max(self.last);
            self.last = deliver;
            if let Some(gathering) = &mut self.gathering {
                deliver = gathering.apply(deliver);
            }
        }
        if self.line.back().is_none_or(|(last, _)| *last <= deliver) {
            self.line.push_back((deliver, packet));
        } else {
            let place = self.line.partition_point(|(other, _)| *other <= deliver);
            self.line.insert(place, (deliver, packet));
        }
    }

    fn poll_departure(&mut self, now: Instant, _drops: &mut Drops<P>) -> Option<P> {
        let (_, packet) = self.line.pop_front_if(|(deliver, _)| *deliver <= now)?;
        self.stats.departed.count(packet.wire_len());
        Some(packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.line.front().map(|(deliver, _)| *deliver)
    }

    fn packets_inside(&self) -> usize {
        self.line.len()
    }

    fn backlog(&mut self, _now: Instant) -> Backlog {
        Backlog::default()
    }

    fn limit(&self) -> QueueLimit {
        QueueLimit::Unlimited
    }

    fn keeps_order(&self) -> bool {
        !self.config.free_order && self.config.reorder.is_none()
    }

    fn change(&mut self, _now: Instant, change: &Change, _drops: &mut Drops<P>) {
        if let Change::Delay(delay) = change {
            self.config.delay = *delay;
        }
    }

    fn stats(&self, _now: Instant) -> LinkStats {
        self.stats.clone()
    }
}

#[cfg(test)]
mod tests;
