//! Checks the reported loss intervals against what was sent (RFC 4342 section 9.2).

use udccp_base::Duration;
use udccp_wire::{LossInterval, Seqno};

use super::feedback::{MOST_INTERVALS, Options, length_of};
use crate::ccid::probes::Probes;
use crate::ccid::tfrc::{LossAverage, NDUPACK, SHORT_ROUNDS, SentLog, SmallPackets};

/// Number of sequence numbers before the first packet of this half, for the handshake.
const HANDSHAKE_NUMBERS: u64 = 64;
/// Counter steps of one loss event, plus one for the packet that a step comes with.
const LONGEST_EVENT: u64 = 5;
/// Largest number of corrupt packets to remember.
const MAX_CORRUPT: usize = 16;

/// Why a Loss Intervals option is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReportError {
    /// It reaches back before the first packet.
    BeforeFirst,
    /// It skips more packets than may still arrive.
    SkipsTooMuch,
    /// An interval has more data packets than packets.
    MoreDataThanPackets,
    /// It has no interval.
    Empty,
}

/// A loss event in the sender's record, newest first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Event {
    start: Seqno,
    /// Data packets from its start to the start of the next event.
    data: u32,
    /// How many of those were lost or marked.
    drops: u32,
    /// Whether it lasted at most two round-trip times, including what follows it.
    is_short: bool,
}

impl Event {
    fn length(&self) -> f64 {
        SmallPackets::length(self.data.into(), self.drops.into(), self.is_short)
    }
}

/// What the sender knows about its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sending<'a> {
    pub(crate) log: &'a SentLog,
    pub(crate) rtt: Duration,
    /// Upper limit for the interval before the first loss.
    pub(crate) first_at_most: u32,
}

/// The sender's own record of loss intervals.
#[derive(Clone, Debug)]
pub(crate) struct Verifier {
    average: LossAverage,
    /// The starts of the intervals of `average`, newest first.
    starts: [Seqno; MOST_INTERVALS],
    /// Whether each of them was short when it ended.
    was_short: [bool; MOST_INTERVALS],
    /// Whether losses are counted in short intervals (RFC 4828 section 4.4).
    counts_losses: bool,
    /// Packets with corrupt data. Each counts as marked, whatever the receiver reports.
    corrupt: Vec<Seqno>,
    /// Our own marks that have not been judged yet. Below, those that the receiver reported.
    probes: Probes,
    reported: Probes,
    /// Number of our own marks that were reported, and that were not, since the last query.
    probe_counts: (u32, u32),
    /// Number of additional loss events found in reported intervals, beyond one for each.
    pub(crate) split: u64,
    /// Number of rejected options.
    pub(crate) lies: u64,
}

impl Verifier {
    /// Creates an empty record. `counts_losses` is true for small packets (RFC 4828).
    pub(crate) fn new(discounting: bool, counts_losses: bool) -> Self {
        Self {
            average: LossAverage::new(discounting),
            starts: [Seqno::ZERO; MOST_INTERVALS],
            was_short: [false; MOST_INTERVALS],
            counts_losses,
            corrupt: Vec::new(),
            probes: Probes::default(),
            reported: Probes::default(),
            probe_counts: (0, 0),
            split: 0,
            lies: 0,
        }
    }

    /// The loss event rate according to our own record.
    pub(crate) fn rate(&self) -> f64 {
        self.average.rate()
    }

    /// A packet arrived with corrupt data.
    pub(crate) fn on_corrupt(&mut self, seq: Seqno) {
        if self.corrupt.len() == MAX_CORRUPT {
            self.corrupt.remove(0);
        }
        self.corrupt.push(seq);
    }

    /// A packet was sent with a mark of our own.
    pub(crate) fn on_probe(&mut self, seq: Seqno) {
        self.probes.push(seq);
    }

    /// Number of our own marks that were reported, and that were not, since the last call.
    pub(crate) fn take_probe_counts(&mut self) -> (u32, u32) {
        core::mem::take(&mut self.probe_counts)
    }

    //= 4340-12.3-1
    //= 4340-12.3-2
    /// Checks our own marks before `end` against the intervals. A mark that was reported is in a
    /// lossy part. Otherwise the receiver hides it, and the packet still counts as marked.
    fn judge_probes(&mut self, options: &Options, end: Seqno) {
        while let Some(probe) = self.probes.take_before(end) {
            let mut until = end;
            let found = options.intervals().iter().find_map(|interval| {
                let lossless = until.sub(u64::from(interval.lossless_length));
                until = lossless.sub(u64::from(interval.loss_length));
                probe.at_least(until).then(|| probe.is_before(lossless))
            });
            match found {
                Some(true) => {
                    self.probe_counts.0 += 1;
                    self.reported.push(probe);
                }
                Some(false) => {
                    self.probe_counts.1 += 1;
                    self.on_corrupt(probe);
                }
                None => {}
            }
        }
    }

    /// Processes an option. Returns the number of new loss events.
    pub(crate) fn take(
        &mut self,
        ackno: Seqno,
        options: &Options,
        sending: &Sending<'_>,
    ) -> Result<u64, ReportError> {
        let checked = check(ackno, options, sending.log).inspect_err(|_| self.lies += 1);
        let newest_end = checked?;
        let mut end = newest_end;
        self.judge_probes(options, end);
        let mut events = Events::default();
        // What follows an event that is only our own mark. It joins the next older interval.
        let mut joined = LossInterval::default();
        for (i, &interval) in options.intervals().iter().enumerate() {
            let whole = LossInterval {
                lossless_length: interval.lossless_length + joined.lossless_length,
                data_length: interval.data_length + joined.data_length,
                ..interval
            };
            let start = end.sub(length_of(&whole));
            let is_last = i + 1 == options.intervals().len();
            if whole.loss_length == 1 && !is_last && self.reported.contains(start) {
                joined = LossInterval { lossless_length: whole.lossless_length + 1, ..whole };
                continue;
            }
            end = self.add(&mut events, &whole, options.drops(i), end, sending);
            joined = LossInterval::default();
        }
        if self.counts_losses {
            mark_short(&mut events, ackno, sending);
        }
        if let [only] = events.get() {
            self.on_no_loss(only.start, newest_end);
            return Ok(0);
        }
        Ok(self.adopt(&events))
    }

    /// The first packet whose window counter a later report of the same receiver may need, after
    /// this one was taken; `None` if it may be that of any packet. A loss event of one packet is
    /// never split, unless it is the newest, which may last on.
    pub(crate) fn needed_from(&self, ackno: Seqno, options: &Options) -> Option<Seqno> {
        let has_marks = [&self.probes, &self.reported].iter().any(|marks| !marks.is_empty());
        if has_marks || !self.corrupt.is_empty() {
            return None;
        }
        let mut start = ackno.sub(u64::from(options.skip)).next();
        let (mut needed, mut is_newest) = (start, true);
        for interval in options.intervals() {
            start = start.sub(length_of(interval));
            let is_event = interval.loss_length > 0;
            if is_event && (is_newest || interval.loss_length > 1 || self.counts_losses) {
                needed = start;
            }
            is_newest &= !is_event;
        }
        Some(needed)
    }

    /// The receiver has lost nothing from `start` to before `end`. Either late packets have removed
    /// our events, or the receiver has forgotten them: then nothing was lost since the newest. The
    /// rate must not stay what it was.
    fn on_no_loss(&mut self, start: Seqno, end: Seqno) {
        let Some(events) = self.average.lengths().len().checked_sub(1) else { return };
        if start.at_most(self.starts[events.max(1) - 1]) {
            self.average.clear();
            return;
        }
        let since = end.distance_from(self.starts[0]).max(0) as u64;
        self.was_short[0] = false;
        self.average.set_short(false);
        self.average.set_current(SmallPackets::length(since, 0, false));
    }

    /// Adds one reported interval, split into several events if necessary. Returns its start.
    fn add(
        &mut self,
        events: &mut Events,
        interval: &LossInterval,
        drops: u32,
        end: Seqno,
        sending: &Sending<'_>,
    ) -> Seqno {
        let log = sending.log;
        let lossless = end.sub(u64::from(interval.lossless_length));
        let start = lossless.sub(u64::from(interval.loss_length));
        let data = interval.data_length;
        let is_first = interval.loss_length == 0;
        if is_first {
            let data = if data == 0 { 0 } else { data.min(sending.first_at_most).max(1) };
            self.cut(events, Event { start, data, ..Event::default() }, end, lossless, log);
            return start;
        }
        let mut splits = [start; MOST_INTERVALS];
        let mut known = 1;
        while known < MOST_INTERVALS {
            let Some(next) = next_event(splits[known - 1], lossless.prev(), log) else { break };
            splits[known] = next;
            known += 1;
        }
        //= 4342-9.2-1
        self.split += known as u64 - 1;
        let mut part_end = end;
        for &part in splits[..known].iter().rev() {
            // Each part gets its share of the data packets, in proportion to its sequence numbers.
            let total = end.distance_from(start).max(1) as u64;
            let span = part_end.distance_from(part).max(1) as u64;
            let share = |n: u32| u32::try_from((u64::from(n) * span / total).max(1));
            let [data, drops] = [data, drops].map(|n| share(n).unwrap_or(u32::MAX));
            let event = Event { start: part, data, drops, is_short: false };
            self.cut(events, event, part_end, lossless.max(part), log);
            part_end = part;
        }
        start
    }

    //= 4340-11.7.2-7
    /// Adds one event. Splits it at a packet with corrupt data a round-trip time after its start.
    fn cut(&self, events: &mut Events, event: Event, end: Seqno, lossless: Seqno, log: &SentLog) {
        let Event { start, data, .. } = event;
        let within = |seq: &&Seqno| {
            let later = match (log.counter(**seq), log.counter(start)) {
                (Some(mark), Some(before)) => mark > before + LONGEST_EVENT,
                _ => true,
            };
            seq.at_least(lossless) && seq.is_before(end) && (data == 0 || later)
        };
        if let Some(&mark) = self.corrupt.iter().rev().find(within) {
            let packets = |a: Seqno, b: Seqno| b.distance_from(a).clamp(1, 0xff_ffff) as u32;
            let drops = 1;
            events.push(Event { start: mark, data: packets(mark, end), drops, is_short: false });
            events.push(Event { data: packets(start, mark), ..event });
        } else {
            events.push(event);
        }
    }

    /// Updates the average with the events. Returns the number of new ones.
    fn adopt(&mut self, events: &Events) -> u64 {
        let events = events.get();
        let known = self.average.lengths().len();
        let newest = (known > 0).then_some(self.starts[0]);
        let at = newest.and_then(|s| events.iter().position(|e| e.start == s));
        let fresh = match at {
            Some(at) => {
                for i in (0..at).rev() {
                    self.average.begin(events[i + 1].length());
                    self.was_short[0] = events[i + 1].is_short;
                    self.was_short.rotate_right(1);
                    self.starts.rotate_right(1);
                    self.starts[0] = events[i].start;
                }
                at
            }
            None => self.rebuild(events, newest),
        };
        self.was_short[0] = events[0].is_short;
        self.average.set_short(events[0].is_short);
        for (i, &event) in events.iter().enumerate() {
            if self.starts[i] == event.start && event.data > 0 {
                // Whether an interval is short is decided once, because the round-trip time
                // changes.
                let event = Event { is_short: self.was_short[i], ..event };
                self.average.set(i, event.length());
            }
        }
        fresh as u64
    }

    /// Rebuilds the average from the report: at the first losses, or if intervals were merged.
    fn rebuild(&mut self, events: &[Event], newest: Option<Seqno>) -> usize {
        let oldest = events.len() - 1;
        self.average.start(events[oldest].data);
        for event in events[1..oldest].iter().rev() {
            self.average.begin(event.length());
        }
        for (i, event) in events.iter().enumerate() {
            (self.starts[i], self.was_short[i]) = (event.start, event.is_short);
        }
        let is_new = |e: &&Event| newest.is_none_or(|n| e.start.is_after(n));
        events[..oldest].iter().filter(is_new).count()
    }
}

/// Events of one option, newest first.
#[derive(Default)]
struct Events {
    all: [Event; MOST_INTERVALS],
    known: usize,
}

impl Events {
    fn push(&mut self, event: Event) {
        if let Some(place) = self.all.get_mut(self.known) {
            *place = event;
            self.known += 1;
        }
    }

    fn get(&self) -> &[Event] {
        &self.all[..self.known]
    }
}

/// Marks the events that lasted at most two round-trip times, including what follows them.
fn mark_short(events: &mut Events, ackno: Seqno, sending: &Sending<'_>) {
    let mut until = sending.log.time(ackno);
    for event in &mut events.all[..events.known] {
        let began = sending.log.time(event.start);
        event.is_short = event.drops > 0
            && matches!((began, until), (Some(b), Some(u)) if u - b <= sending.rtt * SHORT_ROUNDS);
        until = began;
    }
}

/// Returns the sequence number after the newest interval if all lengths are possible.
fn check(ackno: Seqno, options: &Options, log: &SentLog) -> Result<Seqno, ReportError> {
    let intervals = options.intervals();
    if intervals.is_empty() {
        return Err(ReportError::Empty);
    }
    if usize::from(options.skip) > NDUPACK {
        return Err(ReportError::SkipsTooMuch);
    }
    let end = ackno.sub(u64::from(options.skip)).next();
    let total: u64 = intervals.iter().map(length_of).sum();
    let first = log.first().unwrap_or(ackno).sub(HANDSHAKE_NUMBERS);
    if end.distance_from(first) < i64::try_from(total).unwrap_or(i64::MAX) {
        return Err(ReportError::BeforeFirst);
    }
    let odd =
        |i: &LossInterval| i.loss_length > 0 && u64::from(i.data_length) > length_of(i).max(1);
    if intervals.iter().any(odd) {
        return Err(ReportError::MoreDataThanPackets);
    }
    Ok(end)
}

/// The first packet after `start`, and not after `last`, that begins another loss event. Only the
/// sender can find it if all packets between the two losses were lost as well.
fn next_event(start: Seqno, last: Seqno, log: &SentLog) -> Option<Seqno> {
    // Most events lose one packet, or two. The counter steps by at most as much from one packet to
    // the next, so there is no need to look up when these were sent.
    if last.distance_from(start) <= 1 {
        return None;
    }
    log.next_event(start, last, LONGEST_EVENT)
}
