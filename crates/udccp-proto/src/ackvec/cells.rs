//! Stores cells in wire format. The vector grows towards the front of the buffer.

use core::fmt;

use super::CellState;
use super::room::Room;

/// Largest number of packets in one cell.
const FULL: u64 = 64;

/// Largest growth by one change in the middle: one cell becomes three.
const SLACK: usize = 2;

/// A vector of cells, newest first, inside a larger buffer. New cells go before the first one. When
/// no space is left there, all cells move to the end of the buffer. The buffer grows while more
/// than half of it is in use.
#[derive(Clone)]
pub(super) struct Cells {
    buf: Room,
    head: usize,
    tail: usize,
    max: u32,
    /// At most 64 in each cell.
    packets: u32,
}

impl fmt::Debug for Cells {
    /// Shows the cells only. The rest of the buffer has no meaning.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cells").field(&self.as_slice()).finish()
    }
}

/// Position of a packet in the vector.
struct Place {
    /// Index of the cell in the buffer.
    index: usize,
    /// Number of packets in this cell that are newer than the packet.
    newer: u64,
}

impl Cells {
    /// Creates a vector of at most `max` cells.
    pub(super) fn new(max: usize) -> Self {
        let buf = Room::default();
        let max = max.min(1 << 24) as u32;
        Self { head: buf.len(), tail: buf.len(), buf, max, packets: 0 }
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        self.buf.part(self.head, self.tail)
    }

    /// Number of cells in use.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.tail - self.head
    }

    /// Largest number of cells.
    pub(super) fn max(&self) -> usize {
        self.max as usize
    }

    /// Number of packets that `max` full cells cover.
    pub(super) fn most_packets(&self) -> u64 {
        FULL * u64::from(self.max)
    }

    /// Number of packets that the cells cover.
    pub(super) fn packets(&self) -> u64 {
        self.packets.into()
    }

    pub(super) fn clear(&mut self) {
        (self.head, self.tail, self.packets) = (self.buf.len(), self.buf.len(), 0);
    }

    /// Adds one packet to the newest cell if the state is the same and it is not full: the usual
    /// case.
    #[inline(always)]
    pub(super) fn extend_newest(&mut self, state: CellState) -> bool {
        // At `head` there is a cell, or the buffer ends. One subtraction compares the state and
        // what the cell has room for.
        match self.buf.byte_mut(self.head) {
            Some(first) if u64::from(*first ^ (state as u8) << 6) < FULL - 1 => {
                *first += 1;
                self.packets += 1;
                true
            }
            _ => false,
        }
    }

    /// Adds `count` packets of one state at the front. Removes the oldest cells if there are too
    /// many.
    pub(super) fn push_newest(&mut self, state: CellState, mut count: u64) {
        let first = self.buf[self.head..self.tail].first_mut();
        if let Some(first) = first.filter(|first| CellState::of_cell(**first) == state) {
            let room = FULL - packets_of(*first);
            let filled = room.min(count);
            *first += filled as u8;
            self.packets += filled as u32;
            count -= filled;
        }
        // More packets than `max` full cells hold would be removed at once.
        count = count.min(self.most_packets());
        while count > 0 {
            self.make_room(1);
            self.head -= 1;
            let packets = count.min(FULL);
            self.buf[self.head] = cell(state, packets);
            self.packets += packets as u32;
            count -= packets;
            self.trim();
        }
    }

    /// Removes the `count` oldest packets.
    pub(super) fn drop_oldest(&mut self, mut count: u64) {
        while count > 0 && self.head < self.tail {
            let last = &mut self.buf[self.tail - 1];
            let packets = packets_of(*last);
            let gone = packets.min(count);
            if gone == packets {
                self.tail -= 1;
            } else {
                *last -= gone as u8;
            }
            self.packets -= gone as u32;
            count -= gone;
        }
        if self.head == self.tail {
            self.clear();
        }
    }

    /// The state of the packet `back` behind the newest, if a cell covers it.
    pub(super) fn state(&self, back: u64) -> Option<CellState> {
        self.find(back).map(|place| CellState::of_cell(self.buf[place.index]))
    }

    /// Changes the state of that packet. Takes time proportional to the number of newer cells.
    pub(super) fn set_state(&mut self, back: u64, state: CellState) {
        self.make_room(SLACK);
        let Some(Place { index, newer }) = self.find(back) else { return };
        let old = self.buf[index];
        let older = packets_of(old) - 1 - newer;
        let (mut first, mut after) = (index, index + 1);
        let mut runs = Joiner::default();
        // A neighbouring cell is included if it may be merged with the new state.
        if newer == 0 && first > self.head {
            first -= 1;
            runs.add_cell(self.buf[first]);
        }
        runs.add(CellState::of_cell(old), newer);
        runs.add(state, 1);
        runs.add(CellState::of_cell(old), older);
        if older == 0 && after < self.tail {
            runs.add_cell(self.buf[after]);
            after += 1;
        }
        self.splice(first, after, &runs);
    }

    /// Replaces the cells `first..after` with `runs` and moves the newer cells.
    fn splice(&mut self, first: usize, after: usize, runs: &Joiner) {
        let mut new = [0; 2 * Joiner::MAX];
        let len = runs.encode(&mut new);
        let start = after - len;
        let head = self.head + start - first;
        self.buf.copy_within(self.head..first, head);
        self.buf[start..after].copy_from_slice(&new[..len]);
        self.head = head;
        self.trim();
    }

    fn find(&self, mut back: u64) -> Option<Place> {
        for index in self.head..self.tail {
            let packets = packets_of(self.buf[index]);
            if back < packets {
                return Some(Place { index, newer: back });
            }
            back -= packets;
        }
        None
    }

    /// Makes space for `count` cells before the first.
    fn make_room(&mut self, count: usize) {
        if self.head >= count {
            return;
        }
        let len = self.tail - self.head;
        let most = 2 * self.max() + 2 * SLACK;
        if self.buf.len() < most && 2 * (len + count) > self.buf.len() {
            // The buffer starts small, because most vectors need only a few cells.
            let room = (2 * self.buf.len()).max(2 * (len + count)).min(most);
            let mut buf = Room::of(room);
            buf[room - len..].copy_from_slice(self.as_slice());
            self.buf = buf;
        } else {
            let head = self.buf.len() - len;
            self.buf.copy_within(self.head..self.tail, head);
        }
        (self.head, self.tail) = (self.buf.len() - len, self.buf.len());
    }

    fn trim(&mut self) {
        while self.len() > self.max() {
            self.tail -= 1;
            self.packets -= packets_of(self.buf[self.tail]) as u32;
        }
    }
}

/// A few runs. Neighbours of the same state are merged.
#[derive(Default)]
struct Joiner {
    runs: [(u8, u64); Self::MAX],
    len: usize,
}

impl Joiner {
    const MAX: usize = 5;

    fn add(&mut self, state: CellState, packets: u64) {
        if packets == 0 {
            return;
        }
        if self.len > 0 && self.runs[self.len - 1].0 == state as u8 {
            self.runs[self.len - 1].1 += packets;
            return;
        }
        self.runs[self.len] = (state as u8, packets);
        self.len += 1;
    }

    fn add_cell(&mut self, cell: u8) {
        self.add(CellState::of_cell(cell), packets_of(cell));
    }

    /// Encodes the runs as cells. If a run needs several cells, the oldest of them are full.
    fn encode(&self, out: &mut [u8]) -> usize {
        let mut at = 0;
        for &(state, packets) in &self.runs[..self.len] {
            let rest = (packets - 1) % FULL + 1;
            out[at] = (state << 6) | (rest - 1) as u8;
            at += 1;
            for _ in 0..(packets - rest) / FULL {
                out[at] = (state << 6) | (FULL - 1) as u8;
                at += 1;
            }
        }
        at
    }
}

fn cell(state: CellState, packets: u64) -> u8 {
    ((state as u8) << 6) | (packets - 1) as u8
}

pub(super) const fn packets_of(cell: u8) -> u64 {
    (cell & 63) as u64 + 1
}
