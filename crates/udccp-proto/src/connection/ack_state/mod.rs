//! Keeps what is acknowledged to the peer: packets that arrived, data that was dropped, and
//! acknowledgements that are held back (RFC 4340 section 11).

mod records;

use udccp_base::{Duration, Ecn, Instant, MaybeInstant};
use udccp_wire::{OptionRef, Seqno};

use super::recv_side::Pressure;
use crate::ackvec::{
    AckVectorBuffer, Arrival, DEFAULT_MAX_CELLS, DropCode, DropLog, MAX_OPTION_CELLS,
};
use crate::ccid::OptionSink;
use records::AckRecords;

/// Runs of dropped data that are remembered until the peer is known to have them.
const MAX_DROP_RUNS: usize = 64;

/// Blocks of Data Dropped on one packet at most.
const DROPPED_BLOCKS: usize = 32;

/// Type and length of an option, in bytes.
const OPTION_HEADER: usize = 2;

/// Longest silence while acknowledgements are held back.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// What one end reports to the other of the packets that it received.
#[derive(Clone, Debug)]
pub(super) struct AckState {
    vector: AckVectorBuffer,
    sent: AckRecords,
    /// Made with the first, and gone when the peer is known to have them all.
    drops: Option<Box<Drops>>,
    /// Acknowledgements are held back; a sign of life is due then.
    held_until: MaybeInstant,
}

/// Data that was dropped, and packets that said so.
#[derive(Clone, Debug)]
struct Drops {
    log: DropLog,
    sent: AckRecords,
}

/// Whether acknowledgements are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// They may leave.
    No,
    /// They are from now on.
    Begins,
    /// They are.
    Continues,
    /// They are, and nothing has gone to the peer for long: a sign of life is due.
    Silent,
}

impl AckState {
    /// Nothing has arrived; `ecn` is false where we declare ourselves ECN Incapable.
    pub(super) fn new(ecn: bool) -> Self {
        let mut vector = AckVectorBuffer::new(DEFAULT_MAX_CELLS);
        if !ecn {
            vector.set_ecn_incapable();
        }
        Self { vector, sent: AckRecords::default(), drops: None, held_until: MaybeInstant::NONE }
    }

    /// The newest packet to acknowledge.
    #[inline]
    pub(super) fn ackno(&self) -> Option<Seqno> {
        self.vector.ackno()
    }

    /// A valid packet arrived and its options were processed.
    #[inline]
    pub(super) fn on_packet(&mut self, seq: Seqno, ecn: Ecn) -> Arrival {
        self.vector.on_packet(seq, ecn)
    }

    /// The same for `count` packets in order, from `first` on, newer than all others.
    pub(super) fn on_run(&mut self, first: Seqno, count: u64, ecn: Ecn) {
        self.vector.on_run(first, count, ecn);
    }

    /// The data of packet `seq` did not reach the application as it should.
    pub(super) fn on_drop(&mut self, seq: Seqno, code: DropCode) {
        let drops = self.drops.get_or_insert_with(|| {
            Box::new(Drops { log: DropLog::new(MAX_DROP_RUNS), sent: AckRecords::default() })
        });
        drops.log.on_drop(seq, code);
    }

    /// The peer acknowledged `ackno`, with these cells of an Ack Vector if it has one: what it is
    /// known to have is forgotten.
    #[inline]
    pub(super) fn on_ack(&mut self, ackno: Seqno, cells: Option<&[u8]>) {
        if let Some(ours) = self.sent.newest_known(ackno, cells) {
            self.vector.on_ack_of_ack(ours);
        }
        if self.drops.is_some() {
            self.forget_drops(ackno, cells);
        }
    }

    /// Not every acknowledgement that reports drops has an Ack Vector: CCID 3 needs none.
    #[cold]
    fn forget_drops(&mut self, ackno: Seqno, cells: Option<&[u8]>) {
        let Some(drops) = &mut self.drops else { return };
        //= 4340-11.7-12
        if let Some(ours) = drops.sent.newest_known(ackno, cells) {
            drops.log.on_ack_of_ack(ours);
        }
        if drops.log.is_empty() {
            self.drops = None;
        }
    }

    /// Packet `seq` left, with the whole Ack Vector, with Data Dropped.
    #[inline]
    pub(super) fn on_sent(&mut self, seq: Seqno, with_vector: bool, with_drops: bool) {
        if with_vector {
            self.vector.on_ack_sent(seq);
            self.sent.on_sent(seq);
        }
        if let (true, Some(drops)) = (with_drops, &mut self.drops) {
            drops.log.on_ack_sent(seq);
            drops.sent.on_sent(seq);
        }
    }

    /// Whether the peer should acknowledge our acknowledgements, so that we can forget.
    #[inline]
    pub(super) fn is_nearly_full(&self) -> bool {
        self.vector.is_nearly_full()
    }

    #[inline]
    fn has_no_drops(&self) -> bool {
        self.drops.as_ref().is_none_or(|drops| drops.log.is_empty())
    }

    /// Bytes of options that an acknowledgement needs, at most.
    #[inline]
    pub(super) fn option_bytes(&self, with_vector: bool) -> usize {
        let cells = if with_vector { self.vector.cells().len() + OPTION_HEADER } else { 0 };
        let dropped = if self.has_no_drops() { 0 } else { OPTION_HEADER + DROPPED_BLOCKS };
        cells + dropped
    }

    /// Nonce echo and cells of the Ack Vector, where nothing else has to be reported with it.
    #[inline]
    pub(super) fn lone_vector(&self) -> Option<(bool, &[u8])> {
        let cells = self.vector.cells();
        let is_alone = self.has_no_drops() && !cells.is_empty();
        is_alone.then(|| (self.vector.ecn_nonce_echo(), cells))
    }

    /// Writes the Ack Vector where an acknowledgement has `room` bytes for options; whether all of
    /// it went out. Of a vector that does not fit the newest cells take half of the room, so that
    /// the peer learns what arrived, and the other options find room too.
    #[inline]
    pub(super) fn write_vector(&self, room: usize, sink: &mut impl OptionSink) -> bool {
        let len = self.vector.cells().len();
        let fits = len + len.div_ceil(MAX_OPTION_CELLS) * OPTION_HEADER <= room;
        let most = if fits { len } else { (room / 2).saturating_sub(2 * OPTION_HEADER) };
        let mut options = self.vector.newest_options(most);
        let all = options.all(|(nonce, cells)| sink.option(&OptionRef::AckVector { nonce, cells }));
        fits && all
    }

    /// Writes Data Dropped about packets up to `ackno`, where there is something to report; whether
    /// it went out.
    #[inline]
    pub(super) fn write_dropped(&mut self, ackno: Seqno, sink: &mut impl OptionSink) -> bool {
        let Some(drops) = self.drops.as_mut().filter(|drops| !drops.log.is_empty()) else {
            return false;
        };
        //= 4341-6-3
        let mut blocks = [0; DROPPED_BLOCKS];
        let n = drops.log.write_blocks(ackno, &mut blocks);
        n > 0 && sink.option(&OptionRef::DataDropped(&blocks[..n]))
    }

    /// Holds acknowledgements back while the receive queue is half full. Once they wait, they do so
    /// until it is nearly empty, so that the peer resumes with room. Now and then a sign of life is
    /// due.
    pub(super) fn hold(&mut self, now: Instant, pressure: Pressure) -> Hold {
        if pressure < Pressure::Slow {
            self.held_until = MaybeInstant::NONE;
            return Hold::No;
        }
        match self.held_until.get() {
            None if pressure < Pressure::Hold => Hold::No,
            None => {
                self.held_until = MaybeInstant::some(now + LONGEST_SILENCE);
                Hold::Begins
            }
            Some(until) if until <= now => {
                self.held_until = MaybeInstant::some(now + LONGEST_SILENCE);
                Hold::Silent
            }
            Some(_) => Hold::Continues,
        }
    }

    /// The reader has caught up.
    pub(super) fn end_hold(&mut self) {
        self.held_until = MaybeInstant::NONE;
    }

    /// Until when acknowledgements are held back.
    #[inline]
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held_until.get()
    }
}
