//! Reads and checks Data Dropped options.

use core::ops::ControlFlow;

use udccp_wire::Seqno;

use super::runs::Runs;

/// Packets that one normal block can stand for.
pub(super) const MAX_NORMAL: u64 = 128;
/// Packets that one drop block can stand for.
pub(super) const MAX_DROP: u64 = 16;

/// Why data of a received packet did not reach the application (RFC 4340 table 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropCode {
    /// 0: data where none is allowed, or too little checksum coverage. No congestion.
    ProtocolConstraints,
    /// 1: the application listens no more, and will not again.
    ApplicationNotListening,
    /// 2: no room in a receive buffer. Send one packet per round-trip time less.
    ReceiveBuffer,
    /// 3: the data was corrupt. To be treated as an ECN mark.
    Corrupt,
    /// 4 to 6: no meaning yet. To be treated as an ECN mark.
    Reserved(u8),
    /// 7: corrupt, and delivered all the same. To be treated as an ECN mark.
    DeliveredCorrupt,
}

impl DropCode {
    /// The code with this number; only the low three bits count.
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

    /// How much the code asks of the sender; an application cannot lower it (RFC 4340 section
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

/// What a block reports of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropState {
    /// Delivered, or not received at all.
    Normal,
    /// Received, but not delivered as usual.
    Dropped(DropCode),
}

/// Calls `f(state, newest, oldest)` for each block of Data Dropped options whose first block
/// begins at the packet `ackno`, newest first, until it breaks.
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
/// Whether Data Dropped options are invalid and to be ignored (RFC 4340 section 11.7): they speak
/// of packets before `isn`, our first one, or call a packet dropped that the vector `cells` on the
/// same packet calls not received (no cells: nothing to compare with).
pub fn is_invalid_drop(ackno: Seqno, isn: Seqno, cells: &[u8], blocks: &[u8]) -> bool {
    let covered: u64 = blocks.iter().map(|&b| read(b).1).sum();
    let sent = ackno.distance_from(isn) + 1;
    // Numbers that wrapped show nothing about the beginning.
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
        // A block may reach over several runs; the last one may also hold the next block.
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

/// What a block reports, and of how many packets.
const fn read(block: u8) -> (DropState, u64) {
    if block & 0x80 == 0 {
        (DropState::Normal, block as u64 + 1)
    } else {
        let code = DropCode::from_number(block >> 4);
        (DropState::Dropped(code), (block & 15) as u64 + 1)
    }
}
