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

    /// Whether `backlog` is within the limit.
    pub const fn holds(self, backlog: Backlog) -> bool {
        match self {
            Self::Unlimited => true,
            Self::Packets(limit) => backlog.packets <= limit as u64,
            Self::Bytes(limit) => backlog.bytes <= limit,
        }
    }
}
