//! First in, first out; a full queue drops the packets that have waited longest.

use udccp_base::Instant;

use super::backlogged::Fifo;
use super::{Queue, Waiting};
use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;
use crate::stats::DropReason;

/// Drops from the front to make room at the back. So senders detect the loss earlier, by a queueing
/// delay (T. V. Lakshman, A. Neidhardt and T. J. Ott, "The Drop from Front Strategy in TCP and in
/// TCP over ATM", INFOCOM 1996).
#[derive(Debug)]
pub struct DropHead<P> {
    limit: QueueLimit,
    fifo: Fifo<P>,
}

impl<P: Packet> DropHead<P> {
    /// An empty queue.
    pub fn new(limit: QueueLimit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl<P: Packet + core::fmt::Debug + Send> Queue<P> for DropHead<P> {
    fn enqueue(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>) {
        while !idle && !self.limit.admits(self.fifo.backlog(), packet.wire_len()) {
            let Some(oldest) = self.fifo.pop() else {
                // It does not fit even in an empty queue.
                drops.push((packet, DropReason::QueueFull));
                return;
            };
            drops.push((oldest.packet, DropReason::QueueFull));
        }
        self.fifo.push(now, packet);
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
