//! Tracks what we report to the peer: packets that arrived, data that was dropped, and whether
//! acknowledgements are held back (RFC 4340 section 11).

mod records;

use udccp_base::{Duration, Ecn, Instant, MaybeInstant};
use udccp_wire::{OptionRef, Seqno};

use super::recv_side::Pressure;
use crate::ackvec::{
    AckVectorBuffer, Arrival, DEFAULT_MAX_CELLS, DropCode, DropLog, MAX_OPTION_CELLS,
};
use crate::ccid::OptionSink;
use records::AckRecords;

/// Maximum number of runs of dropped data that are kept until the peer is known to have a report of
/// them.
const MAX_DROP_RUNS: usize = 64;

/// Maximum number of blocks of Data Dropped in one packet. It reports drops that are up to 3,968
/// packets behind the newest.
const DROPPED_BLOCKS: usize = 32;

/// Type and length of an option, in bytes.
const OPTION_HEADER: usize = 2;

/// Longest silence while acknowledgements are held back.
const LONGEST_SILENCE: Duration = Duration::from_secs(30);

/// What one end reports to the other about the packets that it received.
#[derive(Clone, Debug)]
pub(super) struct AckState {
    vector: AckVectorBuffer,
    sent: AckRecords,
    /// Allocated at the first drop, and freed when the peer is known to have all reports.
    drops: Option<Box<Drops>>,
    /// Set while acknowledgements are held back: when the next keep-alive is due.
    held_until: MaybeInstant,
}

/// Data that was dropped, and the packets that reported it.
#[derive(Clone, Debug)]
struct Drops {
    log: DropLog,
    sent: AckRecords,
}

/// Whether acknowledgements are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hold {
    /// Acknowledgements may be sent.
    No,
    /// Acknowledgements are held back from now on.
    Begins,
    /// Acknowledgements are still held back.
    Continues,
    /// Still held back, and nothing has been sent to the peer for long: a keep-alive is due.
    Silent,
}

impl AckState {
    /// The state before any packet has arrived; `ecn` is false if we declare ourselves ECN
    /// Incapable.
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
    #[inline(always)]
    pub(super) fn on_packet(&mut self, seq: Seqno, ecn: Ecn) -> Arrival {
        self.vector.on_packet(seq, ecn)
    }

    /// Like [`Self::on_packet`], for `count` consecutive packets from `first` on, newer than all
    /// others.
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

    /// The peer acknowledged `ackno`, with these cells of an Ack Vector if it sent one. Forgets
    /// what the peer is now known to have.
    #[inline]
    pub(super) fn on_ack(&mut self, ackno: Seqno, cells: Option<&[u8]>) {
        if let Some(ours) = self.sent.newest_known(ackno, cells) {
            self.vector.on_ack_of_ack(ours);
        }
        if self.drops.is_some() {
            self.forget_drops(ackno, cells);
        }
    }

    /// Whether the peer may be found to have one of our reports when it acknowledges `ackno`.
    #[inline]
    pub(super) fn awaits(&self, ackno: Seqno) -> bool {
        self.drops.is_some() || self.sent.oldest().is_some_and(|oldest| oldest.at_most(ackno))
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

    /// Packet `seq` was sent, with or without the whole Ack Vector, and with or without Data
    /// Dropped.
    #[inline]
    pub(super) fn on_sent(&mut self, seq: Seqno, with_vector: bool, with_drops: bool) {
        if with_vector {
            self.on_vector_sent(seq);
        }
        if let (true, Some(drops)) = (with_drops, &mut self.drops) {
            drops.log.on_ack_sent(seq);
            drops.sent.on_sent(seq);
        }
    }

    /// Packet `seq` was sent with the whole Ack Vector and without Data Dropped.
    #[inline(always)]
    pub(super) fn on_vector_sent(&mut self, seq: Seqno) {
        self.vector.on_ack_sent(seq);
        self.sent.on_sent(seq);
    }

    /// Whether the peer should acknowledge our acknowledgements, to let us forget old cells.
    #[inline]
    pub(super) fn is_nearly_full(&self) -> bool {
        self.vector.is_nearly_full()
    }

    #[inline]
    fn has_no_drops(&self) -> bool {
        self.drops.as_ref().is_none_or(|drops| drops.log.is_empty())
    }

    /// Maximum number of bytes of options that an acknowledgement needs.
    #[inline]
    pub(super) fn option_bytes(&self, with_vector: bool) -> usize {
        let cells = if with_vector { self.vector.cells().len() + OPTION_HEADER } else { 0 };
        let dropped = if self.has_no_drops() { 0 } else { OPTION_HEADER + DROPPED_BLOCKS };
        cells + dropped
    }

    /// Nonce echo and cells of the Ack Vector; `None` if there are none, if drops have to be
    /// reported as well, or if several options have nonces.
    #[inline]
    pub(super) fn lone_vector(&self) -> Option<(bool, &[u8])> {
        let cells = self.vector.cells();
        let is_alone = self.has_no_drops() && !cells.is_empty();
        let is_even = cells.len() <= MAX_OPTION_CELLS || !self.vector.has_nonces();
        (is_alone && is_even).then(|| (self.vector.ecn_nonce_echo(), cells))
    }

    /// Writes the Ack Vector into an acknowledgement that has `room` bytes for options. Returns
    /// whether all of it was written. If it does not fit, the newest cells get half of the room:
    /// the peer sees the latest arrivals, and the other options have room too.
    #[inline]
    pub(super) fn write_vector(&self, room: usize, sink: &mut impl OptionSink) -> bool {
        let len = self.vector.cells().len();
        let fits = len + len.div_ceil(MAX_OPTION_CELLS) * OPTION_HEADER <= room;
        let most = if fits { len } else { (room / 2).saturating_sub(2 * OPTION_HEADER) };
        let mut options = self.vector.newest_options(most);
        let all = options.all(|(nonce, cells)| sink.option(&OptionRef::AckVector { nonce, cells }));
        fits && all
    }

    /// Writes Data Dropped for packets up to `ackno`, if there is something to report. Returns
    /// whether it was written.
    #[inline]
    pub(super) fn write_dropped(&mut self, ackno: Seqno, sink: &mut impl OptionSink) -> bool {
        let Some(drops) = self.drops.as_mut().filter(|drops| !drops.log.is_empty()) else {
            return false;
        };
        //= 4341-6-3
        let mut blocks = [0; DROPPED_BLOCKS];
        drops.log.discard_unreachable(ackno, blocks.len());
        let n = drops.log.write_blocks(ackno, &mut blocks);
        n > 0 && sink.option(&OptionRef::DataDropped(&blocks[..n]))
    }

    /// Holds acknowledgements back from when the receive queue is half full until it is nearly
    /// empty: the peer then resumes with room. A keep-alive is due now and then.
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

    /// The application has read enough: acknowledgements are no longer held back.
    pub(super) fn end_hold(&mut self) {
        self.held_until = MaybeInstant::NONE;
    }

    /// While acknowledgements are held back: when the next keep-alive is due.
    #[inline]
    pub(super) fn held_until(&self) -> Option<Instant> {
        self.held_until.get()
    }
}
