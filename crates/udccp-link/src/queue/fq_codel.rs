//! Flow queues, each with CoDel.

use std::collections::VecDeque;

use udccp_base::{Instant, Rng};

use super::backlogged::Fifo;
use super::codel::Controller;
use super::{CoDelConfig, Queue, Waiting};
use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;
use crate::stats::DropReason;

/// Most packets dropped at once when the queue is full (RFC 8290 section 4.1).
const MOST_AT_ONCE: u64 = 64;

/// The settings of an [`FqCoDel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FqCoDelConfig {
    /// The settings of CoDel for each queue. `limit` is that of all queues together.
    pub codel: CoDelConfig,
    /// Number of queues into which flows are hashed.
    pub flows: u32,
    /// Bytes that a queue may send in one round.
    pub quantum: u32,
}

impl Default for FqCoDelConfig {
    /// 1024 queues, a quantum of 1514 bytes, a limit of 10240 packets, ECN (RFC 8290 section 5.2).
    fn default() -> Self {
        let limit = QueueLimit::Packets(10_240);
        let codel = CoDelConfig { ecn: true, limit, ..CoDelConfig::default() };
        Self { codel, flows: 1024, quantum: 1514 }
    }
}

/// Whether a queue is in a list, and in which.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Inactive,
    New,
    Old,
}

#[derive(Debug)]
struct FlowQueue<P> {
    fifo: Fifo<P>,
    controller: Controller,
    credits: i64,
    state: State,
}

/// Deficit round robin over flow queues, each with CoDel. A queue that was empty goes first (RFC
/// 8290).
#[derive(Debug)]
pub struct FqCoDel<P> {
    config: FqCoDelConfig,
    /// Salt of the flow hash.
    salt: u64,
    queues: Vec<FlowQueue<P>>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    backlog: Backlog,
    marked: u64,
}

impl<P: Packet> FqCoDel<P> {
    /// Empty queues. One number is drawn from `rng` to salt the flow hash.
    pub fn new(config: FqCoDelConfig, rng: &mut Rng) -> Self {
        let queue = || FlowQueue {
            fifo: Fifo::default(),
            controller: Controller::default(),
            credits: 0,
            state: State::Inactive,
        };
        Self {
            config,
            salt: rng.next_u64(),
            queues: (0..config.flows.max(1)).map(|_| queue()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Backlog::default(),
            marked: 0,
        }
    }

    /// The queue of a packet: its flow's hash, mixed with the salt (the finaliser of SplitMix64).
    fn queue_of(&self, packet: &P) -> usize {
        let mut h = packet.flow_hash() ^ self.salt;
        h = (h ^ (h >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        h = (h ^ (h >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((h ^ (h >> 31)) % self.queues.len() as u64) as usize
    }

    /// Makes room: drops half of the packets of the queue with the most bytes, oldest first.
    fn drop_from_fattest(&mut self, drops: &mut Drops<P>) {
        let bytes = |i: &usize| self.queues[*i].fifo.backlog().bytes;
        // The first of several equal ones, so that the result does not depend on the order of the
        // lists.
        let Some(fattest) = (0..self.queues.len()).max_by_key(|i| (bytes(i), usize::MAX - i))
        else {
            return;
        };
        let fifo = &mut self.queues[fattest].fifo;
        let count = (fifo.backlog().packets / 2).clamp(1, MOST_AT_ONCE);
        for _ in 0..count {
            let Some(victim) = fifo.pop() else { break };
            self.backlog.packets -= 1;
            self.backlog.bytes -= u64::from(victim.packet.wire_len());
            drops.push((victim.packet, DropReason::QueueFull));
        }
    }

    /// The queue to serve next. Queues that have used up their credit move to the end of the list
    /// of old queues.
    fn next_queue(&mut self) -> Option<usize> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let queue = &mut self.queues[index];
            if queue.credits > 0 {
                return Some(index);
            }
            queue.credits += i64::from(self.config.quantum.max(1));
            queue.state = State::Old;
            list.pop_front();
            self.old.push_back(index);
        }
    }

    /// Removes an empty queue from its list. A new queue moves to the end of the old ones, so that
    /// it cannot starve them by returning at once.
    fn retire(&mut self, index: usize) {
        let queue = &mut self.queues[index];
        if queue.state == State::New {
            queue.state = State::Old;
            self.new.pop_front();
            self.old.push_back(index);
        } else {
            queue.state = State::Inactive;
            self.old.pop_front();
        }
    }
}

impl<P: Packet + core::fmt::Debug + Send> Queue<P> for FqCoDel<P> {
    fn enqueue(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>) {
        let index = self.queue_of(&packet);
        let queue = &mut self.queues[index];
        self.backlog.packets += 1;
        self.backlog.bytes += u64::from(packet.wire_len());
        queue.fifo.push(now, packet);
        if queue.state == State::Inactive {
            queue.state = State::New;
            queue.credits = i64::from(self.config.quantum);
            self.new.push_back(index);
        }
        while !idle && !self.config.codel.limit.holds(self.backlog) && self.backlog.packets > 0 {
            self.drop_from_fattest(drops);
        }
    }

    fn dequeue(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<Waiting<P>> {
        while let Some(index) = self.next_queue() {
            let already = drops.len();
            let FlowQueue { fifo, controller, credits, .. } = &mut self.queues[index];
            let (codel, marked) = (&self.config.codel, &mut self.marked);
            let first = controller.dequeue(now, codel, fifo, marked, drops);
            let gone = drops[already..].iter().map(|(packet, _)| packet);
            for packet in gone.chain(first.as_ref().map(|w| &w.packet)) {
                self.backlog.packets -= 1;
                self.backlog.bytes -= u64::from(packet.wire_len());
            }
            match first {
                Some(first) => {
                    *credits -= i64::from(first.packet.wire_len());
                    return Some(first);
                }
                None => self.retire(index),
            }
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }

    fn limit(&self) -> QueueLimit {
        self.config.codel.limit
    }

    /// Order is kept only among packets of the same flow.
    fn keeps_order(&self) -> bool {
        false
    }

    fn marked(&self) -> u64 {
        self.marked
    }
}
