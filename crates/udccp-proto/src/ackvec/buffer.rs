//! Records received packets as the Ack Vector to send.

use udccp_base::Ecn;
use udccp_wire::Seqno;

use super::cells::{Cells, packets_of};
use super::nonces::Nonces;
use super::records::Records;
use super::{CellState, MAX_OPTION_CELLS};

/// How an arriving packet relates to those recorded before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The packet right after the newest one (or the first of all).
    InOrder,
    /// A packet further ahead. The packets before it that did not arrive are now missing.
    Gap {
        /// Number of packets between the newest packet so far and this one.
        missing: u64,
    },
    /// A packet that was missing.
    Late,
    /// A packet that had already arrived.
    Duplicate,
    /// Older than the history that the buffer keeps. It will not be reported.
    Forgotten,
}

/// Run-length history of received packets, ready to be sent.
///
/// A packet in order costs O(1). The cost of a late or repeated packet grows with the number of
/// cells that are newer. The nonce of a packet is 1 if it arrived with ECT(1), as in RFC 3540.
#[derive(Clone, Debug)]
pub struct AckVectorBuffer {
    cells: Cells,
    /// The newest packet; `None` before the first.
    ackno: Option<Seqno>,
    nonces: Nonces,
    records: Records,
    ecn_incapable: bool,
    overflowed: u32,
}

impl AckVectorBuffer {
    /// Creates an empty buffer that holds at most `max_cells` cells (at least 2).
    pub fn new(max_cells: usize) -> Self {
        let max_cells = max_cells.max(2);
        Self {
            cells: Cells::new(max_cells),
            ackno: None,
            nonces: Nonces::default(),
            records: Records::new(),
            ecn_incapable: false,
            overflowed: 0,
        }
    }

    /// Reports all nonces as 0 because we declared ourselves ECN Incapable (RFC 4340 section 12.2).
    pub fn set_ecn_incapable(&mut self) {
        self.ecn_incapable = true;
    }

    /// Records a valid packet of any type whose options were processed.
    #[inline(always)]
    pub fn on_packet(&mut self, seq: Seqno, ecn: Ecn) -> Arrival {
        //= 4340-11.4-1
        //= 4340-11.4-2
        let is_next = self.ackno == Some(seq.prev());
        if is_next && ecn != Ecn::Ect1 && self.cells.extend_newest(state_of(ecn)) {
            self.ackno = Some(seq);
            return Arrival::InOrder;
        }
        self.on_any_packet(seq, ecn)
    }

    #[cold]
    #[inline(never)]
    fn on_any_packet(&mut self, seq: Seqno, ecn: Ecn) -> Arrival {
        let state = state_of(ecn);
        let ahead = self.ackno.map_or(1, |newest| seq.distance_from(newest));
        if ahead <= 0 {
            return self.on_older(seq, ahead.unsigned_abs(), state, ecn);
        }
        self.on_newer(seq, ahead as u64 - 1, 1, state);
        if ecn == Ecn::Ect1 {
            self.nonces.set(seq, self.cells.most_packets());
        }
        match ahead {
            1 => Arrival::InOrder,
            _ => Arrival::Gap { missing: ahead as u64 - 1 },
        }
    }

    /// Does the same as [`Self::on_packet`] for `count` packets with one codepoint, from `first`
    /// upwards. All of them must be newer than any before. Returns the kind of arrival of the
    /// first.
    pub fn on_run(&mut self, first: Seqno, count: u64, ecn: Ecn) -> Arrival {
        let arrival = self.on_packet(first, ecn);
        match ecn {
            // The nonce of each packet is recorded.
            Ecn::Ect1 => (1..count).for_each(|n| _ = self.on_packet(first.add(n), ecn)),
            _ => self.on_newer(first.add(count - 1), 0, count - 1, state_of(ecn)),
        }
        arrival
    }

    /// Records `count` packets that end at `seq`, after `missing` packets that did not arrive.
    fn on_newer(&mut self, seq: Seqno, missing: u64, count: u64, state: CellState) {
        let (oldest, before) = (self.oldest(), self.cells.packets());
        let mut gone = before;
        // A gap that fills the buffer would push out everything else: start again after the gap.
        if missing >= self.cells.most_packets() - 64 {
            self.cells.clear();
            self.cells.push_newest(state, count);
        } else {
            self.cells.push_newest(CellState::NotReceived, missing);
            self.cells.push_newest(state, count);
            gone = before + missing + count - self.cells.packets();
        }
        self.ackno = Some(seq);
        self.nonces.clear(oldest, gone);
        self.note_overflow(gone);
    }

    /// Records a packet `back` behind the newest, by the table of RFC 4340 section 11.4.1.
    fn on_older(&mut self, seq: Seqno, back: u64, state: CellState, ecn: Ecn) -> Arrival {
        let Some(stored) = self.cells.state(back) else { return Arrival::Forgotten };
        let late = stored == CellState::NotReceived;
        let marked_now = stored == CellState::Received && state == CellState::Marked;
        if late || marked_now {
            self.change(seq, back, state, ecn);
        }
        if late { Arrival::Late } else { Arrival::Duplicate }
    }

    fn change(&mut self, seq: Seqno, back: u64, state: CellState, ecn: Ecn) {
        let (oldest, before) = (self.oldest(), self.cells.packets());
        self.cells.set_state(back, state);
        self.nonces.clear(seq, 1);
        let gone = before - self.cells.packets();
        self.note_overflow(gone);
        if ecn == Ecn::Ect1 && back < self.cells.packets() {
            self.nonces.set(seq, self.cells.most_packets());
        }
        self.nonces.clear(oldest, gone);
        self.records.on_late_change(seq);
    }

    fn note_overflow(&mut self, packets: u64) {
        self.overflowed = self.overflowed.saturating_add(packets as u32);
    }

    /// The oldest packet in the vector.
    fn oldest(&self) -> Seqno {
        let newest = self.ackno.unwrap_or(Seqno::ZERO);
        newest.sub(self.cells.packets()).next()
    }

    /// The newest packet, which is the acknowledgement number for [`Self::cells`]. `None` before
    /// the first arrival.
    pub fn ackno(&self) -> Option<Seqno> {
        self.ackno
    }

    //= 4340-A-1
    /// The whole vector, newest first. It begins at the newest packet.
    pub fn cells(&self) -> &[u8] {
        self.cells.as_slice()
    }

    //= 4340-12.2-2
    //= 4340-12.2-3
    /// The nonce echo of the whole vector: the parity of the nonces of all Received packets.
    pub fn ecn_nonce_echo(&self) -> bool {
        self.nonces.parity() && !self.ecn_incapable
    }

    /// Whether any packet carried a nonce.
    pub(crate) fn has_nonces(&self) -> bool {
        self.nonces.are_any()
    }

    /// The vector as options of at most 253 cells, each with its own nonce echo, in order.
    pub fn options(&self) -> impl Iterator<Item = (bool, &[u8])> {
        self.newest_options(usize::MAX)
    }

    /// As [`Self::options`], but for the newest cells only, at most `most`.
    pub fn newest_options(&self, most: usize) -> impl Iterator<Item = (bool, &[u8])> {
        let all = self.cells();
        let cells = &all[..all.len().min(most)];
        let several = all.len() > MAX_OPTION_CELLS.min(most);
        let mut newest = self.ackno.unwrap_or(Seqno::ZERO);
        cells.chunks(MAX_OPTION_CELLS).map(move |chunk| {
            if !several {
                return (self.ecn_nonce_echo(), chunk);
            }
            let packets = chunk.iter().map(|&c| packets_of(c)).sum();
            newest = newest.sub(packets);
            let echo = self.nonces.parity_of(newest.next(), packets) && !self.ecn_incapable;
            (echo, chunk)
        })
    }

    /// Our packet `our_seq` was sent with the whole vector.
    #[inline]
    pub fn on_ack_sent(&mut self, our_seq: Seqno) {
        if let Some(ackno) = self.ackno {
            self.records.on_sent(our_seq, ackno);
        }
    }

    /// The peer acknowledged our packet `our_seq`, which carried a vector. The acknowledgement must
    /// not be a Sync, whose acknowledgement number says nothing about older packets. The history
    /// that our packet reported is discarded, and the newest discarded packet is returned; `None`
    /// for a packet whose vector was not recorded. The newest packet of the vector is always kept,
    /// because a vector begins with it.
    pub fn on_ack_of_ack(&mut self, our_seq: Seqno) -> Option<Seqno> {
        let known = self.records.on_acked(our_seq)?;
        let newest = self.ackno?;
        let (oldest, last) = (self.oldest(), known.min(newest.prev()));
        let count = u64::try_from(last.distance_from(oldest) + 1).unwrap_or(0);
        self.nonces.clear(oldest, count);
        self.cells.drop_oldest(count);
        Some(known)
    }

    /// Whether more than three quarters of the cells are in use. If so, ask for an acknowledgement
    /// of an acknowledgement, for example with a Sync (RFC 4340 section 11.2).
    pub fn is_nearly_full(&self) -> bool {
        4 * self.cells.len() > 3 * self.cells.max()
    }

    /// Number of packets discarded for lack of space before the peer confirmed their reports, at
    /// most `u32::MAX`.
    pub fn overflowed_packets(&self) -> u64 {
        self.overflowed.into()
    }
}

/// The state that a vector reports for a packet with this codepoint.
const fn state_of(ecn: Ecn) -> CellState {
    match ecn {
        Ecn::Ce => CellState::Marked,
        _ => CellState::Received,
    }
}
