//! The element of a link: the most common one inline, all others behind a pointer.

use udccp_base::Instant;
use udccp_link::{Backlog, Change, Drops, Link, LinkStats, QueueLimit, RateDelay};

use crate::packet::PacketHandle;

/// A link element. Nearly all links are plain; for those the compiler can inline every call, which
/// makes a hop a third cheaper. No observer looks at a plain one, and nothing else has a part in
/// what enters.
#[derive(Debug)]
pub(crate) enum Element {
    /// Loss, a drop-tail queue, rate and delay.
    Plain(RateDelay<PacketHandle>),
    /// Anything else.
    Other(Box<dyn Link<PacketHandle>>),
}

impl Link<PacketHandle> for Element {
    #[inline(always)]
    fn handle_packet(
        &mut self,
        now: Instant,
        packet: PacketHandle,
        drops: &mut Drops<PacketHandle>,
    ) {
        match self {
            Self::Plain(link) => link.handle_packet(now, packet, drops),
            Self::Other(link) => link.handle_packet(now, packet, drops),
        }
    }

    #[inline(always)]
    fn poll_departure(
        &mut self,
        now: Instant,
        drops: &mut Drops<PacketHandle>,
    ) -> Option<PacketHandle> {
        match self {
            Self::Plain(link) => link.poll_departure(now, drops),
            Self::Other(link) => link.poll_departure(now, drops),
        }
    }

    #[inline(always)]
    fn poll_timeout(&self) -> Option<Instant> {
        match self {
            Self::Plain(link) => link.poll_timeout(),
            Self::Other(link) => link.poll_timeout(),
        }
    }

    fn packets_inside(&self) -> usize {
        match self {
            Self::Plain(link) => link.packets_inside(),
            Self::Other(link) => link.packets_inside(),
        }
    }

    fn backlog(&mut self, now: Instant) -> Backlog {
        match self {
            Self::Plain(link) => link.backlog(now),
            Self::Other(link) => link.backlog(now),
        }
    }

    #[inline(always)]
    fn empties_at(&self, now: Instant) -> Instant {
        match self {
            Self::Plain(link) => link.empties_at(now),
            Self::Other(link) => link.empties_at(now),
        }
    }

    fn limit(&self) -> QueueLimit {
        match self {
            Self::Plain(link) => link.limit(),
            Self::Other(link) => link.limit(),
        }
    }

    fn keeps_order(&self) -> bool {
        match self {
            Self::Plain(link) => link.keeps_order(),
            Self::Other(link) => link.keeps_order(),
        }
    }

    #[inline]
    fn duplicated(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            Self::Other(link) => link.duplicated(),
        }
    }

    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<PacketHandle>) {
        match self {
            Self::Plain(link) => link.change(now, change, drops),
            Self::Other(link) => link.change(now, change, drops),
        }
    }

    fn stats(&self, now: Instant) -> LinkStats {
        match self {
            Self::Plain(link) => link.stats(now),
            Self::Other(link) => link.stats(now),
        }
    }

    fn counters(&self, now: Instant) -> LinkStats {
        match self {
            Self::Plain(link) => link.counters(now),
            Self::Other(link) => link.counters(now),
        }
    }
}
