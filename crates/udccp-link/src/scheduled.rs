//! Links that change at scheduled times.

use udccp_base::Instant;

use crate::change::Change;
use crate::limit::{Backlog, QueueLimit};
use crate::link::{Drops, Link};
use crate::stats::LinkStats;

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
