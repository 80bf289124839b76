//! Looks up one packet in the peer's Ack Vector.

use udccp_wire::Seqno;

use super::CellState;

/// Number of runs of the peer's Ack Vector to search.
const RUNS: usize = 4;

/// Whether the peer reports `seq`, which is not after `ackno`, as received. `None` if the first
/// runs of the vector do not cover it. The vector is read only as far as `seq`.
pub(crate) fn is_received(seq: Seqno, ackno: Seqno, cells: &[u8]) -> Option<bool> {
    find(seq, ackno, cells, RUNS)
}

/// The same for the whole vector.
pub(crate) fn is_received_at_all(seq: Seqno, ackno: Seqno, cells: &[u8]) -> Option<bool> {
    find(seq, ackno, cells, usize::MAX)
}

fn find(seq: Seqno, ackno: Seqno, cells: &[u8], most_runs: usize) -> Option<bool> {
    if seq == ackno {
        return Some(true);
    }
    let mut left = ackno.distance_from(seq).unsigned_abs();
    let mut runs = 0;
    let mut last = None;
    for &cell in cells {
        let state = CellState::of_cell(cell);
        runs += usize::from(last != Some(state));
        if runs > most_runs {
            return None;
        }
        let packets = u64::from(cell & 63) + 1;
        if left < packets {
            return Some(state.is_received());
        }
        left -= packets;
        last = Some(state);
    }
    None
}
