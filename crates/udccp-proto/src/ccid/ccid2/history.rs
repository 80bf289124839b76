//! Records the data packets that were sent and whether each arrived.

use core::fmt;
use std::collections::VecDeque;

use udccp_base::{Instant, MaybeInstant};
use udccp_wire::Seqno;

use crate::ackvec::{CellState, Evidence, NUMDUPACK};

/// From this size on, the buffer grows to four times its size.
const LARGE: usize = 2048;

/// How many packets before the oldest open one are checked for late arrivals.
const LATE_WINDOW: usize = 16;

/// What is known about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PacketState {
    /// Not reported yet.
    Open,
    /// It arrived.
    Received,
    /// It arrived ECN-marked.
    Marked,
    /// It is considered lost.
    Lost,
}

/// A sent data packet in 16 bytes, because there is one for each packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// The sequence number in the upper 48 bits. Below are the Data Dropped flag and the state.
    packed: u64,
    pub(super) at: Instant,
}

/// Mask of the state.
const STATE_BITS: u64 = 3;
/// Flag: Data Dropped was reported for the packet.
const DROPPED: u64 = 4;
/// Number of bits below the sequence number.
const SEQ_SHIFT: u32 = 3;

impl Sent {
    fn new(seq: Seqno, at: Instant) -> Self {
        Self { packed: seq.value() << SEQ_SHIFT, at }
    }

    /// Its sequence number.
    #[inline]
    pub(super) fn seq(&self) -> Seqno {
        Seqno::new(self.packed >> SEQ_SHIFT)
    }

    fn state(&self) -> PacketState {
        match self.packed & STATE_BITS {
            0 => PacketState::Open,
            1 => PacketState::Received,
            2 => PacketState::Marked,
            _ => PacketState::Lost,
        }
    }

    fn set_state(&mut self, state: PacketState) {
        self.packed = self.packed & !STATE_BITS | state as u64;
    }

    /// Records that Data Dropped was reported. Returns whether that is new.
    fn drop_now(&mut self) -> bool {
        let is_new = self.packed & DROPPED == 0;
        self.packed |= DROPPED;
        is_new
    }
}

/// The new information about one packet in an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Received,
    Marked,
    /// Marked, although reported as received without a mark before: one of two copies had a mark.
    MarkedAgain,
    Lost,
    /// Received, although it was considered lost.
    Late,
}

/// The oldest packets in flight: those before position `end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainRun {
    end: u32,
    /// When the newest of them was sent, if it has the acknowledged number.
    pub(super) sent_at: MaybeInstant,
}

/// Data packets in order of sequence numbers. The state of packets before `open` is final. They are
/// kept for a while so that Data Dropped reports and late arrivals find them. One before `open`
/// that is stored as open was received: where nothing else is reported, no state is written.
///
/// Packets without data are not stored, but their acknowledgement counts as evidence of loss.
/// Reading an Ack Vector stops at the oldest open packet. Each packet is therefore examined a
/// bounded number of times, however long the vectors are.
#[derive(Clone)]
pub(super) struct History {
    ring: VecDeque<Sent>,
    open: u32,
    /// All packets from this index and from `open` on are open.
    reported: u32,
    evidence: Evidence,
    newest_lost: Option<Seqno>,
    /// Largest number of packets to store.
    most: u32,
}

impl History {
    /// Creates an empty history for at most `max_window` packets in the network. It also stores a
    /// third as many that timed out or whose state is final.
    pub(super) fn new(max_window: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            open: 0,
            reported: 0,
            evidence: Evidence::default(),
            newest_lost: None,
            most: max_window.saturating_add((max_window / 3).max(LATE_WINDOW as u32)),
        }
    }

    #[inline]
    fn open(&self) -> usize {
        self.open as usize
    }

    /// A data packet was sent. Its sequence number is greater than all before.
    #[inline]
    pub(super) fn push(&mut self, seq: Seqno, at: Instant) {
        let len = self.ring.len();
        if len >= self.most as usize || len == self.ring.capacity() {
            self.make_room();
        }
        self.ring.push_back(Sent::new(seq, at));
    }

    #[inline(never)]
    fn make_room(&mut self) {
        if self.ring.len() >= self.most as usize {
            // It is final or given up: as many newer packets are stored as can be in flight.
            self.ring.pop_front();
            self.open = self.open.saturating_sub(1);
            self.reported = self.reported.saturating_sub(1);
        }
        let len = self.ring.len();
        if len == self.ring.capacity() && len >= LARGE {
            // Grows by more than a factor of two, because both buffers exist while it grows.
            self.ring.reserve_exact((self.most as usize - len).min(3 * len));
        }
    }

    /// Removes packets in a final state, except the newest `keep` of them. `keep` is limited to a
    /// twelfth of the largest window.
    #[inline(always)]
    pub(super) fn trim(&mut self, keep: usize) {
        if self.newest_lost.is_some() && self.oldest_of_interest() == self.open() {
            // Nor will it be of interest later: what is late only moves on.
            self.newest_lost = None;
        }
        let keep = keep.min((self.most as usize / 16).max(LATE_WINDOW));
        let gone = self.open.saturating_sub(keep as u32);
        for _ in 0..gone {
            self.ring.pop_front();
        }
        self.open -= gone;
        self.reported = self.reported.saturating_sub(gone);
    }

    /// The time at which `seq` was sent, if it is an open data packet. `end` is its
    /// [`Self::position`].
    #[inline(always)]
    pub(super) fn open_since(&self, seq: Seqno, end: usize) -> Option<Instant> {
        let index = end.checked_sub(1).filter(|index| *index >= self.open())?;
        let sent = self.ring.get(index)?;
        (sent.seq() == seq && sent.state() == PacketState::Open).then_some(sent.at)
    }

    //= 4340-11.4-11
    //= 4340-11.4.1-2
    /// Reads an Ack Vector that begins at `ackno`, then infers losses. `end` is the
    /// [`Self::position`] of `ackno`. Calls `visit` for each packet whose state changes. Plain
    /// packets, those that are newly received without a mark and for which `is_plain` is true, are
    /// only counted, because nearly all packets are of this kind. Returns their number.
    pub(super) fn read_ack_vector(
        &mut self,
        (ackno, mut end): (Seqno, usize),
        cells: &[u8],
        is_plain: impl Fn(Seqno) -> bool,
        mut visit: impl FnMut(&Sent, Change),
    ) -> u32 {
        let mut counted = 0;
        let low = self.oldest_of_interest();
        self.write_received(low);
        self.reported = self.reported.max(end as u32);
        let mut newest = ackno;
        let mut witnesses = NUMDUPACK;
        for &cell in cells {
            if end <= low {
                break;
            }
            let state = CellState::of_cell(cell);
            let oldest = newest.sub(u64::from(cell & 63));
            if state.is_received() {
                witnesses = self.evidence.add_run(newest, oldest, witnesses);
                let marked = state == CellState::Marked;
                for sent in self.ring.range_mut(low..end).rev() {
                    let seq = sent.seq();
                    if !seq.at_least(oldest) {
                        break;
                    }
                    end -= 1;
                    if sent.state() == PacketState::Open && !marked && is_plain(seq) {
                        sent.set_state(PacketState::Received);
                        counted += 1;
                    } else if let Some(change) = sent.combine(marked) {
                        visit(sent, change);
                    }
                }
            } else {
                end = end.min(self.position(oldest.prev()));
            }
            newest = oldest.prev();
        }
        self.infer_losses(visit);
        counted
    }

    /// Does the same in the common case: the first cell covers all packets of interest, they
    /// arrived without a mark, the new ones are plain, and none is lost. Returns false in all other
    /// cases, and [`Self::read_ack_vector`] must do the rest. Adds the number of plain packets to
    /// `counted`.
    #[inline(always)]
    pub(super) fn read_one_cell(
        &mut self,
        (ackno, end): (Seqno, usize),
        cells: &[u8],
        is_plain: impl Fn(Seqno) -> bool,
        counted: &mut u32,
    ) -> bool {
        let low = self.oldest_of_interest();
        let (Some(&cell), Some(first)) = (cells.first(), self.ring.get(low)) else { return false };
        let oldest = ackno.sub(u64::from(cell));
        let is_all =
            CellState::of_cell(cell) == CellState::Received && first.seq().at_least(oldest);
        if !is_all || end <= low {
            return false;
        }
        self.evidence.add_run(ackno, oldest, NUMDUPACK);
        self.write_received(low);
        for index in (low..end).rev() {
            let sent = &mut self.ring[index];
            match sent.state() {
                PacketState::Open if is_plain(sent.seq()) => {
                    sent.set_state(PacketState::Received);
                    *counted += 1;
                }
                PacketState::Received => {}
                _ => return false,
            }
        }
        // The state of all packets before `end` is final.
        self.open = self.open.max(end as u32);
        let open = self.skip_settled();
        let third = self.evidence.third_newest();
        !matches!((third, open), (Some(third), Some(open)) if open.is_before(third))
    }

    /// Writes the states of packets from index `low` on that are known to be received.
    #[inline(always)]
    fn write_received(&mut self, low: usize) {
        if low < self.open() {
            self.write_each_received(low);
        }
    }

    #[inline(never)]
    fn write_each_received(&mut self, low: usize) {
        for sent in self.ring.range_mut(low..self.open as usize) {
            if sent.state() == PacketState::Open {
                sent.set_state(PacketState::Received);
            }
        }
    }

    /// The open packets that an Ack Vector which begins at `ackno` with `cell` newly reports, if
    /// they are the oldest in flight and arrived without a mark, none after them was reported, and
    /// none before can be lost or late; with the number of the first. `None` in all other cases.
    #[inline(always)]
    pub(super) fn plain_run(&self, ackno: Seqno, cell: u8) -> Option<(PlainRun, Seqno)> {
        let (low, oldest) = (self.open(), ackno.sub(u64::from(cell)));
        let first = self.ring.get(low)?.seq();
        let is_received = CellState::of_cell(cell) == CellState::Received;
        let is_oldest = first.at_least(oldest)
            && self.reported <= self.open
            && self.oldest_of_interest() == low;
        if !is_received || !is_oldest || !self.evidence.is_replaced_by(ackno, oldest) {
            return None;
        }
        let (end, newest) = self.position_from(low, first, ackno);
        let sent_at = newest.map(|sent| sent.at).into();
        (end > low).then_some((PlainRun { end: end as u32, sent_at }, first))
    }

    /// Those packets arrived. Returns their number.
    #[inline(always)]
    pub(super) fn take_plain_run(&mut self, run: PlainRun, ackno: Seqno) -> u32 {
        self.evidence.replace(ackno);
        let counted = run.end - self.open;
        self.open = run.end;
        counted
    }

    //= 4340-11.7-10
    /// Calls `visit` for each received packet from `oldest` to `newest` whose drop was not reported
    /// before.
    pub(super) fn mark_dropped(
        &mut self,
        newest: Seqno,
        oldest: Seqno,
        mut visit: impl FnMut(&Sent),
    ) {
        let mut end = self.position(newest);
        while end > 0 && self.ring[end - 1].seq().at_least(oldest) {
            end -= 1;
            let is_final = end < self.open as usize;
            let sent = &mut self.ring[end];
            let is_received = match sent.state() {
                PacketState::Received | PacketState::Marked => true,
                PacketState::Open => is_final,
                PacketState::Lost => false,
            };
            if is_received && sent.drop_now() {
                visit(sent);
            }
        }
    }

    /// Number of packets before the oldest open one.
    #[cfg(test)]
    pub(super) fn final_len(&self) -> usize {
        self.open()
    }

    /// Number of packets from the oldest open one.
    #[cfg(test)]
    pub(super) fn open_len(&self) -> usize {
        self.ring.len() - self.open()
    }

    fn infer_losses(&mut self, mut visit: impl FnMut(&Sent, Change)) {
        if let Some(third) = self.evidence.third_newest() {
            while let Some(sent) = self.ring.get_mut(self.open as usize) {
                if !sent.seq().is_before(third) {
                    break;
                }
                if sent.state() == PacketState::Open {
                    sent.set_state(PacketState::Lost);
                    self.newest_lost = Some(sent.seq());
                    visit(sent, Change::Lost);
                }
                self.open += 1;
            }
        }
        self.skip_settled();
    }

    /// Moves `open` to the oldest open packet, and returns its sequence number.
    #[inline(always)]
    fn skip_settled(&mut self) -> Option<Seqno> {
        let mut open = self.open;
        let first = loop {
            match self.ring.get(open as usize) {
                Some(sent) if sent.state() != PacketState::Open => open += 1,
                sent => break sent.map(Sent::seq),
            }
        };
        self.open = open;
        first
    }

    /// Index at which reading an Ack Vector may stop: the oldest open packet, or a little before it
    /// if a lost packet there may still arrive.
    #[inline(always)]
    fn oldest_of_interest(&self) -> usize {
        let Some(lost) = self.newest_lost else { return self.open() };
        let late = self.open().saturating_sub(LATE_WINDOW);
        match self.ring.get(late) {
            Some(sent) if lost.at_least(sent.seq()) => late,
            _ => self.open(),
        }
    }

    /// Number of packets with sequence numbers up to `seq`. Packets without data leave gaps. The
    /// search therefore starts at the index without gaps, and its cost depends on their size.
    #[inline(always)]
    pub(super) fn position(&self, seq: Seqno) -> usize {
        self.ring.front().map_or(0, |first| self.position_from(0, first.seq(), seq).0)
    }

    /// The same if the packet at index `low` has the number `first`; 0 if `seq` is before it. With
    /// the packet that has the number `seq`, if there is one.
    #[inline(always)]
    fn position_from(&self, low: usize, first: Seqno, seq: Seqno) -> (usize, Option<&Sent>) {
        let Ok(offset) = usize::try_from(seq.distance_from(first)) else { return (0, None) };
        let guess = low + offset.min(self.ring.len() - 1 - low);
        let sent = &self.ring[guess];
        let over = sent.seq().distance_from(seq);
        if over <= 0 {
            return (guess + 1, (over == 0).then_some(sent));
        }
        let end = self.position_before(guess, over as usize, seq);
        (end, end.checked_sub(1).and_then(|at| self.ring.get(at)).filter(|s| s.seq() == seq))
    }

    /// The position of `seq`, which is at most `over` packets before index `guess`.
    #[cold]
    #[inline(never)]
    fn position_before(&self, guess: usize, over: usize, seq: Seqno) -> usize {
        let (mut low, mut high) = (guess.saturating_sub(over), guess);
        while low < high {
            let middle = usize::midpoint(low, high);
            if self.ring[middle].seq().at_most(seq) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

impl fmt::Debug for History {
    /// Shows what is known, whether or not it is written.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut all = self.clone();
        all.write_received(0);
        let Self { ring, open, evidence, newest_lost, .. } = &all;
        f.debug_tuple("History").field(ring).field(open).field(evidence).field(newest_lost).finish()
    }
}

impl Sent {
    //= 4340-11.4.1-1
    /// Updates the state after a report that the packet was received (RFC 4340 section 11.4.1).
    fn combine(&mut self, marked: bool) -> Option<Change> {
        let (state, change) = match (self.state(), marked) {
            (PacketState::Open, false) => (PacketState::Received, Change::Received),
            (PacketState::Open, true) => (PacketState::Marked, Change::Marked),
            (PacketState::Received, true) => (PacketState::Marked, Change::MarkedAgain),
            (PacketState::Lost, _) => (PacketState::Received, Change::Late),
            (PacketState::Received | PacketState::Marked, _) => return None,
        };
        self.set_state(state);
        Some(change)
    }
}
