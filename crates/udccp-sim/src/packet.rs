//! Packets in the network: the datagrams stay where they are, handles travel.

use udccp_base::{Datagram, Ecn, Instant};
use udccp_link::Packet;

/// What links carry: a handle, and what a link or router needs to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parcel {
    /// Where the datagram lies in the [`PacketStore`].
    pub(crate) slot: u32,
    /// IP length in bytes.
    pub(crate) len: u32,
    /// Number of the destination host.
    pub(crate) to: u32,
    /// ECN codepoint as it is now.
    pub(crate) ecn: Ecn,
    /// Time to live as it is now.
    pub(crate) ttl: u8,
}

impl Packet for Parcel {
    #[inline]
    fn wire_len(&self) -> u32 {
        self.len
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        self.ecn
    }

    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
}

/// A packet in the network.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) datagram: Datagram,
    /// When it left its transport.
    pub(crate) sent: Instant,
    /// Number of the path (flow and direction) that it is on.
    pub(crate) path: u32,
    /// Its number among all packets of the run.
    pub(crate) uid: u64,
}

/// All packets in the network. Slots are used again, the last freed first, so that memory is that
/// of the most packets ever in flight.
#[derive(Debug, Default)]
pub(crate) struct PacketStore {
    slots: Vec<Option<Stored>>,
    free: Vec<u32>,
}

impl PacketStore {
    #[inline]
    pub(crate) fn insert(&mut self, stored: Stored) -> u32 {
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(stored);
            return slot;
        }
        self.slots.push(Some(stored));
        (self.slots.len() - 1) as u32
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Option<&Stored> {
        self.slots.get(slot as usize)?.as_ref()
    }

    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) -> Option<Stored> {
        let stored = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        Some(stored)
    }

    /// All packets in the network.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stored> {
        self.slots.iter().flatten()
    }
}
