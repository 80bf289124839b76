//! The common parts of every transmitter with a queue: queue, output, counters.

use std::collections::VecDeque;

use udccp_base::{Duration, Instant};

use crate::link::Drops;
use crate::packet::Packet;
use crate::queue::Queue;
use crate::stats::{DropReason, LinkStats};

/// Queue, output and counters of a transmitter.
#[derive(Debug)]
pub(crate) struct Line<P> {
    pub(crate) queue: Box<dyn Queue<P>>,
    /// Packets that were transmitted, and when.
    out: VecDeque<(Instant, P)>,
    pub(crate) stats: LinkStats,
    is_down: bool,
    /// Marks on packets that were then dropped because the link went down.
    marked_in_vain: u64,
}

impl<P: Packet> Line<P> {
    pub(crate) fn new(queue: Box<dyn Queue<P>>) -> Self {
        let stats = LinkStats::default();
        Self { queue, out: VecDeque::new(), stats, is_down: false, marked_in_vain: 0 }
    }

    /// A packet arrives: it joins the queue or is dropped.
    pub(crate) fn arrive(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>) {
        let before = drops.len();
        self.stats.arrived.count(packet.wire_len());
        if self.is_down {
            drops.push((packet, DropReason::LinkDown));
        } else {
            self.queue.enqueue(now, packet, idle, drops);
        }
        self.count_drops(&drops[before..]);
    }

    /// Takes the next packet to transmit, at `at`.
    pub(crate) fn next(&mut self, at: Instant, drops: &mut Drops<P>) -> Option<P> {
        let before = drops.len();
        let waiting = self.queue.dequeue(at, drops);
        self.count_drops(&drops[before..]);
        let waiting = waiting?;
        self.stats.queue_delay.record(at - waiting.since);
        Some(waiting.packet)
    }

    /// A packet is transmitted.
    pub(crate) fn transmitted(&mut self, at: Instant, packet: P) {
        self.out.push_back((at, packet));
    }

    /// The next packet that has reached the far end.
    pub(crate) fn depart(&mut self, now: Instant) -> Option<P> {
        let (_, packet) = self.out.pop_front_if(|(at, _)| *at <= now)?;
        self.stats.departed.count(packet.wire_len());
        Some(packet)
    }

    /// When the next packet reaches the far end.
    pub(crate) fn departure(&self) -> Option<Instant> {
        self.out.front().map(|(at, _)| *at)
    }

    /// The link goes down or up. `transmitting` is the packet in transmission.
    pub(crate) fn set_down(
        &mut self,
        now: Instant,
        down: bool,
        transmitting: Option<P>,
        drops: &mut Drops<P>,
    ) {
        self.is_down = down;
        let (before, marked) = (drops.len(), self.queue.marked());
        drops.extend(transmitting.map(|packet| (packet, DropReason::LinkDown)));
        while let Some(waiting) = self.queue.dequeue(now, drops) {
            drops.push((waiting.packet, DropReason::LinkDown));
        }
        for (_, reason) in &mut drops[before..] {
            *reason = DropReason::LinkDown;
        }
        self.marked_in_vain += self.queue.marked() - marked;
        self.count_drops(&drops[before..]);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.backlog().packets == 0
    }

    /// Number of packets in the queue and in the output.
    pub(crate) fn packets(&self) -> usize {
        self.queue.backlog().packets as usize + self.out.len()
    }

    /// The counters of a transmitter that was busy for `busy`.
    pub(crate) fn stats(&self, busy: Duration) -> LinkStats {
        let mut stats = self.stats.clone();
        stats.marked = self.queue.marked() - self.marked_in_vain;
        stats.busy = busy;
        stats
    }

    fn count_drops(&mut self, drops: &[(P, DropReason)]) {
        for (packet, reason) in drops {
            self.stats.dropped[*reason as usize].count(packet.wire_len());
        }
    }
}
