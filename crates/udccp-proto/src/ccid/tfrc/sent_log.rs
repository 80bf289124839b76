//! Records what was sent, and when: for round-trip times and for checking what the receiver
//! reports.

use std::collections::VecDeque;

use udccp_base::Instant;
use udccp_wire::Seqno;

/// Packets remembered at most, 24 bytes each. Where more are unacknowledged, every second one is
/// remembered, or every fourth, and so on: times are then wrong by a thousandth of what is in
/// flight, and memory has a bound that no peer can move.
const MAX_PACKETS: usize = 2048;
/// Window counter steps remembered: at four a round-trip time, some 250 of those.
const MAX_STEPS: usize = 1024;
/// Steps of the last two round-trip times, about.
const RECENT_STEPS: usize = 8;

/// One packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Its number.
    pub(crate) seq: Seqno,
    /// When it left.
    pub(crate) at: Instant,
    /// Data packets sent so far, this one included.
    pub(crate) data: u64,
}

/// The packets sent since the newest that the peer acknowledged, and where the window counter
/// stepped before that.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    /// Ascending; the newest packet is always there.
    packets: VecDeque<Sent>,
    /// Of the others, those whose numbers are multiples of this are there.
    stride: u64,
    /// First packet with each value of the window counter, and when it left.
    steps: VecDeque<(Seqno, u64, Instant)>,
    first: Option<Seqno>,
}

impl Default for SentLog {
    fn default() -> Self {
        Self { packets: VecDeque::new(), stride: 1, steps: VecDeque::new(), first: None }
    }
}

impl SentLog {
    /// A packet left with this window counter, which is not taken modulo 16. Its number is greater
    /// than all before.
    pub(crate) fn push(&mut self, sent: Sent, counter: u64) {
        self.first.get_or_insert(sent.seq);
        if self.steps.back().is_none_or(|&(_, last, _)| last != counter) {
            if self.steps.len() == MAX_STEPS {
                self.steps.pop_front();
            }
            self.steps.push_back((sent.seq, counter, sent.at));
        }
        let stride = self.stride;
        if self.packets.back().is_some_and(|newest| !is_kept(newest.seq, stride)) {
            self.packets.pop_back();
        }
        if self.packets.len() == MAX_PACKETS {
            self.stride *= 2;
            let stride = self.stride;
            self.packets.retain(|sent| is_kept(sent.seq, stride));
        }
        self.packets.push_back(sent);
    }

    /// The newest packet.
    pub(crate) fn newest(&self) -> Option<&Sent> {
        self.packets.back()
    }

    /// The number of the first packet ever.
    pub(crate) fn first(&self) -> Option<Seqno> {
        self.first
    }

    /// A packet that was sent, or the nearest one remembered before it; `None` where that is
    /// forgotten.
    pub(crate) fn get(&self, seq: Seqno) -> Option<&Sent> {
        let after = self.packets.partition_point(|sent| sent.seq.at_most(seq));
        self.packets.get(after.checked_sub(1)?)
    }

    /// Forgets the packets before `seq`.
    pub(crate) fn forget_before(&mut self, seq: Seqno) {
        while self.packets.get(1).is_some_and(|second| second.seq.at_most(seq)) {
            self.packets.pop_front();
        }
        if self.packets.len() < MAX_PACKETS / 4 {
            self.stride = (self.stride / 2).max(1);
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
        let is_at_most = |&(first, ..): &(Seqno, u64, Instant)| first.at_most(seq);
        // Mostly it is one of the last round-trip time. A search in the whole would touch memory
        // that no other packet does.
        let recent = self.steps.iter().rev().take(RECENT_STEPS).find(|step| is_at_most(step));
        let step = match recent {
            Some(step) => step,
            None => {
                let after = self.steps.partition_point(is_at_most);
                self.steps.get(after.checked_sub(1)?)?
            }
        };
        Some((step.1, step.2))
    }

    /// Room taken for what is remembered.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        let step = size_of::<(Seqno, u64, Instant)>();
        self.packets.capacity() * size_of::<Sent>() + self.steps.capacity() * step
    }

    /// The first packet whose window counter is at least `counter`.
    pub(crate) fn first_with(&self, counter: u64) -> Option<Seqno> {
        let at = self.steps.partition_point(|&(_, c, _)| c < counter);
        self.steps.get(at).map(|&(first, ..)| first)
    }
}

fn is_kept(seq: Seqno, stride: u64) -> bool {
    // A power of two.
    seq.value() & (stride - 1) == 0
}
