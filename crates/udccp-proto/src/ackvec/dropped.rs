//! Reads and checks Data Dropped options.

use core::ops::ControlFlow;

use udccp_wire::Seqno;

use super::runs::Runs;

/// Largest number of packets in one normal block.
pub(super) const MAX_NORMAL: u64 = 128;
/// Largest number of packets in one drop block.
pub(super) const MAX_DROP: u64 = 16;

/// Why data of a received packet did not reach the application (RFC 4340 table 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCode {
    /// 0: data on a packet that must not carry it, or too little checksum coverage. No congestion.
    ProtocolConstraints,
    /// 1: the application no longer reads, and will not read again.
    ApplicationNotListening,
    /// 2: no room in a receive buffer. Send one packet less per round-trip time.
    ReceiveBuffer,
    /// 3: the data was corrupt. Treated as an ECN mark.
    Corrupt,
    /// 4 to 6: not defined yet. Treated as an ECN mark.
    Reserved(u8),
    /// 7: corrupt, but delivered. Treated as an ECN mark.
    DeliveredCorrupt,
}

impl DropCode {
    /// The code with this number. Only the low three bits are used.
    pub const fn from_number(number: u8) -> Self {
        match number & 7 {
            0 => Self::ProtocolConstraints,
            1 => Self::ApplicationNotListening,
            2 => Self::ReceiveBuffer,
            3 => Self::Corrupt,
            7 => Self::DeliveredCorrupt,
            other => Self::Reserved(other),
        }
    }

    /// The number on the wire, 0 to 7.
    pub const fn number(self) -> u8 {
        match self {
            Self::ProtocolConstraints => 0,
            Self::ApplicationNotListening => 1,
            Self::ReceiveBuffer => 2,
            Self::Corrupt => 3,
            Self::Reserved(n) => n & 7,
            Self::DeliveredCorrupt => 7,
        }
    }

    /// How strongly the sender must respond. An application cannot lower it (RFC 4340 section
    /// 11.7).
    pub const fn seriousness(self) -> u8 {
        match self {
            Self::ProtocolConstraints => 0,
            Self::ApplicationNotListening => 1,
            Self::ReceiveBuffer => 2,
            Self::DeliveredCorrupt | Self::Reserved(_) => 3,
            Self::Corrupt => 4,
        }
    }

    /// Whether congestion control treats the packet as one with an ECN mark (RFC 4340 section
    /// 11.7.2).
    pub const fn counts_as_marked(self) -> bool {
        matches!(self, Self::Corrupt | Self::Reserved(_) | Self::DeliveredCorrupt)
    }
}

/// State of the packets in a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropState {
    /// Delivered, or not received at all.
    Normal,
    /// Received, but not delivered as usual.
    Dropped(DropCode),
}

/// Calls `f(state, newest, oldest)` for each block of Data Dropped options, newest first, until `f`
/// breaks. The first block begins at packet `ackno`.
pub fn for_each_drop(
    ackno: Seqno,
    blocks: &[u8],
    mut f: impl FnMut(DropState, Seqno, Seqno) -> ControlFlow<()>,
) {
    let mut newest = ackno;
    for &block in blocks {
        let (state, packets) = read(block);
        let next = newest.sub(packets);
        if f(state, newest, next.next()).is_break() {
            return;
        }
        newest = next;
    }
}

//= 4340-11.7-9
/// Whether Data Dropped options are invalid and must be ignored (RFC 4340 section 11.7). They are
/// if they cover packets before `isn`, our first packet. They are also if they report a packet as
/// dropped that the Ack Vector `cells` of the same packet reports as not received. Without cells,
/// that is not checked.
pub fn is_invalid_drop(ackno: Seqno, isn: Seqno, cells: &[u8], blocks: &[u8]) -> bool {
    let covered: u64 = blocks.iter().map(|&b| read(b).1).sum();
    let sent = ackno.distance_from(isn) + 1;
    // After sequence numbers have wrapped, the first packet is no longer known.
    if sent > 0 && covered as i64 > sent {
        return true;
    }
    let mut runs = Runs::new(ackno, cells).peekable();
    let mut invalid = false;
    for_each_drop(ackno, blocks, |state, newest, oldest| {
        if state == DropState::Normal {
            return ControlFlow::Continue(());
        }
        while let Some(run) = runs.next_if(|r| r.oldest.is_after(newest)) {
            debug_assert!(run.newest.at_least(run.oldest));
        }
        // A block may overlap several runs. The last of them may also overlap the next block.
        while let Some(run) = runs.peek().filter(|r| r.newest.at_least(oldest)) {
            invalid |= !run.state.is_received();
            if run.oldest.at_most(oldest) {
                break;
            }
            runs.next();
        }
        if invalid { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    invalid
}

/// The state in a block, and its number of packets.
const fn read(block: u8) -> (DropState, u64) {
    if block & 0x80 == 0 {
        (DropState::Normal, block as u64 + 1)
    } else {
        let code = DropCode::from_number(block >> 4);
        (DropState::Dropped(code), (block & 15) as u64 + 1)
    }
}
