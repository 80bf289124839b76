//! Propagation: delay, its variation, and reordering.

use std::collections::VecDeque;
use std::sync::Arc;

use udccp_base::{Duration, Instant, Rng};

use crate::change::Change;
use crate::gather::{Gather, Gathering};
use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::stats::LinkStats;

/// How the delay of a packet differs from that of the link.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Variation {
    /// Not at all.
    #[default]
    None,
    /// It is longer by a time with uniform distribution from zero to this.
    Uniform(Duration),
    /// It is normally distributed around the delay of the link with this standard deviation.
    /// Negative delays are drawn again.
    Normal(Duration),
    /// It is longer by a recorded time. An entry is a time since the start (ascending) and the
    /// extra delay from then on. The last entry stays in force.
    Trace(Arc<[(Duration, Duration)]>),
}

/// Reordering of packets, as in netem's `reorder`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// Share of the candidates that are reordered, 0 to 1, each independently.
    pub probability: f64,
    /// Every `gap`-th packet is a candidate; 1 makes all candidates.
    pub gap: u64,
    /// Delay a reordered packet by this, so that later ones overtake it. `None`: do not delay it at
    /// all, so that it overtakes earlier ones, as in netem.
    pub by: Option<Duration>,
}

/// The settings of a [`Delay`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DelayConfig {
    /// The delay of the link.
    pub delay: Duration,
    /// How the delay of each packet differs.
    pub variation: Variation,
    /// Packets arrive in the order in which their delays end. With `false`, none arrives before the
    /// one ahead of it.
    pub free_order: bool,
    /// Packets that are reordered; `None`: none.
    pub reorder: Option<Reorder>,
    /// Packets that the far end receives together. No effect if packets may overtake each other.
    pub gather: Gather,
}

/// Holds every packet for a delay.
#[derive(Debug)]
pub struct Delay<P> {
    config: DelayConfig,
    gathering: Option<Gathering>,
    rng: Rng,
    reorder_rng: Rng,
    /// In order of delivery, then of arrival.
    line: VecDeque<(Instant, P)>,
    /// Delivery of the last packet that was not reordered.
    last: Instant,
    seen: u64,
    /// The second of a pair of normal random numbers.
    spare: Option<f64>,
    stats: LinkStats,
}

impl<P: Packet> Delay<P> {
    /// A delay whose random numbers come from `rng` and `reorder`, which nothing else should use.
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

    /// Draws the delay of a packet that arrives at `now`.
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

    /// A standard normal random number (G. E. P. Box and M. E. Muller, 1958), with portable
    /// functions.
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
