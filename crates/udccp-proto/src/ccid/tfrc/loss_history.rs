//! Turns arriving packets into loss events and loss intervals (RFC 5348 section 5, RFC 4342
//! sections 6.1 and 10.2).
//!
//! Packets are settled in order of sequence numbers: a packet is received, or it is lost if three
//! later packets have arrived (at once if one of these is marked). Only a few packets ever wait to
//! be settled.

use std::collections::VecDeque;

use udccp_base::Ecn;
use udccp_wire::{LossInterval, Seqno};

use super::counter_rtt::distance;
use super::{LossAverage, NDUPACK, NINTERVAL, SHORT_ROUNDS, SmallPackets};

/// Counter steps of one loss event: a round-trip time.
const ONE_RTT: u8 = 4;
/// Largest number of counter steps in a short loss interval.
const SHORT_STEPS: u32 = SHORT_ROUNDS as u32 * ONE_RTT as u32;

/// Intervals for which memory is taken at a time, after the first: three times this is all.
const MORE_INTERVALS: usize = (NINTERVAL + 1).div_ceil(3);

/// A packet that arrived, and is no duplicate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrived {
    pub(crate) seq: Seqno,
    /// CCVal, if it is a data packet.
    pub(crate) data: Option<u8>,
    pub(crate) ecn: Ecn,
    /// Number of non-data packets just before it; 0 if unknown.
    pub(crate) ndp: u64,
}

/// What an arrival changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// A loss event began.
    pub(crate) new_event: bool,
    /// A late packet removed a loss event.
    pub(crate) removed_event: bool,
}

/// One loss interval.
#[derive(Clone, Copy, Debug)]
struct Interval {
    start: Seqno,
    /// First sequence number after the lossy part; `start` if there is no lossy part.
    lossless: Seqno,
    /// Number of lost or marked data packets.
    losses: u64,
    /// Number of data packets, received or lost. For the interval before the first loss, the length
    /// that gives the rate at that time.
    data: u64,
    /// Counter steps since the packet before the start, at most 2^32 - 1.
    steps: u32,
    /// Parity of ECT(1) in the data packets of the lossless part.
    nonce: bool,
}

impl Interval {
    fn from(start: Seqno) -> Self {
        Self { start, lossless: start, losses: 0, data: 0, steps: 0, nonce: false }
    }
}

/// The receiver's record of losses.
#[derive(Clone, Debug)]
pub(crate) struct LossHistory {
    /// All packets up to this one are settled.
    settled: Option<Seqno>,
    /// The greatest sequence number received.
    greatest: Seqno,
    /// Packets after a hole, in order.
    waiting: VecDeque<Arrived>,
    /// Newest first.
    intervals: VecDeque<Interval>,
    average: LossAverage,
    /// Window counter of the last settled data packet, C(Y_prev).
    last_counter: Option<u8>,
    /// Window counter before the current loss event, C(X_prev).
    event_counter: Option<u8>,
    /// Whether a packet more than a round-trip time after X_prev is settled.
    event_is_over: bool,
    /// Whether losses are counted in short intervals (RFC 4828 section 4.4).
    counts_losses: bool,
}

impl LossHistory {
    /// Creates an empty history. `counts_losses` is true for small packets (RFC 4828).
    pub(crate) fn new(discounting: bool, counts_losses: bool) -> Self {
        Self {
            counts_losses,
            settled: None,
            greatest: Seqno::ZERO,
            waiting: VecDeque::new(),
            intervals: VecDeque::new(),
            average: LossAverage::new(discounting),
            last_counter: None,
            event_counter: None,
            event_is_over: true,
        }
    }

    /// Packets without data arrived, in order, from `first` to `last`, and nothing before.
    pub(crate) fn start_without_data(&mut self, first: Seqno, last: Seqno) {
        self.push_interval(Interval::from(first));
        (self.settled, self.greatest) = (Some(last), last);
    }

    /// The loss event rate p.
    pub(crate) fn rate(&self) -> f64 {
        // The current interval grows with every packet, and reports are few.
        match self.intervals.is_empty() {
            true => self.average.rate(),
            false => self.average.rate_at(self.length(0)),
        }
    }

    /// Processes a packet if it is the next one, none waits, and it is no loss. Returns whether it
    /// did. This is so for nearly all packets.
    #[inline]
    pub(crate) fn take_next(&mut self, packet: &Arrived) -> bool {
        let is_next = self.settled.is_some_and(|settled| packet.seq == settled.next());
        let has_marks = packet.data.is_some() && packet.ecn == Ecn::Ce;
        if !is_next || has_marks || !self.waiting.is_empty() {
            return false;
        }
        self.greatest = self.greatest.max(packet.seq);
        self.settled = Some(packet.seq);
        if let Some(ccval) = packet.data {
            self.count(ccval, packet.ecn);
        }
        self.update_short();
        true
    }

    /// Processes any arriving packet that is no duplicate. `first` returns the length to assume for
    /// the interval before the first loss.
    pub(crate) fn on_packet(&mut self, packet: Arrived, first: &dyn Fn() -> u32) -> Change {
        let mut change = Change::default();
        let Some(settled) = self.settled else {
            self.settled = Some(packet.seq.prev());
            self.greatest = packet.seq;
            self.push_interval(Interval::from(packet.seq));
            self.settle(packet, first, &mut change);
            return change;
        };
        self.greatest = self.greatest.max(packet.seq);
        if packet.seq.at_most(settled) {
            change.removed_event = packet.data.is_some() && self.take_late(packet.seq);
            return change;
        }
        let at = self.waiting.partition_point(|w| w.seq.is_before(packet.seq));
        self.waiting.insert(at, packet);
        self.settle_what_can_be(first, &mut change);
        self.update_short();
        change
    }

    /// Adds the newest interval. Connections that lose nothing never have a second one, so the
    /// memory for all is not taken at once.
    fn push_interval(&mut self, interval: Interval) {
        let len = self.intervals.len();
        if len == self.intervals.capacity() {
            self.intervals.reserve_exact(if len == 0 { 1 } else { MORE_INTERVALS });
        }
        self.intervals.push_front(interval);
    }

    #[inline]
    fn update_short(&mut self) {
        if self.counts_losses {
            self.average.set_short(self.is_short(0));
        }
    }

    fn is_short(&self, index: usize) -> bool {
        let interval = &self.intervals[index];
        self.counts_losses && interval.losses > 0 && interval.steps <= SHORT_STEPS
    }

    /// Length of an interval in the average.
    fn length(&self, index: usize) -> f64 {
        let Interval { data, losses, .. } = self.intervals[index];
        SmallPackets::length(data, losses, self.is_short(index))
    }

    fn settle_what_can_be(&mut self, first: &dyn Fn() -> u32, change: &mut Change) {
        while let (Some(&next), Some(settled)) = (self.waiting.front(), self.settled) {
            if next.seq != settled.next() {
                let marked = self.waiting.iter().any(|w| w.data.is_some() && w.ecn == Ecn::Ce);
                if self.waiting.len() < NDUPACK && !marked {
                    return;
                }
                self.lose_before(&next, settled.next(), first, change);
            }
            self.waiting.pop_front();
            self.settle(next, first, change);
        }
    }

    //= 4342-6.1-2
    //= 4342-6.1.1-1
    /// Packets from `start` to just before `next` are lost. Those that the NDP Count of `next`
    /// shows to be non-data do not matter.
    fn lose_before(
        &mut self,
        next: &Arrived,
        start: Seqno,
        first: &dyn Fn() -> u32,
        change: &mut Change,
    ) {
        let hole = next.seq.distance_from(start).max(0) as u64;
        let data = hole.saturating_sub(next.ndp);
        if data > 0 {
            self.lose(start, data, first, change);
            self.intervals[0].data += data;
        }
    }

    /// `count` packets from `start` on are lost or marked.
    fn lose(&mut self, start: Seqno, count: u64, first: &dyn Fn() -> u32, change: &mut Change) {
        //= 4342-6.1-1
        if self.event_is_over {
            if self.average.lengths().is_empty() {
                let first = first();
                self.average.start(first);
                self.intervals[0].data = u64::from(first);
            } else {
                self.average.begin(self.length(0));
            }
            self.intervals.truncate(NINTERVAL);
            self.push_interval(Interval::from(start));
            self.event_counter = self.last_counter;
            self.event_is_over = false;
            change.new_event = true;
        }
        let current = &mut self.intervals[0];
        current.losses += count;
        current.lossless = start.add(count);
        current.nonce = false;
    }

    fn settle(&mut self, packet: Arrived, first: &dyn Fn() -> u32, change: &mut Change) {
        self.settled = Some(packet.seq);
        let Some(ccval) = packet.data else { return };
        let marked = packet.ecn == Ecn::Ce;
        if marked {
            self.lose(packet.seq, 1, first, change);
        }
        self.count(ccval, packet.ecn);
    }

    /// A data packet with this counter is settled, and belongs to the current interval.
    #[inline]
    fn count(&mut self, ccval: u8, ecn: Ecn) {
        let current = &mut self.intervals[0];
        current.data += 1;
        current.nonce ^= ecn == Ecn::Ect1;
        // Before the first data packet there is no X_prev. That packet's counter is the closest.
        let before = *self.event_counter.get_or_insert(ccval);
        self.event_is_over |= distance(before, ccval) > ONE_RTT;
        let step = distance(self.last_counter.unwrap_or(ccval), ccval);
        current.steps = current.steps.saturating_add(step.into());
        self.last_counter = Some(ccval);
    }

    //= 5348-6-2
    //= 5348-6.1-1
    /// A data packet that was considered lost arrived. Returns whether its loss event is removed.
    fn take_late(&mut self, seq: Seqno) -> bool {
        let Some(index) = self.intervals.iter().position(|i| i.start.at_most(seq)) else {
            return false;
        };
        let interval = &mut self.intervals[index];
        if !seq.is_before(interval.lossless) {
            return false;
        }
        interval.losses = interval.losses.saturating_sub(1);
        let joined = *interval;
        if joined.losses > 0 || index + 1 >= self.intervals.len() {
            self.average.set(index, self.length(index));
            return false;
        }
        self.intervals.remove(index);
        let before = &mut self.intervals[index];
        before.data += joined.data;
        before.nonce ^= joined.nonce;
        before.steps = before.steps.saturating_add(joined.steps);
        self.average.join(index);
        if self.average.lengths().is_empty() {
            // A single interval is the one before the first loss, which has no lossy part.
            let only = &mut self.intervals[index];
            (only.lossless, only.losses) = (only.start, 0);
        }
        self.average.set(index, self.length(index));
        self.event_is_over |= index == 0;
        true
    }

    //= 4342-8.6.1-1
    //= 4342-8.6.1-5
    //= 4342-7-1
    //= 4342-8.6.1-6
    //= 4342-8.6.1-7
    /// Skip Length and the loss intervals, newest first, to acknowledge the greatest sequence
    /// number received (RFC 4342 section 8.6.1). The data length of the first interval is an
    /// assumption.
    pub(crate) fn report(&self) -> (u8, impl Iterator<Item = LossInterval> + '_) {
        let unsettled = self.settled.map_or(0, |s| self.greatest.distance_from(s).max(0));
        // The rest of a longer hole may still be filled. It counts with the packets before it.
        let skip = unsettled.min(NDUPACK as i64) as u8;
        let mut end = self.greatest.sub(u64::from(skip)).next();
        let has_loss = !self.average.lengths().is_empty();
        let intervals = self.intervals.iter().map(move |interval| {
            let data = if has_loss { interval.data } else { 0 };
            let of = |from: Seqno, to: Seqno| u32::try_from(to.distance_from(from)).unwrap_or(0);
            let reported = LossInterval {
                lossless_length: of(interval.lossless, end),
                nonce_echo: interval.nonce,
                loss_length: of(interval.start, interval.lossless),
                data_length: u32::try_from(data).unwrap_or(u32::MAX),
            };
            end = interval.start;
            reported
        });
        (skip, intervals)
    }

    //= 5622-8.7-1
    //= 5622-8.7-7
    /// Drop Counts of the reported intervals, newest first (RFC 5622 section 8.7).
    pub(crate) fn drop_counts(&self) -> impl Iterator<Item = u32> + '_ {
        self.intervals.iter().map(|i| u32::try_from(i.losses).unwrap_or(u32::MAX).min(0xff_ffff))
    }
}
