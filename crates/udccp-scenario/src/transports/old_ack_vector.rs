//! The Ack Vector of Linux 2.6.22, which makes a receiver discard packets.
//!
//! Its buffer has a cell for each missing packet, and one for up to 64 that arrived in a row. A
//! packet for which no cells are left is discarded (`dccp_ackvec_add`), and so are those after it,
//! until the sender has acknowledged an acknowledgement.

use std::collections::VecDeque;

use udccp_base::Datagram;
use udccp_wire::{PacketView, RawSeq, Seqno};

/// Cells of the buffer (`DCCP_MAX_ACKVEC_LEN`).
const CELLS: u64 = 506;
/// Packets that arrived in a row, in one cell.
const IN_A_CELL: u64 = 64;

/// How full the Ack Vector of a host is.
#[derive(Debug, Default)]
pub(super) struct OldAckVector {
    newest: Option<Seqno>,
    /// Packets in the newest cell.
    in_newest: u64,
    /// Cells used so far.
    used: u64,
    /// How many of them the peer knows to be reported.
    known: u64,
    /// Acknowledgements sent, and the cells used until then.
    sent: VecDeque<(Seqno, u64)>,
}

impl OldAckVector {
    /// Whether the host accepts a packet. One without a 48-bit number does not use cells.
    pub(super) fn takes(&mut self, datagram: &Datagram) -> bool {
        let Some((seq, ack)) = numbers(datagram) else { return true };
        if let Some(ack) = ack {
            self.on_ack(ack);
        }
        self.adds(seq)
    }

    /// The host sent a packet.
    pub(super) fn on_sent(&mut self, datagram: &Datagram) {
        if let Some((seq, Some(_))) = numbers(datagram) {
            self.sent.push_back((seq, self.used));
        }
    }

    fn on_ack(&mut self, ack: Seqno) {
        while let Some((_, used)) = self.sent.pop_front_if(|(seq, _)| seq.at_most(ack)) {
            self.known = used;
        }
    }

    fn adds(&mut self, seq: Seqno) -> bool {
        let full = self.used - self.known;
        let ahead = match self.newest {
            Some(newest) if full > 0 => seq.distance_from(newest),
            _ => 1,
        };
        if ahead <= 0 {
            return true;
        }
        if full > 0 && ahead == 1 && self.in_newest < IN_A_CELL {
            self.in_newest += 1;
        } else {
            let cells = ahead as u64;
            if full + cells > CELLS {
                return false;
            }
            (self.used, self.in_newest) = (self.used + cells, 1);
        }
        self.newest = Some(seq);
        true
    }
}

/// Sequence and acknowledgement number of a Data, Ack or DataAck packet.
fn numbers(datagram: &Datagram) -> Option<(Seqno, Option<Seqno>)> {
    let view = PacketView::of_usual(&datagram.header, datagram.transport_len())?;
    let long = |raw| match raw {
        RawSeq::Long(seq) => Some(seq),
        RawSeq::Short(_) => None,
    };
    Some((long(view.seq_raw())?, view.ack_raw().and_then(long)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A vector that saw `packets` in a row and reported each.
    fn after(packets: u64) -> OldAckVector {
        let mut vector = OldAckVector::default();
        for seq in 1..=packets {
            assert!(vector.adds(Seqno::new(seq)));
        }
        vector
    }

    fn reports(vector: &mut OldAckVector, seq: u64) {
        vector.sent.push_back((Seqno::new(seq), vector.used));
    }

    #[test]
    fn packets_in_a_row_share_a_cell_and_missing_ones_have_one_each() {
        let mut vector = after(128);
        assert_eq!(vector.used, 2);
        assert!(vector.adds(Seqno::new(139)));
        assert_eq!(vector.used, 2 + 11);
        assert!(vector.adds(Seqno::new(130)), "one that comes late has its cell already");
        assert_eq!(vector.used, 2 + 11);
    }

    #[test]
    fn without_cells_everything_is_discarded_until_an_acknowledgement_is_acknowledged() {
        let mut vector = after(64);
        assert!(vector.adds(Seqno::new(64 + 505)));
        assert!(!vector.adds(Seqno::new(64 + 507)));
        reports(&mut vector, 7);
        assert!(!vector.adds(Seqno::new(2000)));
        vector.on_ack(Seqno::new(6));
        assert!(!vector.adds(Seqno::new(2001)));
        vector.on_ack(Seqno::new(7));
        assert!(vector.adds(Seqno::new(2002)), "the buffer is empty");
        assert!(vector.adds(Seqno::new(2003)));
    }

    #[test]
    fn a_flow_whose_acknowledgements_are_acknowledged_never_runs_out_of_cells() {
        let mut vector = OldAckVector::default();
        for seq in 1..100_000 {
            assert!(vector.adds(Seqno::new(seq)));
            reports(&mut vector, seq);
            vector.on_ack(Seqno::new(seq.saturating_sub(3000)));
        }
        assert_eq!(vector.sent.len(), 3000);
    }
}
