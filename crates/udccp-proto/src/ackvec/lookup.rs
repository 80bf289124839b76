//! Looks one packet up in the peer's Ack Vector.

use udccp_wire::Seqno;

use super::CellState;

/// Runs of the peer's Ack Vector that are searched.
const RUNS: usize = 4;

/// Whether the peer reports that it has `seq`, which is not after `ackno`; `None` where it reports
/// nothing of it in the first runs of its vector. The vector is read as far as `seq` only.
pub(crate) fn is_received(seq: Seqno, ackno: Seqno, cells: &[u8]) -> Option<bool> {
    if seq == ackno {
        return Some(true);
    }
    let mut left = ackno.distance_from(seq).unsigned_abs();
    let mut runs = 0;
    let mut last = None;
    for &cell in cells {
        let state = CellState::of_cell(cell);
        runs += usize::from(last != Some(state));
        if runs > RUNS {
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
