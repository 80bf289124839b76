//! Scheduled changes of a link while it runs.

use udccp_base::{DataRate, Duration, Instant};

use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::loss::LossConfig;
use crate::stats::LinkStats;

/// A change of a link.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Another rate. A packet that is being transmitted continues at it; at rate zero everything
    /// stands still and waits.
    Rate(DataRate),
    /// Another propagation delay, for packets that have not left the transmitter. The order of
    /// packets is kept.
    Delay(Duration),
    /// Another loss model, in its first state.
    Loss(LossConfig),
    /// The link goes down (`true`) or comes up (`false`). As a Linux interface does when it is set
    /// down, the transmitter drops what waits and what it transmits, and what arrives until the
    /// link is up again. What propagates already arrives.
    Down(bool),
}

/// A link that changes at set times.
#[derive(Debug)]
pub struct Scheduled<L> {
    link: L,
    /// The changes to come, the next one last.
    changes: Vec<(Instant, Change)>,
}

impl<L> Scheduled<L> {
    /// `link` with `changes`, which may come in any order; changes at one instant are made in the
    /// order given, before the packets of that instant.
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
