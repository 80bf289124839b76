//! Packets in the network: the datagrams stay where they are, handles travel.

use std::collections::BTreeMap;

use udccp_base::{Datagram, Ecn, Instant, QuickStart};
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

    /// Every pair has hosts of its own, so the destination tells flows and directions apart.
    fn flow_hash(&self) -> u64 {
        u64::from(self.to)
    }
}

/// What the simulator knows of a packet in the network.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Meta {
    /// When it left its transport.
    pub(crate) sent: Instant,
    /// Its number among all packets of the run.
    pub(crate) uid: u64,
    /// Number of the path (flow and direction) that it is on.
    pub(crate) path: u32,
    /// Whether it carries data.
    pub(crate) has_data: bool,
}

/// All packets in the network. Slots are used again, the last freed first, so that memory is that
/// of the most packets ever in flight.
#[derive(Debug, Default)]
pub(crate) struct PacketStore {
    datagrams: Vec<Option<Datagram>>,
    meta: Vec<Meta>,
    free: Vec<u32>,
    /// Slots whose packet is in the network more than once, and how many times more. A slot is free
    /// when the last copy has left.
    shared: BTreeMap<u32, u32>,
    /// Quick-Start options, of the few packets that have one.
    pub(crate) options: BTreeMap<u32, QuickStart>,
    /// The option of the next packet that is kept.
    pub(crate) next_option: Option<QuickStart>,
}

impl PacketStore {
    /// The place where the next datagram will stay, for [`Self::keep`]. A datagram is long, so it
    /// is written there and not handed over.
    #[inline]
    pub(crate) fn vacant(&mut self) -> &mut Option<Datagram> {
        if self.free.is_empty() {
            self.free.push(self.meta.len() as u32);
            self.datagrams.push(None);
            self.meta.push(Meta::default());
        }
        let slot = self.free.last().copied().unwrap_or(0);
        &mut self.datagrams[slot as usize]
    }

    /// Keeps the datagram that was written to [`Self::vacant`]; returns its slot.
    #[inline]
    pub(crate) fn keep(&mut self, meta: Meta) -> u32 {
        let slot = self.free.pop().unwrap_or(0);
        self.meta[slot as usize] = meta;
        if let Some(option) = self.next_option.take() {
            self.options.insert(slot, option);
        }
        slot
    }

    /// The packet in a slot. A slot that holds none is a defect of the simulator.
    pub(crate) fn get(&self, slot: u32) -> Option<(&Datagram, Meta)> {
        let datagram = self.datagrams.get(slot as usize)?.as_ref()?;
        Some((datagram, self.meta[slot as usize]))
    }

    /// What is known of the packet in a slot.
    #[inline]
    pub(crate) fn meta(&self, slot: u32) -> Meta {
        self.meta[slot as usize]
    }

    /// Takes a packet out.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32) -> Option<Datagram> {
        if !self.shared.is_empty() && self.take_copy(slot) {
            return self.datagrams[slot as usize].clone();
        }
        if !self.options.is_empty() {
            self.options.remove(&slot);
        }
        self.free.push(slot);
        self.datagrams[slot as usize].take()
    }

    /// The packet in a slot is in the network `copies` times more than before.
    #[cold]
    pub(crate) fn share(&mut self, slot: u32, copies: u32) {
        *self.shared.entry(slot).or_default() += copies;
    }

    /// Takes one of several copies; `false` where there is only one.
    #[cold]
    fn take_copy(&mut self, slot: u32) -> bool {
        let Some(more) = self.shared.get_mut(&slot) else { return false };
        *more -= 1;
        if *more == 0 {
            self.shared.remove(&slot);
        }
        true
    }

    /// All packets in the network, each as often as it is there.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Meta> {
        let there = |(slot, datagram): (usize, &Option<Datagram>)| {
            let copies = self.shared.get(&(slot as u32)).copied().unwrap_or(0);
            let times = if datagram.is_some() { 1 + copies as usize } else { 0 };
            core::iter::repeat_n(self.meta[slot], times)
        };
        self.datagrams.iter().enumerate().flat_map(there)
    }
}
