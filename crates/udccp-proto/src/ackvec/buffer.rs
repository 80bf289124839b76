//! The receiving side: what arrived, as the vector that will be sent.

use udccp_base::Ecn;
use udccp_wire::Seqno;

/// What a packet was to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The packet right after the newest one.
    InOrder,
    /// A packet further ahead; so many before it are missing now.
    Gap {
        /// Packets between the newest before and this one.
        missing: u64,
    },
    /// A packet that was missing.
    Late,
    /// It was here before.
    Duplicate,
    /// Older than all that the buffer still knows; nothing will be said of it.
    Forgotten,
}

/// Run-length history of received packets, ready to be sent.
#[derive(Debug)]
pub struct AckVectorBuffer {}

#[expect(unused_variables, clippy::todo, reason = "signatures first; bodies follow")]
impl AckVectorBuffer {
    /// An empty buffer of at most `max_cells` bytes of vector (at least 2).
    pub fn new(max_cells: usize) -> Self {
        todo!()
    }

    /// Echo no nonces: we declared ourselves ECN Incapable (RFC 4340 section 12.2).
    pub fn set_ecn_incapable(&mut self) {
        todo!()
    }

    /// A valid packet of any type arrived and its options were processed.
    pub fn on_packet(&mut self, seq: Seqno, ecn: Ecn) -> Arrival {
        todo!()
    }

    /// The newest packet: the acknowledgement number that [`Self::cells`] goes with. `None` while
    /// nothing arrived.
    pub fn ackno(&self) -> Option<Seqno> {
        todo!()
    }

    /// The whole vector, newest first.
    pub fn cells(&self) -> &[u8] {
        todo!()
    }

    /// The nonce echo of the whole vector: the parity of the nonces (ECT(1) is nonce 1) of all
    /// packets in it that are Received.
    pub fn ecn_nonce_echo(&self) -> bool {
        todo!()
    }

    /// The vector as options of at most 253 cells, each with its own nonce echo, in order.
    pub fn options(&self) -> impl Iterator<Item = (bool, &[u8])> {
        [].into_iter()
    }

    /// Our packet `our_seq` left with the whole vector on it.
    pub fn on_ack_sent(&mut self, our_seq: Seqno) {
        todo!()
    }

    /// The peer acknowledged our packet `our_seq` (any packet; not by a Sync, whose
    /// acknowledgement number promises nothing). If that packet carried a vector, what it said is
    /// forgotten, and the newest packet forgotten is returned.
    pub fn on_ack_of_ack(&mut self, our_seq: Seqno) -> Option<Seqno> {
        todo!()
    }

    /// Whether more than three quarters of the cells are in use: time to ask for an
    /// acknowledgement of an acknowledgement, for example with a Sync (RFC 4340 section 11.2).
    pub fn is_nearly_full(&self) -> bool {
        todo!()
    }

    /// Packets forgotten for want of room before the peer confirmed that it knows of them.
    pub fn overflowed_packets(&self) -> u64 {
        todo!()
    }
}
