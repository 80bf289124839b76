//! Remembers the data packets that were sent, and what became of each.

use std::collections::VecDeque;

use udccp_base::Instant;
use udccp_wire::Seqno;

use crate::ackvec::{CellState, Evidence, NUMDUPACK};

/// From this many packets on, room is made for four times as many.
const LARGE: usize = 2048;

/// Packets before the oldest open one in which a lost packet that arrives late is noticed.
const LATE_WINDOW: usize = 16;

/// What is known of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum PacketState {
    /// Nothing yet.
    Open,
    /// It arrived.
    Received,
    /// It arrived ECN-marked.
    Marked,
    /// It is taken for lost.
    Lost,
}

/// A data packet that was sent, in 16 bytes: there is one for each packet in flight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent {
    /// Its number in 48 bits; below them whether Data Dropped was reported of it, and its state.
    packed: u64,
    pub(super) at: Instant,
}

/// Bits of a state.
const STATE_BITS: u64 = 3;
/// Data Dropped was reported of the packet.
const DROPPED: u64 = 4;
/// Bits below the number.
const SEQ_SHIFT: u32 = 3;

impl Sent {
    fn new(seq: Seqno, at: Instant) -> Self {
        Self { packed: seq.value() << SEQ_SHIFT, at }
    }

    /// Its sequence number.
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

    /// Notes that Data Dropped was reported; whether that is new.
    fn drop_now(&mut self) -> bool {
        let is_new = self.packed & DROPPED == 0;
        self.packed |= DROPPED;
        is_new
    }
}

/// What an acknowledgement newly reports of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Received,
    Marked,
    /// Marked, after it was reported received without a mark: one of two copies was.
    MarkedAgain,
    Lost,
    /// Received after all, though taken for lost.
    Late,
}

/// Data packets in order of sequence numbers. Packets before `open` are settled; they are kept
/// for a while only so that Data Dropped reports and late arrivals find them.
///
/// Packets without data take no room here, but their acknowledgement counts as evidence of loss.
/// Reading an Ack Vector stops at the oldest open packet, so each packet is looked at a bounded
/// number of times, however long the vectors are.
#[derive(Clone, Debug)]
pub(super) struct History {
    ring: VecDeque<Sent>,
    open: u32,
    evidence: Evidence,
    newest_lost: Option<Seqno>,
    /// Packets remembered at most.
    most: u32,
}

impl History {
    /// No packet yet. At most `max_window` will be in the network at once; a third as many are
    /// remembered of those that timed out or are settled.
    pub(super) fn new(max_window: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            open: 0,
            evidence: Evidence::default(),
            newest_lost: None,
            most: max_window.saturating_add((max_window / 3).max(LATE_WINDOW as u32)),
        }
    }

    #[inline]
    fn open(&self) -> usize {
        self.open as usize
    }

    /// A data packet left; its number is greater than all before.
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
            // Settled, or given up by a timeout: as many as are in the network are younger.
            self.ring.pop_front();
            self.open = self.open.saturating_sub(1);
        }
        let len = self.ring.len();
        if len == self.ring.capacity() && len >= LARGE {
            // By more than the usual doubling: while it grows, both places are taken.
            self.ring.reserve_exact((self.most as usize - len).min(3 * len));
        }
    }

    /// Forgets settled packets but the newest `keep`, and a twelfth of the largest window.
    pub(super) fn trim(&mut self, keep: usize) {
        let keep = keep.min((self.most as usize / 16).max(LATE_WINDOW));
        while self.open() > keep {
            self.ring.pop_front();
            self.open -= 1;
        }
    }

    /// When `seq` left, if it is a data packet of which nothing is known yet; `end` is its
    /// [`Self::position`].
    #[inline]
    pub(super) fn open_since(&self, seq: Seqno, end: usize) -> Option<Instant> {
        let sent = self.ring.get(end.checked_sub(1)?)?;
        (sent.seq() == seq && sent.state() == PacketState::Open).then_some(sent.at)
    }

    //= 4340-11.4-11
    //= 4340-11.4.1-2
    /// Reads an Ack Vector whose first cell begins at `ackno`, of which `end` is the
    /// [`Self::position`], then infers losses; `visit` is called for every packet whose state
    /// changes. But packets newly received without a mark, which nearly all are, are only counted
    /// where `is_plain` says of their numbers that no more is asked of them. Returns how many these
    /// were.
    pub(super) fn read_ack_vector(
        &mut self,
        (ackno, mut end): (Seqno, usize),
        cells: &[u8],
        is_plain: impl Fn(Seqno) -> bool,
        mut visit: impl FnMut(&Sent, Change),
    ) -> u32 {
        let mut counted = 0;
        let low = self.oldest_of_interest();
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

    /// The same where the first cell says of all packets of interest that they arrived without a
    /// mark, no more is asked of those that are new, and none is lost. False where it is otherwise:
    /// the rest is then left to [`Self::read_ack_vector`]. What was read counts in `counted`.
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
        // All before `end` is settled.
        self.open = self.open.max(end as u32);
        self.skip_settled();
        let (third, open) = (self.evidence.third_newest(), self.ring.get(self.open()));
        !matches!((third, open), (Some(third), Some(open)) if open.seq().is_before(third))
    }

    //= 4340-11.7-10
    /// Calls `visit` for every packet from `oldest` to `newest` that was received and whose drop
    /// was not reported before.
    pub(super) fn mark_dropped(
        &mut self,
        newest: Seqno,
        oldest: Seqno,
        mut visit: impl FnMut(&Sent),
    ) {
        let mut end = self.position(newest);
        while end > 0 && self.ring[end - 1].seq().at_least(oldest) {
            end -= 1;
            let sent = &mut self.ring[end];
            if matches!(sent.state(), PacketState::Received | PacketState::Marked)
                && sent.drop_now()
            {
                visit(sent);
            }
        }
    }

    /// Packets of which nothing is known yet, and all after them.
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

    #[inline]
    fn skip_settled(&mut self) {
        let mut open = self.open;
        while self.ring.get(open as usize).is_some_and(|sent| sent.state() != PacketState::Open) {
            open += 1;
        }
        self.open = open;
    }

    /// Index at which reading an Ack Vector may stop: the oldest open packet, or a little before
    /// it where a lost packet may still arrive.
    fn oldest_of_interest(&self) -> usize {
        let late = self.open().saturating_sub(LATE_WINDOW);
        match (self.newest_lost, self.ring.get(late)) {
            (Some(lost), Some(sent)) if lost.at_least(sent.seq()) => late,
            _ => self.open(),
        }
    }

    /// How many packets have numbers up to `seq`. Numbers without data leave gaps, so the index
    /// follows from the number up to a search as wide as the gaps are.
    pub(super) fn position(&self, seq: Seqno) -> usize {
        let Some(first) = self.ring.front() else { return 0 };
        let Ok(offset) = usize::try_from(seq.distance_from(first.seq())) else { return 0 };
        let guess = offset.min(self.ring.len() - 1);
        let over = self.ring[guess].seq().distance_from(seq);
        if over <= 0 {
            return guess + 1;
        }
        let (mut low, mut high) = (guess.saturating_sub(over as usize), guess);
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

impl Sent {
    //= 4340-11.4.1-1
    /// Combines what is known with a report that the packet was received (RFC 4340 section 11.4.1).
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
