//! Everything between the hosts: links, routers, packets in flight, and recorders.

use std::collections::BTreeMap;

use udccp_base::{Ecn, Instant};
use udccp_link::{DropReason, Drops, Link, RateDelay};

use crate::element::Element;
use crate::events::EventQueue;
use crate::hash::{EventHash, Kind};
use crate::network::{LinkSpec, Node, Routes};
use crate::observe::Observer;
use crate::packet::{Meta, PacketHandle, PacketStore};
use crate::quick_start::QuickStartLink;
use crate::record::{Crossings, PathRecorder};
use crate::result::Cost;

/// The network during a run.
pub(crate) struct Fabric {
    pub(crate) links: Vec<RunningLink>,
    /// Number of links between two routers, which come first.
    pub(crate) between_routers: usize,
    pub(crate) special_links: BTreeMap<usize, Special>,
    pub(crate) routes: Routes,
    pub(crate) packets: PacketStore,
    pub(crate) paths: Vec<PathRecorder>,
    pub(crate) crossings: Crossings,
    pub(crate) events: EventQueue,
    pub(crate) hash: EventHash,
    pub(crate) cost: Cost,
    pub(crate) observer: Option<Box<Observer>>,
    pub(crate) drops: Drops<PacketHandle>,
    /// When to look at what few events need: marks, the end, the flag that stops a run, failures.
    pub(crate) horizon: Instant,
    /// When the first packet that the host now sends leaves its link, if that was idle; otherwise
    /// [`Instant::MAX`]. The event is not in the queue yet.
    pub(crate) first_departure: Instant,
    /// For each pair, the packets between its hosts that were dropped, minus the copies made.
    pub(crate) net_losses: Vec<i32>,
    /// Whether there is no observer, no packet has an option, and none is duplicated.
    pub(crate) is_simple: bool,
    /// Number of the first link among the components (hosts come first).
    pub(crate) first_link: usize,
}

/// One direction of a link.
pub(crate) struct RunningLink {
    pub(crate) element: Element,
    pub(crate) to: Node,
}

/// State that few links have.
pub(crate) struct Special {
    /// The copies that the link has made so far.
    copies: u64,
    /// Present if the router at its near end takes part in Quick-Start.
    quick_start: Option<QuickStartLink>,
}

impl Special {
    /// The state of a link that makes copies, or whose router takes part in Quick-Start.
    pub(crate) fn of(spec: &LinkSpec, quick_start: bool) -> Option<Self> {
        let takes_part = quick_start && matches!(spec.from, Node::Router(_));
        let quick_start = takes_part.then(|| QuickStartLink::new(spec.config.rate));
        let is_special = takes_part || spec.duplicates();
        is_special.then_some(Self { copies: 0, quick_start })
    }
}

impl RunningLink {
    /// The element, if nothing but the element handles what enters and leaves.
    #[inline(always)]
    fn plain(&mut self) -> Option<&mut RateDelay<PacketHandle>> {
        match &mut self.element {
            Element::Plain(plain) => Some(plain),
            Element::Other(_) => None,
        }
    }
}

impl Fabric {
    /// Sends the packet that a host wrote into a vacant slot of the store on the host's link.
    /// If the link accepted it and the host watches its device, returns when everything in the
    /// link's queue has left it.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        now: Instant,
        from: Sending,
        packet: Outgoing,
    ) -> Option<Instant> {
        let Outgoing { slot, next_free, len, to, ecn, has_data, watches } = packet;
        let path = from.path;
        self.hash.log(now, from.host, Kind::Sent, len);
        self.paths[path as usize].sent(len, has_data);
        self.cost.packets += 1;
        self.packets.keep(slot, path, next_free);
        let handle = PacketHandle::new(slot, to, path, len, ecn);
        let index = from.uplink as usize;
        if let Some(link) = self.links.get_mut(index)
            && let Some(plain) = link.plain()
        {
            let times = match plain.accept(now, len) {
                Ok(times) => times,
                Err(reason) => {
                    self.discard(now, self.first_link + index, handle, reason);
                    return None;
                }
            };
            if plain.next() == Instant::MAX {
                self.first_departure = times.deliver;
            }
            plain.hold(times, handle);
            return watches.then(|| plain.empties_at(now));
        }
        self.send_any(now, (from.host, index), handle, watches)
    }

    /// The general case of [`Self::send`].
    fn send_any(
        &mut self,
        now: Instant,
        (host, uplink): (usize, usize),
        handle: PacketHandle,
        watches: bool,
    ) -> Option<Instant> {
        self.packets.slot(handle.slot()).meta.uid = (self.cost.packets - 1) as u32;
        if let Some(observer) = &mut self.observer
            && let Some(packet) = self.packets.get(handle.slot())
        {
            observer.sent(now, host, handle, packet);
        }
        let is_taken = self.enter(now, uplink, handle);
        self.rearm(uplink, self.poll_timeout(uplink));
        let link = self.links.get(uplink).filter(|_| is_taken && watches);
        link.map(|link| link.element.empties_at(now))
    }

    /// A packet enters a link at its near end. Returns whether the link accepted it.
    fn enter(&mut self, now: Instant, index: usize, handle: PacketHandle) -> bool {
        let Some(link) = self.links.get_mut(index) else {
            let component = self.first_link + self.links.len();
            self.discard(now, component, handle, DropReason::NoRoute);
            return false;
        };
        let element = &mut link.element;
        element.handle_packet(now, handle, &mut self.drops);
        let mut times = 1;
        if let Some(special) = self.special_links.get_mut(&index) {
            if let Some(quick_start) = &mut special.quick_start {
                quick_start.on_packet(now, handle.len());
            }
            let before = core::mem::replace(&mut special.copies, element.duplicated());
            let copies = special.copies - before;
            if copies > 0 {
                times += copies;
                self.packets.share(handle.slot(), copies as u32);
                self.paths[handle.path() as usize].duplicated(copies);
                count_losses(&mut self.net_losses, handle, -(copies as i32));
            }
        }
        if let Some(observer) = &mut self.observer {
            let uid = self.packets.meta(handle.slot()).uid;
            observer.entered(now, index, element, uid, times);
        }
        if self.drops.is_empty() {
            return true;
        }
        let is_taken = self.drops.iter().all(|(dropped, _)| dropped.slot() != handle.slot());
        self.discard_all(now, index);
        is_taken
    }

    /// A packet reached a router, and enters the next link. An event of that link before the
    /// horizon, and before all other events, is processed at once and never enters the queue.
    /// `upstream` is the link that the packet came from, with the time of its next event. That
    /// event has just entered the queue, and at equal times comes last.
    #[inline(always)]
    pub(crate) fn forward(
        &mut self,
        now: Instant,
        router: u32,
        handle: PacketHandle,
        upstream: (usize, Instant),
    ) -> Hop {
        let index = self.routes.link(router, handle.to()) as usize;
        let Some(link) = self.links.get_mut(index) else {
            let component = self.first_link + self.links.len();
            self.discard(now, component, handle, DropReason::NoRoute);
            return Hop::Stays;
        };
        let to = link.to;
        let Some(plain) = link.plain() else {
            return match self.forward_any(now, index, handle, upstream) {
                Instant::MAX => Hop::Stays,
                at => Hop::Due { index, at },
            };
        };
        let times = match plain.accept(now, handle.len()) {
            Ok(times) => times,
            Err(reason) => {
                self.discard(now, self.first_link + index, handle, reason);
                return Hop::Stays;
            }
        };
        if plain.next() != Instant::MAX {
            plain.hold(times, handle);
            return Hop::Stays;
        }
        let at = times.deliver;
        if at < self.horizon && at > now && at < self.events.earliest().0 {
            return Hop::Crosses { index, at, to };
        }
        plain.hold(times, handle);
        self.rearm_before(index, at, upstream);
        Hop::Stays
    }

    /// The general case of [`Self::forward`]. If anything reads the time to live, all links are of
    /// this kind. Returns the same as [`Self::schedule`].
    fn forward_any(
        &mut self,
        now: Instant,
        index: usize,
        mut handle: PacketHandle,
        upstream: (usize, Instant),
    ) -> Instant {
        handle.lower_ttl();
        if !self.packets.options.is_empty() {
            self.process_quick_start(now, index, handle.slot());
        }
        self.enter(now, index, handle);
        self.schedule(index, now, upstream)
    }

    /// A router that takes part in Quick-Start processes the option of a packet, if it has one.
    #[cold]
    fn process_quick_start(&mut self, now: Instant, index: usize, slot: u32) {
        let option = self.packets.options.get_mut(&slot);
        let link = self.special_links.get_mut(&index).and_then(|link| link.quick_start.as_mut());
        if let (Some(option), Some(link)) = (option, link) {
            link.on_option(now, option);
        }
    }

    /// Returns the next packet that reaches the far end of a link at `now`, and when the link has
    /// its next event; [`Instant::MAX`] for never.
    #[inline(always)]
    pub(crate) fn depart(
        &mut self,
        now: Instant,
        index: usize,
    ) -> (Option<(Node, PacketHandle)>, Instant) {
        let link = &mut self.links[index];
        let to = link.to;
        let Some(plain) = link.plain() else { return self.depart_any(now, index) };
        let Some(handle) = plain.depart(now) else { return (None, plain.next()) };
        let due = plain.next();
        self.record_crossing(now, index, handle);
        (Some((to, handle)), due)
    }

    /// The general case of [`Self::depart`].
    #[inline(never)]
    fn depart_any(
        &mut self,
        now: Instant,
        index: usize,
    ) -> (Option<(Node, PacketHandle)>, Instant) {
        let link = &mut self.links[index];
        let to = link.to;
        let handle = link.element.poll_departure(now, &mut self.drops);
        let due = link.element.poll_timeout().unwrap_or(Instant::MAX);
        if !self.drops.is_empty() {
            self.discard_all(now, index);
        }
        let Some(handle) = handle else { return (None, due) };
        self.record_crossing(now, index, handle);
        if let Some(observer) = &mut self.observer
            && let Some(packet) = self.packets.get(handle.slot())
        {
            observer.departed(now, index, handle, packet);
        }
        (Some((to, handle)), due)
    }

    /// A packet reached the far end of a link.
    #[inline(always)]
    pub(crate) fn record_crossing(&mut self, now: Instant, index: usize, handle: PacketHandle) {
        self.cost.hops += 1;
        self.hash.log_departure(now, index, handle.len());
        if index < self.between_routers {
            self.crossings.count(index, handle.path(), handle.len());
        }
    }

    /// A host's flow is over: frees memory of its access link, in both directions.
    pub(crate) fn shrink(&mut self, uplink: usize) {
        for link in self.links.iter_mut().skip(uplink).take(2) {
            if let Element::Plain(plain) = &mut link.element {
                plain.shrink();
            }
        }
    }

    /// When a link has its next event; [`Instant::MAX`] for never, or if there is no such link.
    pub(crate) fn poll_timeout(&self, index: usize) -> Instant {
        let link = self.links.get(index);
        link.and_then(|link| link.element.poll_timeout()).unwrap_or(Instant::MAX)
    }

    /// Sets the next event of a link to `due`.
    #[inline(always)]
    pub(crate) fn rearm(&mut self, index: usize, due: Instant) {
        if index < self.links.len() {
            self.events.set(self.first_link + index, due);
        }
    }

    /// Sets the next event of a link to `due`; for `upstream` see [`Self::forward`].
    #[inline(always)]
    fn rearm_before(&mut self, index: usize, due: Instant, upstream: (usize, Instant)) {
        self.events.set(self.first_link + index, due);
        if due == upstream.1 && due != Instant::MAX {
            self.events.put_last(self.first_link + upstream.0);
        }
    }

    /// Sets the next event of a link to `due`. Its last event was the first in the queue, or, if
    /// not `is_queued`, not in the queue.
    #[inline(always)]
    pub(crate) fn rearm_first(&mut self, index: usize, due: Instant, is_queued: bool) {
        let component = self.first_link + index;
        if is_queued {
            self.events.set_first(component, due);
        } else if due != Instant::MAX {
            self.events.set(component, due);
        }
    }

    /// A packet has just entered a link. If the link's event is now the next of all, and before the
    /// horizon, returns its time, and the event does not enter the queue. Otherwise the event
    /// enters the queue, and this returns [`Instant::MAX`]. For `upstream` see [`Self::forward`].
    fn schedule(&mut self, index: usize, now: Instant, upstream: (usize, Instant)) -> Instant {
        let (due, component) = (self.poll_timeout(index), self.first_link + index);
        if due < self.horizon && due > now {
            let was_idle = self.events.due(component) == Instant::MAX;
            if was_idle && due < self.events.earliest().0 {
                return due;
            }
        }
        if index < self.links.len() {
            self.rearm_before(index, due, upstream);
        }
        Instant::MAX
    }

    /// A packet reached a host. If it is for that host, it can now be removed from the store.
    pub(crate) fn arrive(&mut self, now: Instant, host: u32, handle: PacketHandle) -> bool {
        if handle.to() != host {
            self.discard(now, host as usize, handle, DropReason::NoRoute);
            return false;
        }
        if let Some(observer) = &mut self.observer
            && let Some(packet) = self.packets.get(handle.slot())
        {
            observer.delivered(now, host as usize, handle, packet);
        }
        let Meta { sent, has_data, .. } = *self.packets.meta(handle.slot());
        self.paths[handle.path() as usize].delivered(sent, now, handle.len(), has_data);
        true
    }

    #[cold]
    fn discard_all(&mut self, now: Instant, index: usize) {
        let mut drops = core::mem::take(&mut self.drops);
        for (handle, reason) in drops.drain(..) {
            if let Some(observer) = &mut self.observer {
                observer.dropped(index, self.packets.meta(handle.slot()).uid);
            }
            self.discard(now, self.first_link + index, handle, reason);
        }
        self.drops = drops;
    }

    #[cold]
    fn discard(
        &mut self,
        now: Instant,
        component: usize,
        handle: PacketHandle,
        reason: DropReason,
    ) {
        self.hash.log(now, component, Kind::Dropped, handle.len());
        drop(self.packets.take(handle.slot()));
        self.paths[handle.path() as usize].dropped(reason);
        count_losses(&mut self.net_losses, handle, 1);
    }
}

/// Counts packets between the hosts of a pair that were dropped; copies count as negative.
fn count_losses(all: &mut [i32], handle: PacketHandle, dropped: i32) {
    if let Some(net_losses) = all.get_mut(handle.to() as usize / 2) {
        *net_losses = net_losses.wrapping_add(dropped);
    }
}

/// What happened to a packet that a router forwarded.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hop {
    /// It waits for an event in the queue, or was dropped.
    Stays,
    /// The next event of all is that the packet reaches the far end of this link, which is a simple
    /// one. The packet is not stored in the link.
    Crosses {
        /// The link.
        index: usize,
        /// When.
        at: Instant,
        /// The far end.
        to: Node,
    },
    /// The next event of all is one of this link.
    Due {
        /// The link.
        index: usize,
        /// When.
        at: Instant,
    },
}

/// A packet that a host sends, without its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// Index of its slot in the store, and of the next free slot.
    pub(crate) slot: u32,
    pub(crate) next_free: u32,
    /// IP length in bytes.
    pub(crate) len: u32,
    /// Number of the destination host; no route leads to a number that no host has.
    pub(crate) to: u32,
    pub(crate) ecn: Ecn,
    pub(crate) has_data: bool,
    /// Whether the host wants to know when it leaves the device.
    pub(crate) watches: bool,
}

/// The sending host, with its link and path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) host: usize,
    pub(crate) uplink: u32,
    pub(crate) path: u32,
}
