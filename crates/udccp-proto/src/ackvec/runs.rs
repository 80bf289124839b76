//! Reads Ack Vectors.

use core::ops::ControlFlow;

use udccp_wire::Seqno;

/// State of a packet in an Ack Vector (RFC 4340 table 6).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CellState {
    /// Received, and its options were processed.
    Received = 0,
    /// Received with ECN Congestion Experienced.
    Marked = 1,
    /// State 2, which is not defined yet. Treat it as not received.
    Reserved = 2,
    /// Not yet received.
    NotReceived = 3,
}

impl CellState {
    /// The state in the two high bits of a cell.
    pub const fn of_cell(cell: u8) -> Self {
        match cell >> 6 {
            0 => Self::Received,
            1 => Self::Marked,
            2 => Self::Reserved,
            _ => Self::NotReceived,
        }
    }

    /// Whether the packet arrived.
    pub const fn is_received(self) -> bool {
        matches!(self, Self::Received | Self::Marked)
    }

    /// The state after a newer report of the same packet, by the table of section 11.4.1. Received
    /// and then marked becomes marked, so that the order of acknowledgements makes no difference.
    pub const fn combined_with(self, reported: Self) -> Self {
        match (self, reported) {
            (Self::Received, Self::Marked) | (Self::Marked, _) => Self::Marked,
            (Self::Received, _) => Self::Received,
            (_, Self::Reserved) => Self::NotReceived,
            (_, newer) => newer,
        }
    }
}

/// The longest sequence of consecutive packets in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Their state.
    pub state: CellState,
    /// The newest packet of the run.
    pub newest: Seqno,
    /// The oldest packet of the run.
    pub oldest: Seqno,
}

/// The runs of an Ack Vector, newest first. Neighbouring cells of one state form one run.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    next: Seqno,
    cells: &'a [u8],
}

impl<'a> Runs<'a> {
    /// Reads `cells`, the data of one or more options in order. The first cell begins at packet
    /// `ackno`.
    pub fn new(ackno: Seqno, cells: &'a [u8]) -> Self {
        Self { next: ackno, cells }
    }
}

impl Iterator for Runs<'_> {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let (&first, mut rest) = self.cells.split_first()?;
        let state = CellState::of_cell(first);
        let mut packets = cell_packets(first);
        while let Some((&cell, after)) = rest.split_first() {
            if CellState::of_cell(cell) != state {
                break;
            }
            packets += cell_packets(cell);
            rest = after;
        }
        self.cells = rest;
        let newest = self.next;
        self.next = newest.sub(packets);
        Some(Run { state, newest, oldest: newest.sub(packets - 1) })
    }
}

/// Calls `f(state, newest, oldest)` for each run of an Ack Vector, newest first, until `f` breaks.
pub fn for_each_run(
    ackno: Seqno,
    cells: &[u8],
    mut f: impl FnMut(CellState, Seqno, Seqno) -> ControlFlow<()>,
) {
    for run in Runs::new(ackno, cells) {
        if f(run.state, run.newest, run.oldest).is_break() {
            return;
        }
    }
}

/// Number of packets that a vector covers.
pub fn covered_packets(cells: &[u8]) -> u64 {
    cells.iter().map(|&c| cell_packets(c)).sum()
}

//= 4340-11.4-9
/// Whether a vector covers packets before `isn`, our first packet. Such a vector is invalid (RFC
/// 4340 section 11.4).
pub fn is_before_isn(ackno: Seqno, cells: &[u8], isn: Seqno) -> bool {
    let sent = ackno.distance_from(isn) + 1;
    !is_surely_after_isn(ackno, cells.len(), isn) && covered_packets(cells) as i64 > sent
}

/// Whether a vector with this many cells is valid in that respect, whatever they are. Only the
/// first vectors of a connection need a closer look.
#[inline]
pub(crate) fn is_surely_after_isn(ackno: Seqno, cells: usize, isn: Seqno) -> bool {
    let sent = ackno.distance_from(isn) + 1;
    // After sequence numbers have wrapped, the first packet is no longer known.
    sent <= 0 || (cells as i64) * 64 <= sent
}

const fn cell_packets(cell: u8) -> u64 {
    (cell & 63) as u64 + 1
}
