//! Packets that reach the far ends of links, and cross the next ones.

use udccp_base::Instant;

use super::Engine;
use crate::fabric::Hop;
use crate::network::Node;
use crate::packet::PacketHandle;

/// What happens next with a packet that reached a router.
enum Next {
    /// It waits for an event in the queue, or was dropped.
    Nothing,
    /// The next event of all is one of this link, and not in the queue.
    Link(usize),
    /// It reached this host.
    Host(u32),
}

impl Engine {
    /// One or more packets reach the far end of a link. They travel on while no other event comes
    /// before: such events never enter the queue. The first event is the first in the queue, or, if
    /// not `is_queued`, not in the queue.
    #[inline(always)]
    pub(super) fn link_event(&mut self, mut index: usize, mut is_queued: bool) {
        loop {
            self.fabric.cost.events += 1;
            let (arrival, due) = self.fabric.depart(self.now, index);
            let Some((to, handle)) = arrival else {
                return self.fabric.rearm(index, due);
            };
            if due <= self.now {
                return self.link_event_batch(index, to, handle);
            }
            self.fabric.rearm_first(index, due, is_queued);
            is_queued = false;
            let next = match to {
                Node::Host(host) => Next::Host(host),
                Node::Router(router) => self.forward((index, due), router, handle),
            };
            let host = match next {
                Next::Host(host) => host,
                Next::Link(link) => {
                    index = link;
                    continue;
                }
                Next::Nothing => return,
            };
            match self.arrive(host, handle) {
                Some(link) => index = link as usize,
                None => return,
            }
        }
    }

    /// A packet reached a router. It crosses the links behind it while the next event of all is
    /// that it reaches the far end of one. For `upstream` see [`Fabric::forward`].
    #[inline(always)]
    fn forward(&mut self, upstream: (usize, Instant), router: u32, handle: PacketHandle) -> Next {
        match self.fabric.forward(self.now, router, handle, upstream) {
            Hop::Stays => Next::Nothing,
            Hop::Due { index, at } => {
                (self.now, self.simultaneous) = (at, 0);
                Next::Link(index)
            }
            Hop::Crosses { index, at, to } => {
                self.cross(index, at, handle);
                match to {
                    Node::Host(host) => Next::Host(host),
                    Node::Router(router) => {
                        self.forward_on(index, router, handle).map_or(Next::Nothing, Next::Host)
                    }
                }
            }
        }
    }

    /// Like [`Self::forward`], for a packet that has crossed a link between routers, as few do.
    /// Returns the host that it reaches, if it does now.
    #[cold]
    fn forward_on(
        &mut self,
        mut from: usize,
        mut router: u32,
        handle: PacketHandle,
    ) -> Option<u32> {
        loop {
            let upstream = (from, Instant::MAX);
            match self.fabric.forward(self.now, router, handle, upstream) {
                Hop::Stays => return None,
                Hop::Due { index, at } => {
                    // The first event of all, so nothing changes if it enters the queue.
                    self.fabric.rearm(index, at);
                    return None;
                }
                Hop::Crosses { index, at, to } => {
                    self.cross(index, at, handle);
                    match to {
                        Node::Host(host) => return Some(host),
                        Node::Router(far) => (from, router) = (index, far),
                    }
                }
            }
        }
    }

    /// A packet crosses an empty link, which no other event precedes.
    #[inline(always)]
    fn cross(&mut self, index: usize, at: Instant, handle: PacketHandle) {
        (self.now, self.simultaneous) = (at, 0);
        self.fabric.cost.events += 1;
        self.fabric.record_crossing(at, index, handle);
    }

    /// Several packets reach the far end of a link at once, which is rare.
    #[cold]
    fn link_event_batch(&mut self, index: usize, mut to: Node, mut handle: PacketHandle) {
        let now = self.now;
        // So that each packet is entered on the next link and goes no further.
        let horizon = core::mem::replace(&mut self.fabric.horizon, Instant::ZERO);
        let mut reached = None;
        let mut due = now;
        loop {
            match to {
                Node::Router(router) => {
                    self.fabric.forward(now, router, handle, (index, Instant::MAX));
                }
                Node::Host(host) if self.arrive_any(host, handle) => reached = Some(host as usize),
                Node::Host(_) => {}
            }
            self.fabric.rearm(index, due);
            if due > now {
                break;
            }
            let (arrival, next_due) = self.fabric.depart(now, index);
            due = next_due;
            let Some(next) = arrival else {
                self.fabric.rearm(index, due);
                break;
            };
            (to, handle) = next;
        }
        if let Some(host) = reached {
            self.drain_later(host);
        }
        self.restore(horizon);
    }
}
