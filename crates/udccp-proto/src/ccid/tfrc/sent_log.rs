//! What was sent, and when: for round-trip times and for checking what the receiver reports.

use std::collections::VecDeque;

use udccp_base::Instant;
use udccp_wire::Seqno;

/// Packets remembered one by one, at most: those that no feedback covered yet.
const MAX_PACKETS: usize = 1 << 18;
/// Window counter steps remembered: at four a round-trip time, some 250 of those.
const MAX_STEPS: usize = 1024;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// When it left.
    pub(crate) at: Instant,
    /// The window counter, not taken modulo 16.
    pub(crate) counter: u64,
    /// Data packets sent so far, this one included.
    pub(crate) data: u64,
}

/// The packets sent since the last feedback, and where the window counter stepped before that.
#[derive(Clone, Debug, Default)]
pub(crate) struct SentLog {
    /// The number of the first packet in `packets`.
    base: Option<Seqno>,
    packets: VecDeque<Sent>,
    /// First packet with each value of the window counter, and when it left.
    steps: VecDeque<(Seqno, u64, Instant)>,
    first: Option<Seqno>,
}

impl SentLog {
    /// A packet left; numbers grow by one.
    pub(crate) fn push(&mut self, seq: Seqno, sent: Sent) {
        self.first.get_or_insert(seq);
        if self.base.is_none() || seq != self.next() {
            self.packets.clear();
            self.base = Some(seq);
        }
        if self.packets.len() == MAX_PACKETS {
            self.drop_front();
        }
        if self.steps.back().is_none_or(|&(_, counter, _)| counter != sent.counter) {
            if self.steps.len() == MAX_STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back((seq, sent.counter, sent.at));
        }
        self.packets.push_back(sent);
    }

    fn drop_front(&mut self) {
        self.packets.pop_front();
        self.base = self.base.map(Seqno::next);
    }

    /// The number of the next packet.
    pub(crate) fn next(&self) -> Seqno {
        self.base.map_or(Seqno::ZERO, |base| base.add(self.packets.len() as u64))
    }

    /// The number of the first packet ever.
    pub(crate) fn first(&self) -> Option<Seqno> {
        self.first
    }

    /// A packet, if it is remembered.
    pub(crate) fn get(&self, seq: Seqno) -> Option<&Sent> {
        let index = usize::try_from(seq.distance_from(self.base?)).ok()?;
        self.packets.get(index)
    }

    /// Forgets the packets before `seq`.
    pub(crate) fn forget_before(&mut self, seq: Seqno) {
        while self.packets.len() > 1 && self.base.is_some_and(|base| base.is_before(seq)) {
            self.drop_front();
        }
    }

    /// The window counter that a packet had; `None` where that is forgotten.
    pub(crate) fn counter(&self, seq: Seqno) -> Option<u64> {
        self.step(seq).map(|(counter, _)| counter)
    }

    /// When a packet left, to a quarter of a round-trip time; `None` where that is forgotten.
    pub(crate) fn time(&self, seq: Seqno) -> Option<Instant> {
        self.step(seq).map(|(_, at)| at)
    }

    fn step(&self, seq: Seqno) -> Option<(u64, Instant)> {
        let after = self.steps.partition_point(|&(first, ..)| first.at_most(seq));
        self.steps.get(after.checked_sub(1)?).map(|&(_, counter, at)| (counter, at))
    }

    /// The first packet whose window counter is at least `counter`.
    pub(crate) fn first_with(&self, counter: u64) -> Option<Seqno> {
        let at = self.steps.partition_point(|&(_, c, _)| c < counter);
        self.steps.get(at).map(|&(first, ..)| first)
    }
}
