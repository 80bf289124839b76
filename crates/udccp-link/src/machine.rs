//! Drives a link of datagrams as a machine.

use udccp_base::{Datagram, Instant, Machine};

use crate::link::{Drops, Link};

/// A link of [`Datagram`]s as a [`Machine`]: `poll_transmit` returns datagrams when they reach the
/// far end. Dropped datagrams are only counted.
#[derive(Debug)]
pub struct LinkMachine<L> {
    link: L,
    drops: Drops<Datagram>,
}

impl<L: Link<Datagram>> LinkMachine<L> {
    /// Drives `link`.
    pub const fn new(link: L) -> Self {
        Self { link, drops: Vec::new() }
    }

    /// The link.
    pub const fn link(&self) -> &L {
        &self.link
    }
}

impl<L: Link<Datagram>> Machine for LinkMachine<L> {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.link.handle_packet(now, datagram, &mut self.drops);
        self.drops.clear();
    }

    /// Does nothing: `poll_transmit` finds what is due.
    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let datagram = self.link.poll_departure(now, &mut self.drops);
        self.drops.clear();
        datagram
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.link.poll_timeout()
    }
}
