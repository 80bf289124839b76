//! Scheduled changes of a link.

use udccp_base::{DataRate, Duration, Instant};

use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::loss::LossConfig;
use crate::stats::LinkStats;

/// A change of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// A new rate, which also applies to the packet in transmission. At rate zero everything waits.
    Rate(DataRate),
    /// A new propagation delay, for packets that have not left the transmitter. Packets stay in
    /// order.
    Delay(Duration),
    /// A new loss model, in its initial state.
    Loss(LossConfig),
    /// The link goes down (`true`) or up (`false`). As with a Linux interface that is set down, the
    /// queue and the packet in transmission are dropped, and so are packets that arrive until the
    /// link is up again. Packets that have left the transmitter still arrive.
    Down(bool),
}

/// A link with changes at scheduled times.
#[derive(Debug)]
pub struct Scheduled<L> {
    link: L,
    /// The remaining changes, the next one last.
    changes: Vec<(Instant, Change)>,
}

impl<L> Scheduled<L> {
    /// `link` with `changes`, in any order. Changes at the same time are made in the given order,
    /// before packets of that time are handled.
    pub fn new(link: L, mut changes: Vec<(Instant, Change)>) -> Self {
        changes.sort_by_key(|(at, _)| *at);
        changes.reverse();
        Self { link, changes }
    }

    fn apply<P>(&mut self, now: Instant, drops: &mut Drops<P>)
    where
        L: Link<P>,
    {
        while let Some((at, change)) = self.changes.pop_if(|(at, _)| *at <= now) {
            self.link.change(at, &change, drops);
        }
    }
}

impl<P, L: Link<P>> Link<P> for Scheduled<L> {
    fn handle_packet(&mut self, now: Instant, packet: P, drops: &mut Drops<P>) {
        self.apply(now, drops);
        self.link.handle_packet(now, packet, drops);
    }

    fn poll_departure(&mut self, now: Instant, drops: &mut Drops<P>) -> Option<P> {
        self.apply(now, drops);
        self.link.poll_departure(now, drops)
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let next = self.changes.last().map(|(at, _)| *at);
        next.into_iter().chain(self.link.poll_timeout()).min()
    }

    fn packets_inside(&self) -> usize {
        self.link.packets_inside()
    }

    fn backlog(&mut self, now: Instant) -> Backlog {
        self.link.backlog(now)
    }

    fn empties_at(&self, now: Instant) -> Instant {
        self.link.empties_at(now)
    }

    fn limit(&self) -> QueueLimit {
        self.link.limit()
    }

    fn keeps_order(&self) -> bool {
        self.link.keeps_order()
    }

    fn duplicated(&self) -> u64 {
        self.link.duplicated()
    }

    fn change(&mut self, now: Instant, change: &Change, drops: &mut Drops<P>) {
        self.link.change(now, change, drops);
    }

    fn stats(&self, now: Instant) -> LinkStats {
        self.link.stats(now)
    }
}
