//! The receiving side of Data Dropped: packets that arrived, but whose data did not.

use udccp_wire::Seqno;

use super::DropCode;

/// What has to be said in Data Dropped options until the peer has heard it.
#[derive(Debug)]
pub struct DropLog {}

#[expect(unused_variables, clippy::todo, reason = "signatures first; bodies follow")]
impl DropLog {
    /// An empty log of at most `max_runs` runs of drops; beyond it the oldest are forgotten.
    pub fn new(max_runs: usize) -> Self {
        todo!()
    }

    /// The data of packet `seq` did not reach the application as it should. A second report of a
    /// packet counts if it is more serious.
    pub fn on_drop(&mut self, seq: Seqno, code: DropCode) {
        todo!()
    }

    /// Whether there is nothing to say.
    pub fn is_empty(&self) -> bool {
        todo!()
    }

    /// Writes the blocks of a Data Dropped option that goes with acknowledgement number `ackno`
    /// into `out`, newest first, and returns how many; 0 when no option is needed. Drops that do
    /// not fit are left for later, oldest first.
    pub fn write_blocks(&self, ackno: Seqno, out: &mut [u8]) -> usize {
        todo!()
    }

    /// Our packet `our_seq` left with what `write_blocks` wrote.
    pub fn on_ack_sent(&mut self, our_seq: Seqno) {
        todo!()
    }

    /// The peer acknowledged our packet `our_seq`, which carried a vector
    /// (`AckVectorBuffer::on_ack_of_ack` was `Some`): what was said by then is forgotten.
    pub fn on_ack_of_ack(&mut self, our_seq: Seqno) {
        todo!()
    }
}
