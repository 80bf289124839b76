//! Limits of a queue, in packets or bytes.

/// The limit of a drop-tail queue.
///
/// What waits is what has arrived and whose serialisation has not begun; the packet on the
/// transmitter does not count (as in ns-2 and in a Linux interface queue). So a limit of
/// `Packets(0)` still passes packets that find the transmitter idle. At an instant when a
/// transmission ends and a packet arrives, the end comes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueLimit {
    /// Everything waits as long as it must.
    #[default]
    Unlimited,
    /// At most this many packets wait.
    Packets(u32),
    /// At most this many bytes (of IP length) wait.
    Bytes(u64),
}

/// What waits in a queue at one instant.
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
