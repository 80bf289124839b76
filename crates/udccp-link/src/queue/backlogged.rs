//! A first-in, first-out queue that counts its packets and bytes.

use std::collections::VecDeque;

use udccp_base::Instant;

use super::Waiting;
use crate::limit::Backlog;
use crate::packet::Packet;

/// A queue of packets with its length in packets and bytes.
#[derive(Clone, Debug)]
pub(crate) struct Fifo<P> {
    line: VecDeque<Waiting<P>>,
    bytes: u64,
}

impl<P> Default for Fifo<P> {
    fn default() -> Self {
        Self { line: VecDeque::new(), bytes: 0 }
    }
}

impl<P: Packet> Fifo<P> {
    pub(crate) fn push(&mut self, since: Instant, packet: P) {
        self.bytes += u64::from(packet.wire_len());
        self.line.push_back(Waiting { since, packet });
    }

    pub(crate) fn pop(&mut self) -> Option<Waiting<P>> {
        let first = self.line.pop_front()?;
        self.bytes -= u64::from(first.packet.wire_len());
        Some(first)
    }

    pub(crate) fn backlog(&self) -> Backlog {
        Backlog { packets: self.line.len() as u64, bytes: self.bytes }
    }
}
