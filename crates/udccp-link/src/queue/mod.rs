//! Queue disciplines: which packets wait, are dropped, or are marked.

mod backlogged;
mod codel;
mod drop_head;
mod drop_tail;
mod fq_codel;
mod pie;
mod red;

use core::fmt;

use udccp_base::Instant;

use crate::limit::{Backlog, QueueLimit};
use crate::link::Drops;
use crate::packet::Packet;

pub use codel::{CoDel, CoDelConfig};
pub use drop_head::DropHead;
pub use drop_tail::DropTail;
pub use fq_codel::{FqCoDel, FqCoDelConfig};
pub use pie::{Pie, PieConfig};
pub use red::{Adaptive, Red, RedConfig, RedUnit};

/// A packet in a queue, with its arrival time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<P> {
    /// When it arrived.
    pub since: Instant,
    /// The packet.
    pub packet: P,
}

/// A queue in front of a transmitter. The packet in transmission is not in the queue.
///
/// Packets that the queue refuses or drops go to `drops` with the reason. All others are returned.
pub trait Queue<P>: fmt::Debug + Send {
    /// A packet arrives. If `idle`, the transmitter is free and takes a packet next, so a queue
    /// with a limit accepts one packet even if its limit leaves no room.
    fn enqueue(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>);

    /// The packet to transmit next; `None` if the queue is empty.
    fn dequeue(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<Waiting<P>>;

    /// The packets and bytes that wait.
    fn backlog(&self) -> Backlog;

    /// The limit.
    fn limit(&self) -> QueueLimit;

    /// Whether packets leave in the order of their arrival.
    fn keeps_order(&self) -> bool {
        true
    }

    /// Packets marked "congestion experienced" so far.
    fn marked(&self) -> u64 {
        0
    }
}

/// Marks a packet if its sender supports ECN; returns whether it did (RFC 3168 section 5).
pub(crate) fn mark<P: Packet>(packet: &mut P, enabled: bool, marked: &mut u64) -> bool {
    if !enabled || !packet.ecn().is_capable() {
        return false;
    }
    packet.mark_ce();
    *marked += 1;
    true
}

#[cfg(test)]
mod tests;
