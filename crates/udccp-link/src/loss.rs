//! Random loss.

use std::collections::VecDeque;

use udccp_base::{Instant, Rng};

use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::stats::{DropReason, LinkStats};

/// Loses each packet with the same probability, independently of all others (Bernoulli loss).
/// It takes no time: what is not lost departs at the instant of its arrival.
#[derive(Debug)]
pub struct RandomLoss<P> {
    probability: f64,
    rng: Rng,
    passing: VecDeque<(Instant, P)>,
    stats: LinkStats,
}

impl<P> RandomLoss<P> {
    /// Loses a share `probability` (0..=1) of all packets. `rng` should be a stream that nothing
    /// else draws from; exactly one number is drawn per packet.
    pub fn new(probability: f64, rng: Rng) -> Self {
        Self { probability, rng, passing: VecDeque::new(), stats: LinkStats::default() }
    }
}

impl<P: Packet + core::fmt::Debug + Send> Link<P> for RandomLoss<P> {
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        let len = packet.wire_len();
        self.stats.arrived.count(len);
        if self.rng.chance(self.probability) {
            self.stats.dropped[DropReason::RandomLoss as usize].count(len);
            drops.push((packet, DropReason::RandomLoss));
        } else {
            self.passing.push_back((now, packet));
        }
    }

    fn poll_departure(&mut self, _now: Instant, _drops: &mut Drops<P>) -> Option<P> {
        let (_, packet) = self.passing.pop_front()?;
        self.stats.departed.count(packet.wire_len());
        Some(packet)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.passing.front().map(|(arrival, _)| *arrival)
    }

    fn packets_inside(&self) -> usize {
        self.passing.len()
    }

    fn backlog(&mut self, _now: Instant) -> Backlog {
        Backlog::default()
    }

    fn limit(&self) -> QueueLimit {
        QueueLimit::Unlimited
    }

    fn stats(&self, _now: Instant) -> LinkStats {
        self.stats.clone()
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Datagram, Seed};

    use super::*;
    use crate::packet::tests::datagram;

    fn run(seed: u64, probability: f64, packets: usize) -> (usize, RandomLoss<Datagram>) {
        let mut link = RandomLoss::new(probability, Seed(seed).stream("loss"));
        let mut drops = Vec::new();
        for _ in 0..packets {
            link.handle_packet(Instant::ZERO, datagram(100), &mut drops);
            while link.poll_departure(Instant::ZERO, &mut drops).is_some() {}
        }
        (drops.len(), link)
    }

    #[test]
    fn the_share_lost_is_the_probability() {
        let (lost, link) = run(1, 0.03, 100_000);
        // Standard deviation 54 packets.
        assert!(lost.abs_diff(3_000) < 220, "{lost} of 100000");
        let stats = link.stats(Instant::ZERO);
        assert_eq!(stats.dropped_by(DropReason::RandomLoss).packets, lost as u64);
        assert_eq!(stats.departed.packets + lost as u64, stats.arrived.packets);
    }

    #[test]
    fn zero_loses_none_and_one_loses_all() {
        assert_eq!(run(1, 0.0, 1_000).0, 0);
        assert_eq!(run(1, 1.0, 1_000).0, 1_000);
    }

    #[test]
    fn the_same_stream_loses_the_same_packets() {
        assert_eq!(run(9, 0.1, 5_000).0, run(9, 0.1, 5_000).0);
    }
}
