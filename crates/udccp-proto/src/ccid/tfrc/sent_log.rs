//! Records which packets were sent and when, to measure round-trip times and to check the
//! receiver's reports.

use std::collections::VecDeque;

use udccp_base::Instant;
use udccp_wire::Seqno;

/// Largest number of packets to store, 24 bytes each. If more are unacknowledged, only every second
/// one is stored, or every fourth, and so on. Times are then wrong by up to a thousandth of the
/// packets in flight, and no peer can make the log grow further.
const MAX_PACKETS: usize = 2048;
/// Largest number of window counter steps to store. With four per round-trip time, they cover about
/// 250 round-trip times.
const MAX_STEPS: usize = 1024;
/// Largest number of packets, and of steps, before the first data. Feedback is about data, so of
/// the acknowledgements of an end that only receives, no earlier ones are ever looked up.
const MAX_BEFORE_DATA: usize = 8;
/// Number of steps that are always kept, about the last eight round-trip times.
const KEPT_STEPS: usize = 32;
/// Number of steps in about the last two round-trip times.
const RECENT_STEPS: usize = 8;

/// A packet that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// Its sequence number.
    pub(crate) seq: Seqno,
    /// When it was sent.
    pub(crate) at: Instant,
    /// Number of data packets sent so far, including this one.
    pub(crate) data: u64,
}

/// A step of the window counter.
#[derive(Clone, Copy, Debug)]
struct Step {
    /// The sequence number of the first packet with the new value in the upper 48 bits, the lower
    /// 16 bits of that value below.
    packed: u64,
    /// When the packet was sent.
    at: Instant,
}

impl Step {
    const COUNTER_BITS: u32 = 16;

    fn new(seq: Seqno, counter: u64, at: Instant) -> Self {
        let low = counter & ((1 << Self::COUNTER_BITS) - 1);
        Self { packed: seq.value() << Self::COUNTER_BITS | low, at }
    }

    fn seq(self) -> Seqno {
        Seqno::new(self.packed >> Self::COUNTER_BITS)
    }

    /// The counter, if that of a later step is `newest`. All steps that are stored are together
    /// shorter than 2^16, since the counter rises by at most 5 from one packet to the next.
    fn counter(self, newest: u64) -> u64 {
        newest - u64::from((newest as u16).wrapping_sub(self.packed as u16))
    }
}

/// The packets sent since the newest acknowledged one, and earlier steps of the window counter.
#[derive(Clone, Debug)]
pub(crate) struct SentLog {
    /// In ascending order. The newest packet is always stored.
    packets: VecDeque<Sent>,
    /// Other packets are stored if their sequence numbers are multiples of this.
    stride: u64,
    /// The first packet with each value of the window counter, and when it was sent.
    steps: VecDeque<Step>,
    /// The value of the last of these. Reading it there would take another cache line.
    counter: Option<u64>,
    first: Option<Seqno>,
}

impl Default for SentLog {
    fn default() -> Self {
        let (packets, steps) = (VecDeque::new(), VecDeque::new());
        Self { packets, stride: 1, steps, counter: None, first: None }
    }
}

impl SentLog {
    /// Records a sent packet with its window counter, which is without modulus. Its sequence number
    /// is greater than all before.
    pub(crate) fn push(&mut self, sent: Sent, counter: u64) {
        self.first.get_or_insert(sent.seq);
        if self.counter != Some(counter) {
            self.push_step(&sent, counter);
        }
        if self.stride > 1 || self.packets.len() == MAX_PACKETS {
            self.thin_out();
        } else if sent.data == 0 && self.packets.len() >= MAX_BEFORE_DATA {
            self.packets.pop_front();
        }
        make_room(&mut self.packets);
        self.packets.push_back(sent);
    }

    #[inline(never)]
    fn push_step(&mut self, sent: &Sent, counter: u64) {
        let most = if sent.data == 0 { MAX_BEFORE_DATA } else { MAX_STEPS };
        if self.steps.len() >= most {
            self.steps.pop_front();
        }
        make_room(&mut self.steps);
        self.steps.push_back(Step::new(sent.seq, counter, sent.at));
        self.counter = Some(counter);
    }

    /// Makes room for another packet where not all are stored.
    #[inline(never)]
    fn thin_out(&mut self) {
        let stride = self.stride;
        if self.packets.back().is_some_and(|newest| !is_kept(newest.seq, stride)) {
            self.packets.pop_back();
        }
        if self.packets.len() == MAX_PACKETS {
            self.stride *= 2;
            let stride = self.stride;
            self.packets.retain(|sent| is_kept(sent.seq, stride));
        }
    }

    /// The newest packet.
    pub(crate) fn newest(&self) -> Option<&Sent> {
        self.packets.back()
    }

    /// The sequence number of the first packet ever sent.
    pub(crate) fn first(&self) -> Option<Seqno> {
        self.first
    }

    /// The packet, or the nearest stored one before it. `None` if that has been removed.
    pub(crate) fn get(&self, seq: Seqno) -> Option<&Sent> {
        let after = self.packets.partition_point(|sent| sent.seq.at_most(seq));
        self.packets.get(after.checked_sub(1)?)
    }

    /// Removes the packets before `seq`.
    pub(crate) fn forget_before(&mut self, seq: Seqno) {
        while self.packets.get(1).is_some_and(|second| second.seq.at_most(seq)) {
            self.packets.pop_front();
        }
        if self.packets.len() < MAX_PACKETS / 4 {
            self.stride = (self.stride / 2).max(1);
        }
    }

    /// Steps before the one of `seq` are not looked up again. A few recent ones are kept anyway.
    pub(crate) fn forget_steps_before(&mut self, seq: Seqno) {
        while self.steps.len() > KEPT_STEPS && self.steps[1].seq().at_most(seq) {
            self.steps.pop_front();
        }
    }

    /// The window counter of a packet. `None` if that has been removed.
    pub(crate) fn counter(&self, seq: Seqno) -> Option<u64> {
        Some(self.counter_of(*self.step(seq)?))
    }

    /// When a packet was sent, to a quarter of a round-trip time. `None` if that has been removed.
    pub(crate) fn time(&self, seq: Seqno) -> Option<Instant> {
        self.step(seq).map(|step| step.at)
    }

    fn step(&self, seq: Seqno) -> Option<&Step> {
        self.steps.get(self.index_of_step(seq)?)
    }

    fn counter_of(&self, step: Step) -> u64 {
        step.counter(self.counter.unwrap_or_default())
    }

    /// Index of the step from which on packets had the counter of `seq`.
    fn index_of_step(&self, seq: Seqno) -> Option<usize> {
        let is_at_most = |step: &Step| step.seq().at_most(seq);
        // The step is usually from the last round-trip time. A binary search of all steps would
        // read memory that is otherwise unused.
        let recent = self.steps.iter().rev().take(RECENT_STEPS).position(is_at_most);
        if let Some(back) = recent {
            return Some(self.steps.len() - 1 - back);
        }
        self.steps.partition_point(is_at_most).checked_sub(1)
    }

    /// If the counter of `last` is more than `span` above that of `start`: the first packet whose
    /// counter is at least `span` above it. `None` if `start` has been removed.
    pub(crate) fn next_event(&self, start: Seqno, last: Seqno, span: u64) -> Option<Seqno> {
        let at = self.index_of_step(start)?;
        let mut later = self.steps.range(at..).take_while(|step| step.seq().at_most(last));
        let least = self.counter_of(*later.next()?) + span;
        let mut steps = later.skip_while(|step| self.counter_of(**step) < least);
        let first = steps.next()?;
        (self.counter_of(*first) > least || steps.next().is_some()).then_some(first.seq())
    }

    /// Memory used by the log.
    #[cfg(test)]
    pub(crate) fn memory_bytes(&self) -> usize {
        self.packets.capacity() * size_of::<Sent>() + self.steps_bytes()
    }

    /// The same for the steps of the counter.
    #[cfg(test)]
    pub(crate) fn steps_bytes(&self) -> usize {
        self.steps.capacity() * size_of::<Step>()
    }
}

/// Makes room for another entry. The logs of many connections are a large part of all memory: when
/// one is full, it grows by a quarter, not to twice its size.
#[inline]
fn make_room<T>(log: &mut VecDeque<T>) {
    if log.len() == log.capacity() {
        log.reserve_exact((log.len() / 4).max(4));
    }
}

fn is_kept(seq: Seqno, stride: u64) -> bool {
    // `stride` is a power of two.
    seq.value() & (stride - 1) == 0
}
