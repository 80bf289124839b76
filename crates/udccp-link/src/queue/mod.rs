//! Queue disciplines: who waits, who is dropped, who is marked.

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

/// A packet in a queue, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting<P> {
    /// When it arrived.
    pub since: Instant,
    /// The packet.
    pub packet: P,
}

/// A queue before a transmitter. What is on the transmitter is not in the queue.
///
/// A packet that a queue refuses or gives up goes to `drops` with the reason; of every other packet
/// it takes, the queue gives back one.
pub trait Queue<P>: fmt::Debug + Send {
    /// A packet arrives. `idle` says that the transmitter has nothing to do and asks for a packet
    /// next: a queue that has a limit then takes one packet even if it has room for none.
    fn enqueue(&mut self, now: Instant, packet: P, idle: bool, drops: &mut Drops<P>);

    /// The packet to transmit next; `None` when nothing is left.
    fn dequeue(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<Waiting<P>>;

    /// What waits.
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

/// Marks a packet whose sender understands marks; says whether it did (RFC 3168 section 5).
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
