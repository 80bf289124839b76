//! Everything between the hosts: links, routers, packets on their way, and who watches them.

use udccp_base::{Datagram, Instant};
use udccp_link::{DropReason, Drops, Link};

use crate::element::Element;
use crate::events::EventQueue;
use crate::hash::{EventHash, Kind};
use crate::network::Node;
use crate::observe::Observer;
use crate::packet::{Meta, PacketStore, Parcel};
use crate::record::{Crossings, PathRecorder};
use crate::result::Cost;

/// Initial time to live of a packet.
const TTL: u8 = 64;

/// The network as it runs.
pub(crate) struct Fabric {
    pub(crate) links: Vec<RunningLink>,
    /// For every router the link to take to each host.
    pub(crate) routes: Vec<Vec<u32>>,
    pub(crate) packets: PacketStore,
    pub(crate) paths: Vec<PathRecorder>,
    pub(crate) crossings: Crossings,
    pub(crate) events: EventQueue,
    pub(crate) hash: EventHash,
    pub(crate) cost: Cost,
    pub(crate) observer: Option<Box<Observer>>,
    pub(crate) drops: Drops<Parcel>,
    /// Number of the first link among the components (hosts come first).
    pub(crate) first_link: usize,
}

/// One direction of a link.
pub(crate) struct RunningLink {
    pub(crate) element: Element,
    pub(crate) to: Node,
    /// Between two routers.
    pub(crate) is_bottleneck: bool,
    /// The copies that it has made so far, where it makes any.
    pub(crate) copies: Option<u64>,
}

impl Fabric {
    /// A host puts the packet in `said` on its link. `to` is the number of the destination host;
    /// no route leads to a number that no host has.
    #[inline]
    pub(crate) fn send(&mut self, now: Instant, from: Sending, to: u32, said: Option<Datagram>) {
        let Some(datagram) = &said else { return };
        let len = datagram.ip_len() as u32;
        let ecn = datagram.ecn;
        let path = from.path;
        self.hash.log(now, from.host, Kind::Sent, len);
        self.paths[path as usize].sent(len, !datagram.payload.is_empty());
        let meta = Meta { sent: now, path, uid: self.cost.packets };
        self.cost.packets += 1;
        let slot = self.packets.insert(said, meta);
        let parcel = Parcel { slot, len, to, ecn, ttl: TTL };
        if let (Some(observer), Some(packet)) = (&mut self.observer, self.packets.get(slot)) {
            observer.sent(now, from.host, parcel, packet);
        }
        self.enter(now, from.uplink as usize, parcel);
    }

    /// A packet arrives at the near end of a link.
    #[inline]
    fn enter(&mut self, now: Instant, index: usize, parcel: Parcel) {
        let Some(link) = self.links.get_mut(index) else {
            let component = self.first_link + self.links.len();
            return self.discard(now, component, parcel, DropReason::NoRoute);
        };
        let element = &mut link.element;
        element.handle_packet(now, parcel, &mut self.drops);
        self.events.set(self.first_link + index, element.poll_timeout());
        let mut times = 1;
        if let Some(before) = &mut link.copies {
            let copies = element.duplicated() - core::mem::replace(before, element.duplicated());
            if copies > 0 {
                times += copies;
                self.packets.share(parcel.slot, copies as u32);
                let path = self.packets.meta(parcel.slot).path;
                self.paths[path as usize].duplicated(copies);
            }
        }
        if let Some(observer) = &mut self.observer {
            let uid = self.packets.meta(parcel.slot).uid;
            observer.entered(now, index, element, uid, times);
        }
        if !self.drops.is_empty() {
            self.discard_all(now, index);
        }
    }

    /// A packet reached a router.
    #[inline]
    pub(crate) fn forward(&mut self, now: Instant, router: u32, mut parcel: Parcel) {
        parcel.ttl = parcel.ttl.saturating_sub(1);
        let table = &self.routes[router as usize];
        let link = table.get(parcel.to as usize).copied().unwrap_or(u32::MAX);
        self.enter(now, link as usize, parcel);
    }

    /// The next packet that reaches the far end of a link at `now`.
    #[inline]
    pub(crate) fn depart(&mut self, now: Instant, index: usize) -> Option<(Node, Parcel)> {
        let link = &mut self.links[index];
        let (to, is_bottleneck) = (link.to, link.is_bottleneck);
        let parcel = link.element.poll_departure(now, &mut self.drops);
        if !self.drops.is_empty() {
            self.discard_all(now, index);
        }
        let parcel = parcel?;
        self.cost.hops += 1;
        self.hash.log(now, self.first_link + index, Kind::Departed, parcel.len);
        if is_bottleneck {
            self.crossings.count(index, self.packets.meta(parcel.slot).path, parcel.len);
        }
        if let (Some(observer), Some(packet)) = (&mut self.observer, self.packets.get(parcel.slot))
        {
            observer.departed(now, index, parcel, packet);
        }
        Some((to, parcel))
    }

    /// Looks up anew when a link has its next event. Returns whether that is `now`.
    #[inline]
    pub(crate) fn rearm(&mut self, index: usize, now: Instant) -> bool {
        let due = self.links[index].element.poll_timeout();
        self.events.set(self.first_link + index, due);
        due.is_some_and(|due| due <= now)
    }

    /// A packet reached a host. If it is for that host, it can now be taken out of the store.
    #[inline]
    pub(crate) fn arrive(&mut self, now: Instant, host: u32, parcel: Parcel) -> bool {
        if parcel.to != host {
            self.discard(now, host as usize, parcel, DropReason::NoRoute);
            return false;
        }
        if let (Some(observer), Some(packet)) = (&mut self.observer, self.packets.get(parcel.slot))
        {
            observer.delivered(now, host as usize, parcel, packet);
        }
        let meta = self.packets.meta(parcel.slot);
        let Some(datagram) = self.packets.datagram_mut(parcel.slot) else { return false };
        datagram.ecn = parcel.ecn;
        let has_data = !datagram.payload.is_empty();
        self.paths[meta.path as usize].delivered(meta.sent, now, parcel.len, has_data);
        true
    }

    #[cold]
    fn discard_all(&mut self, now: Instant, index: usize) {
        let mut drops = core::mem::take(&mut self.drops);
        for (parcel, reason) in drops.drain(..) {
            if let Some(observer) = &mut self.observer {
                observer.dropped(index, self.packets.meta(parcel.slot).uid);
            }
            self.discard(now, self.first_link + index, parcel, reason);
        }
        self.drops = drops;
    }

    #[cold]
    fn discard(&mut self, now: Instant, component: usize, parcel: Parcel, reason: DropReason) {
        self.hash.log(now, component, Kind::Dropped, parcel.len);
        let path = self.packets.meta(parcel.slot).path;
        drop(self.packets.take(parcel.slot));
        self.paths[path as usize].dropped(reason);
    }
}

/// Who sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending {
    pub(crate) host: usize,
    pub(crate) uplink: u32,
    pub(crate) path: u32,
}
