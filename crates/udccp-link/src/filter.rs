//! Elements that pass, drop or duplicate packets without delay.

use std::collections::VecDeque;

use udccp_base::{Instant, Rng};

use crate::change::Change;
use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::packet::Packet;
use crate::stats::{DropReason, LinkStats};

/// The decision of a [`Rule`] on a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes.
    Pass,
    /// It passes, followed by a copy.
    Twice,
    /// It is dropped.
    Drop(DropReason),
}

/// Decides on each packet when it arrives.
pub trait Rule: core::fmt::Debug + Send {
    /// Decides on a packet of `len` bytes that arrives at `now`.
    fn judge(&mut self, now: Instant, len: u32) -> Verdict;

    /// Applies a change at `now`, if it concerns this rule.
    fn change(&mut self, now: Instant, change: &Change) {
        let _ = (now, change);
    }
}

/// A link element with a rule. It adds no delay: packets depart when they arrive.
#[derive(Debug)]
pub struct Filter<P, R> {
    rule: R,
    passing: VecDeque<(Instant, P)>,
    stats: LinkStats,
}

impl<P, R: Rule> Filter<P, R> {
    /// An element that applies `rule` to every packet.
    pub fn new(rule: R) -> Self {
        Self { rule, passing: VecDeque::new(), stats: LinkStats::default() }
    }
}

impl<P, R> Link<P> for Filter<P, R>
where
    P: Packet + Clone + core::fmt::Debug + Send,
    R: Rule,
{
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        let len = packet.wire_len();
        self.stats.arrived.count(len);
        match self.rule.judge(now, len) {
            Verdict::Pass => self.passing.push_back((now, packet)),
            Verdict::Twice => {
                self.stats.duplicated.count(len);
                self.passing.push_back((now, packet.clone()));
                self.passing.push_back((now, packet));
            }
            Verdict::Drop(reason) => {
                self.stats.dropped[reason as usize].count(len);
                drops.push((packet, reason));
            }
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

    fn duplicated(&self) -> u64 {
        self.stats.duplicated.packets
    }

    fn change(&mut self, now: Instant, change: &Change, _drops: &mut Drops<P>) {
        self.rule.change(now, change);
    }

    fn stats(&self, _now: Instant) -> LinkStats {
        self.stats.clone()
    }
}

/// Duplicates each packet with the same probability, independently. The copy follows immediately.
#[derive(Debug)]
pub struct Duplicate {
    probability: f64,
    rng: Rng,
}

impl Duplicate {
    /// Duplicates a share `probability` (0 to 1) of all packets; one random number is drawn per
    /// packet.
    pub const fn new(probability: f64, rng: Rng) -> Self {
        Self { probability, rng }
    }
}

impl Rule for Duplicate {
    fn judge(&mut self, _now: Instant, _len: u32) -> Verdict {
        if self.rng.chance(self.probability) { Verdict::Twice } else { Verdict::Pass }
    }
}

/// Corrupts each packet with the same probability, independently.
///
/// A corrupted packet uses the link like any other, and the receiver's checksum would detect it. So
/// it is dropped here, at the far end of the link, with its own reason. (Links carry handles, not
/// bytes. A checksum that covers only part of a packet would let some pass.)
#[derive(Debug)]
pub struct Corrupt {
    probability: f64,
    rng: Rng,
}

impl Corrupt {
    /// Corrupts a share `probability` (0 to 1) of all packets; one random number is drawn per
    /// packet.
    pub const fn new(probability: f64, rng: Rng) -> Self {
        Self { probability, rng }
    }
}

impl Rule for Corrupt {
    fn judge(&mut self, _now: Instant, _len: u32) -> Verdict {
        if self.rng.chance(self.probability) {
            Verdict::Drop(DropReason::Corrupted)
        } else {
            Verdict::Pass
        }
    }
}

/// Drops packets that are longer than a link can carry.
#[derive(Clone, Copy, Debug)]
pub struct Mtu(
    /// Length of the longest packet that passes, in bytes of IP length.
    pub u32,
);

impl Rule for Mtu {
    fn judge(&mut self, _now: Instant, len: u32) -> Verdict {
        if len > self.0 { Verdict::Drop(DropReason::TooLong) } else { Verdict::Pass }
    }
}

#[cfg(test)]
mod tests {
    use udccp_base::{Datagram, Seed};

    use super::*;
    use crate::packet::tests::datagram;

    fn pass<R: Rule>(rule: R, lengths: &[u32]) -> (Vec<u32>, Vec<DropReason>, LinkStats) {
        let mut link: Filter<Datagram, R> = Filter::new(rule);
        let (mut out, mut drops) = (Vec::new(), Vec::new());
        for len in lengths {
            link.handle_packet(Instant::ZERO, datagram(*len), &mut drops);
            while let Some(packet) = link.poll_departure(Instant::ZERO, &mut drops) {
                out.push(packet.wire_len());
            }
        }
        let stats = link.stats(Instant::ZERO);
        let known = stats.departed.packets + stats.dropped_total().packets;
        assert_eq!(stats.arrived.packets + stats.duplicated.packets, known);
        (out, drops.into_iter().map(|(_, reason)| reason).collect(), stats)
    }

    #[test]
    fn packets_longer_than_the_mtu_are_dropped_with_that_reason() {
        let (out, drops, _) = pass(Mtu(1280), &[100, 1280, 1281, 1500]);
        assert_eq!(out, [100, 1280]);
        assert_eq!(drops, [DropReason::TooLong; 2]);
    }

    #[test]
    fn copies_follow_their_originals_and_are_counted() {
        let lengths: Vec<u32> = (0..20_000).map(|i| 28 + i % 1000).collect();
        let (out, drops, stats) = pass(Duplicate::new(0.1, Seed(1).stream("d")), &lengths);
        assert!(drops.is_empty());
        let copies = stats.duplicated.packets;
        assert!(copies.abs_diff(2_000) < 170, "{copies} of 20000, deviation 42");
        let mut doubles = out.clone();
        doubles.dedup();
        assert_eq!(doubles, lengths, "the same order, each once or twice");
    }

    #[test]
    fn corrupted_packets_are_dropped_for_that_reason() {
        let (out, drops, _) = pass(Corrupt::new(0.25, Seed(1).stream("c")), &[500; 10_000]);
        assert_eq!(out.len() + drops.len(), 10_000);
        assert!(drops.len().abs_diff(2_500) < 175, "{} lost, deviation 43", drops.len());
        assert!(drops.iter().all(|r| *r == DropReason::Corrupted));
    }
}
