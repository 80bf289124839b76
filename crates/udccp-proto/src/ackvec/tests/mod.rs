//! Tests of the buffers and the decoders.

mod acks_of_acks;
mod buffer;
mod drops;
mod model;
mod reading;

use udccp_base::Ecn;
use udccp_wire::Seqno;

use super::*;

fn seq(n: u64) -> Seqno {
    Seqno::new(n)
}

/// A buffer after these packets arrived in this order, unmarked.
fn received(packets: impl IntoIterator<Item = u64>) -> AckVectorBuffer {
    let mut buffer = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
    for n in packets {
        buffer.on_packet(seq(n), Ecn::NotEct);
    }
    buffer
}

/// Cells as text: `R5 N2 M1` is five received, two not received, one marked.
fn show(cells: &[u8]) -> String {
    let name = |s| match s {
        CellState::Received => 'R',
        CellState::Marked => 'M',
        CellState::Reserved => '?',
        CellState::NotReceived => 'N',
    };
    let cell = |c: &u8| format!("{}{}", name(CellState::of_cell(*c)), (c & 63) + 1);
    cells.iter().map(cell).collect::<Vec<_>>().join(" ")
}
