//! Limits of a queue, in packets or bytes.

/// The limit of a drop-tail queue.
///
/// The backlog consists of packets that have arrived and whose transmission has not begun. The
/// packet in transmission does not count, as in ns-2 and in a queue of a Linux interface. So
/// `Packets(0)` still passes packets that find the transmitter idle. If a transmission ends at the
/// same time as a packet arrives, the end comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// No limit.
    #[default]
    Unlimited,
    /// At most this many waiting packets.
    Packets(u32),
    /// At most this many waiting bytes (of IP length).
    Bytes(u64),
}

/// The packets in a queue at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Packets waiting.
    pub packets: u64,
    /// Bytes (of IP length) waiting.
    pub bytes: u64,
}

impl QueueLimit {
    /// Whether a packet of `len` bytes may join `backlog`.
    pub const fn admits(self, backlog: Backlog, len: u32) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => backlog.packets < limit as u64,
            Self::Bytes(limit) => backlog.bytes + len as u64 <= limit,
        }
    }

    /// The share of the limit that a packet of `len` bytes takes: packets or bytes.
    #[inline(always)]
    pub(crate) const fn cost(self, len: u32) -> u64 {
        match self {
            Self::Unlimited | Self::Packets(_) => 1,
            Self::Bytes(_) => len as u64,
        }
    }

    /// What `backlog` leaves of the limit, in the unit of [`Self::cost`]. A packet may join if its
    /// cost is not above this.
    pub(crate) const fn room(self, backlog: Backlog) -> u64 {
        match self {
            Self::Unlimited => u64::MAX,
            Self::Packets(limit) => (limit as u64).saturating_sub(backlog.packets),
            Self::Bytes(limit) => limit.saturating_sub(backlog.bytes),
        }
    }

    /// Whether `backlog` is within the limit.
    pub const fn holds(self, backlog: Backlog) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => backlog.packets <= limit as u64,
            Self::Bytes(limit) => backlog.bytes <= limit,
        }
    }
}
