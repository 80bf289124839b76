//! First in, first out; a full queue drops arriving packets.

use udccp_base::Instant;

use super::backlogged::Fifo;
use super::{Queue, Waiting};
use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;
use crate::stats::DropReason;

/// Drops packets that arrive while the queue is full.
#[derive(Debug)]
pub struct DropTail<P> {
    limit: QueueLimit,
    fifo: Fifo<P>,
}

impl<P: Packet> DropTail<P> {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl<P: Packet + core::fmt::Debug + Send> Queue<P> for DropTail<P> {
    fn enqueue(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>) {
        if idle || self.limit.admits(self.fifo.backlog(), packet.wire_len()) {
            self.fifo.push(now, packet);
        } else {
            drops.push((packet, DropReason::QueueFull));
        }
    }

    fn dequeue(&mut self, _now: Instant, _drops: &mut Drops<P>) -> Option<Waiting<P>> {
        self.fifo.pop()
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn limit(&self) -> QueueLimit {
        self.limit
    }
}
