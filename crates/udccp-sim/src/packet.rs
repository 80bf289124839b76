//! Packets in the network. The datagrams stay in a store, and links carry handles.

use core::num::NonZeroU64;
use std::collections::BTreeMap;

use udccp_base::{Datagram, Ecn, Instant, QuickStart};
use udccp_link::Packet;

/// What links carry: a handle, and the fields that links, routers and recorders need. It has two
/// words: a hop moves it in two registers, and nothing accesses the datagram before its
/// destination.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct PacketHandle {
    /// Slot in the high half, destination in the low one.
    place: u64,
    /// From the lowest bit: 24 bits for the length, which is never zero, 8 each for ECN and time to
    /// live, 24 for the path.
    what: NonZeroU64,
}

const LEN_BITS: u32 = 24;
const ECN_SHIFT: u32 = LEN_BITS;
const TTL_SHIFT: u32 = 32;
const PATH_SHIFT: u32 = 40;

impl PacketHandle {
    /// `slot` is the slot of the datagram in the [`PacketStore`], `to` the number of the
    /// destination host, `len` the IP length in bytes, `path` the number of the flow's direction.
    #[inline(always)]
    pub(crate) const fn new(slot: u32, to: u32, path: u32, len: u32, ecn: Ecn) -> Self {
        debug_assert!(0 < len && len < 1 << LEN_BITS && path < 1 << (u64::BITS - PATH_SHIFT));
        let what = len as u64
            | (ecn as u64) << ECN_SHIFT
            | (Datagram::TTL as u64) << TTL_SHIFT
            | (path as u64) << PATH_SHIFT;
        let what = match NonZeroU64::new(what) {
            Some(what) => what,
            None => NonZeroU64::MIN,
        };
        Self { place: (slot as u64) << 32 | to as u64, what }
    }

    /// Slot of the datagram in the [`PacketStore`].
    #[inline(always)]
    pub(crate) const fn slot(self) -> u32 {
        (self.place >> 32) as u32
    }

    /// Number of the destination host.
    #[inline(always)]
    pub(crate) const fn to(self) -> u32 {
        self.place as u32
    }

    /// IP length in bytes.
    #[inline(always)]
    pub(crate) const fn len(self) -> u32 {
        self.what.get() as u32 & ((1 << LEN_BITS) - 1)
    }

    /// Number of the packet's path (flow and direction).
    #[inline(always)]
    pub(crate) const fn path(self) -> u32 {
        (self.what.get() >> PATH_SHIFT) as u32
    }

    /// Current time to live.
    pub(crate) const fn ttl(self) -> u8 {
        (self.what.get() >> TTL_SHIFT) as u8
    }

    /// Lowers the time to live, when a router forwards the packet.
    pub(crate) fn lower_ttl(&mut self) {
        let lower = self.what.get() - (u64::from(self.ttl() != 0) << TTL_SHIFT);
        self.what = NonZeroU64::new(lower).unwrap_or(self.what);
    }
}

impl core::fmt::Debug for PacketHandle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PacketHandle")
            .field("slot", &self.slot())
            .field("to", &self.to())
            .field("path", &self.path())
            .field("len", &self.len())
            .field("ecn", &self.ecn())
            .field("ttl", &self.ttl())
            .finish()
    }
}

impl Packet for PacketHandle {
    #[inline(always)]
    fn wire_len(&self) -> u32 {
        self.len()
    }

    /// Current ECN codepoint.
    #[inline(always)]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits((self.what.get() >> ECN_SHIFT) as u8)
    }

    fn mark_ce(&mut self) {
        self.what |= (Ecn::Ce as u64) << ECN_SHIFT;
    }

    /// Every pair has its own hosts, so the destination identifies flow and direction.
    fn flow_hash(&self) -> u64 {
        u64::from(self.to())
    }
}

/// What the simulator records about a packet in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meta {
    /// When its transport sent it.
    pub(crate) sent: Instant,
    /// Its number among all packets of the run, modulo 2^32. Only observers need it, so it is not
    /// set on a plain link, where none looks.
    pub(crate) uid: u32,
    /// Number of its path (flow and direction).
    pub(crate) path: u32,
    /// Whether it carries data.
    pub(crate) has_data: bool,
    /// In a free slot, the next free one.
    pub(crate) next_free: u32,
}

/// From this many slots on, they are reused in turn. That many take some 700 kB, which still fits
/// in the cache of one core.
const IN_TURN_FROM: usize = 4096;
/// Slots added when the store grows.
const NEW_SLOTS: u32 = 16;

/// All packets in the network. Slots are reused, so memory is that of the most packets ever in
/// flight. With few slots, the last one freed is used first, since it is still in cache. With many,
/// they are used in turn: packets of one direction usually arrive in the order in which they were
/// sent, so memory is then accessed sequentially, and the processor prefetches what no cache holds.
#[derive(Debug, Default)]
pub(crate) struct PacketStore {
    slots: Vec<Slot>,
    /// Separate for packets from senders and from receivers, which stay in the network for
    /// different times.
    free: [FreeSlots; 2],
    /// Slots whose packet is in the network more than once, with the number of additional copies. A
    /// slot is freed when the last copy has left.
    shared: BTreeMap<u32, u32>,
    /// Quick-Start options, for the few packets that have one.
    pub(crate) options: BTreeMap<u32, QuickStart>,
    /// The option of the next packet to be stored.
    pub(crate) next_option: Option<QuickStart>,
}

/// No slot.
const NONE: u32 = u32::MAX;

/// Slots without a packet, as a linked list. They are taken from the front, and freed to the front
/// or the back.
#[derive(Debug)]
struct FreeSlots {
    first: u32,
    last: u32,
}

impl Default for FreeSlots {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

/// A slot for one packet.
#[derive(Debug)]
pub(crate) struct Slot {
    /// The datagram. It is large, so it is written and read in place.
    pub(crate) datagram: Option<Datagram>,
    pub(crate) meta: Meta,
}

impl PacketStore {
    /// A slot for the next packet of a path, to be written before [`Self::keep`].
    #[inline(always)]
    pub(crate) fn vacant(&mut self, path: u32) -> (u32, &mut Slot) {
        let side = path as usize & 1;
        if self.free[side].first == NONE {
            self.grow(side);
        }
        let slot = self.free[side].first;
        (slot, &mut self.slots[slot as usize])
    }

    /// Adds slots when none is free.
    #[cold]
    fn grow(&mut self, side: usize) {
        let first = self.slots.len() as u32;
        let last = first + NEW_SLOTS - 1;
        let (len, room) = (self.slots.len(), self.slots.capacity() - self.slots.len());
        if room < NEW_SLOTS as usize && len >= IN_TURN_FROM {
            // Many slots are a large part of all memory: their number is not doubled at once.
            self.slots.reserve_exact(len / 4);
        }
        for slot in first..=last {
            let next_free = if slot == last { NONE } else { slot + 1 };
            let meta = Meta { next_free, ..Meta::default() };
            self.slots.push(Slot { datagram: None, meta });
        }
        self.free[side] = FreeSlots { first, last };
    }

    /// The slot with this number.
    #[inline(always)]
    pub(crate) fn slot(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Stores the packet that was written to the [vacant](Self::vacant) slot, whose record says
    /// which is the next free one.
    #[inline(always)]
    pub(crate) fn keep(&mut self, slot: u32, path: u32, next_free: u32) {
        let first = &mut self.free[path as usize & 1].first;
        debug_assert_eq!(*first, slot);
        *first = next_free;
        if self.next_option.is_some() {
            self.keep_option(slot);
        }
    }

    #[cold]
    fn keep_option(&mut self, slot: u32) {
        self.options.extend(self.next_option.take().map(|option| (slot, option)));
    }

    /// Frees the slot of a packet that was in the network once, and returns the slot: it is not
    /// written again before a next packet is.
    #[inline(always)]
    pub(crate) fn release(&mut self, slot: u32, path: u32) -> &mut Slot {
        let is_in_turn = self.slots.len() >= IN_TURN_FROM;
        let FreeSlots { first, last } = &mut self.free[path as usize & 1];
        let mut next_free = NONE;
        if is_in_turn && *first != NONE {
            self.slots[*last as usize].meta.next_free = slot;
            *last = slot;
        } else {
            if *first == NONE {
                *last = slot;
            }
            next_free = core::mem::replace(first, slot);
        }
        let slot = self.slot(slot);
        slot.meta.next_free = next_free;
        slot
    }

    /// The packet in a slot. If the slot is empty, the simulator has a bug.
    pub(crate) fn get(&self, slot: u32) -> Option<(&Datagram, Meta)> {
        let slot = self.slots.get(slot as usize)?;
        Some((slot.datagram.as_ref()?, slot.meta))
    }

    /// The record of the packet in a slot.
    #[inline(always)]
    pub(crate) fn meta(&self, slot: u32) -> &Meta {
        &self.slots[slot as usize].meta
    }

    /// Removes a packet, or one of its copies, and returns its datagram.
    pub(crate) fn take(&mut self, slot: u32) -> Option<Datagram> {
        if !self.shared.is_empty() && self.take_copy(slot) {
            return self.slots[slot as usize].datagram.clone();
        }
        if !self.options.is_empty() {
            self.options.remove(&slot);
        }
        let path = self.meta(slot).path;
        self.release(slot, path).datagram.take()
    }

    /// Adds `copies` copies of the packet in a slot.
    #[cold]
    pub(crate) fn share(&mut self, slot: u32, copies: u32) {
        *self.shared.entry(slot).or_default() += copies;
    }

    /// Removes one of several copies. Returns `false` if there is only one.
    #[cold]
    fn take_copy(&mut self, slot: u32) -> bool {
        let Some(more) = self.shared.get_mut(&slot) else { return false };
        *more -= 1;
        if *more == 0 {
            self.shared.remove(&slot);
        }
        true
    }

    /// All packets in the network, each as often as it has copies.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Meta> {
        let there = |(number, slot): (usize, &Slot)| {
            let copies = self.shared.get(&(number as u32)).copied().unwrap_or(0);
            let times = if slot.datagram.is_some() { 1 + copies as usize } else { 0 };
            core::iter::repeat_n(slot.meta, times)
        };
        self.slots.iter().enumerate().flat_map(there)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: u32 = 2;

    /// Stores a packet as a host does.
    fn put(store: &mut PacketStore) -> u32 {
        let (slot, place) = store.vacant(PATH);
        place.meta.path = PATH;
        let next_free = place.meta.next_free;
        store.keep(slot, PATH, next_free);
        slot
    }

    #[test]
    fn few_slots_are_used_again_the_last_freed_first_and_many_in_turn() {
        let mut store = PacketStore::default();
        assert_eq!([put(&mut store), put(&mut store), put(&mut store)], [0, 1, 2]);
        store.release(0, PATH);
        store.release(1, PATH);
        assert_eq!([put(&mut store), put(&mut store), put(&mut store)], [1, 0, 3]);

        while put(&mut store) < IN_TURN_FROM as u32 {}
        let newest = store.slots.len() as u32 - 1;
        while put(&mut store) < newest {}
        for slot in [7, 8, 5, 9] {
            store.release(slot, PATH);
        }
        let next: Vec<u32> = (0..5).map(|_| put(&mut store)).collect();
        assert_eq!(next, [7, 8, 5, 9, newest + 1]);
    }

    #[test]
    fn packets_of_receivers_have_slots_of_their_own() {
        let mut store = PacketStore::default();
        let mine = put(&mut store);
        let (theirs, place) = store.vacant(PATH + 1);
        let next_free = place.meta.next_free;
        store.keep(theirs, PATH + 1, next_free);
        assert_ne!(mine, theirs);
        store.release(theirs, PATH + 1);
        assert_ne!(put(&mut store), theirs);
        assert_eq!(store.vacant(PATH + 1).0, theirs);
    }

    #[test]
    fn a_handle_returns_the_packet_that_it_was_made_from() {
        let mut handle = PacketHandle::new(u32::MAX, 7, (1 << 24) - 1, (1 << 24) - 1, Ecn::Ect0);
        handle.lower_ttl();
        handle.mark_ce();
        assert_eq!((handle.slot(), handle.to(), handle.path()), (u32::MAX, 7, (1 << 24) - 1));
        assert_eq!((handle.len(), handle.ecn()), ((1 << 24) - 1, Ecn::Ce));
        assert_eq!(handle.ttl(), Datagram::TTL - 1);
        (0..100).for_each(|_| handle.lower_ttl());
        assert_eq!((handle.ttl(), handle.ecn(), handle.path()), (0, Ecn::Ce, (1 << 24) - 1));
    }
}
