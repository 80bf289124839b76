//! The receiver half: detects loss events, sends feedback (RFC 4342 section 6, RFC 5348 section 6).

use udccp_base::{Duration, Instant, MaybeDuration, MaybeInstant};
use udccp_wire::{LossInterval, OptionRef, Seqno};

use super::{Ccid3Config, NUMBER};
use crate::ccid::tfrc::{
    Arrived, CounterRtt, LEAST_RTT, LossHistory, NINTERVAL, Rate, ReceiveRate, SmallPackets,
    counter_distance, equation,
};
use crate::ccid::{CcidReceiver, Feedback, OptionSink, ReceivedInfo, ReceiverMetrics};

/// The round-trip time to assume while it is unknown (RFC 4340 section 3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// Shortest silence after which the sender is quiescent (RFC 4342 section 6.4).
const QUIESCENT_AFTER: Duration = Duration::from_millis(200);
/// Unit of the Elapsed Time option (RFC 4340 section 13.2).
const ELAPSED_UNIT: Duration = Duration::from_micros(10);
/// Counter steps in a round-trip time.
const ONE_RTT: u8 = 4;
/// The longest first loss interval that fits into its field.
const LONGEST_INTERVAL: f64 = 16_777_215.0;
/// Lowest rate that determines the first loss interval, in packets per round-trip time.
const LEAST_TARGET: f64 = 0.5;
/// Bytes of a Drop Count.
const COUNT_LEN: usize = 3;
/// Elapsed Time and Receive Rate.
const RATE_OPTIONS: usize = 6 + 6;
/// Loss Event Rate.
const LOSS_EVENT_RATE: usize = 6;

/// The receiver half of CCID 3. It sends feedback when the window counter shows that a round-trip
/// time has passed, at once for a new loss event, and after five quarters of a round-trip time if
/// data stops before.
#[derive(Clone, Debug)]
pub struct Ccid3Receiver {
    ccid: u8,
    /// The differences of CCID 4.
    small: Option<Box<SmallPackets>>,
    history: LossHistory,
    /// Present from the first data on: most connections have data in one direction only.
    measured: Option<Box<Measured>>,
    /// `None` until the handshake or the counter gives a sample.
    rtt: MaybeDuration,
    /// The packet with the greatest sequence number, and its arrival time.
    newest: Option<(Seqno, Instant)>,
    /// The last packet of the path before this one.
    of_other_path: Option<Seqno>,
    /// The greatest window counter at the last feedback. Below, the greatest so far.
    last_counter: Option<u8>,
    counter: u8,
    /// Data arrived since the last feedback.
    has_news: bool,
    /// Something must be reported to the sender at once.
    is_due: bool,
    last_feedback: MaybeInstant,
    deadline: MaybeInstant,
    last_data: MaybeInstant,
    /// The receive rate in the options being written; `None` if they did not fit.
    written: Option<Rate>,
    /// Options were due but did not fit.
    had_no_room: bool,
}

/// What is measured with the data that arrives.
#[derive(Clone, Debug, Default)]
struct Measured {
    rate: ReceiveRate,
    counter_rtt: CounterRtt,
}

impl Ccid3Receiver {
    /// Creates a receiver before the first packet.
    pub fn new(config: &Ccid3Config) -> Self {
        Self::with(NUMBER, config, None)
    }

    /// Creates a receiver of CCID 3, or of CCID 4 for small packets.
    pub(crate) fn with(ccid: u8, config: &Ccid3Config, small: Option<SmallPackets>) -> Self {
        Self {
            ccid,
            history: LossHistory::new(config.history_discounting, small.is_some()),
            small: small.map(Box::new),
            measured: None,
            rtt: MaybeDuration::NONE,
            newest: None,
            of_other_path: None,
            last_counter: None,
            counter: 0,
            has_news: false,
            is_due: false,
            last_feedback: MaybeInstant::NONE,
            deadline: MaybeInstant::NONE,
            last_data: MaybeInstant::NONE,
            written: None,
            had_no_room: false,
        }
    }

    /// Packets without data arrived, in order, from `first` to `newest`, and nothing before.
    pub(super) fn start_without_data(&mut self, first: Seqno, newest: (Seqno, Instant)) {
        self.history.start_without_data(first, newest.0);
        self.newest = Some(newest);
    }

    /// The round-trip time to use where the other half-connection knows this one.
    pub(super) fn credible_rtt(rtt: Duration) -> Duration {
        rtt.max(LEAST_RTT)
    }

    /// The loss event rate p.
    pub fn loss_event_rate(&self) -> f64 {
        self.history.rate()
    }

    /// The round-trip time, or the default if the receiver does not know it.
    pub fn rtt(&self) -> Duration {
        self.rtt.get().unwrap_or(DEFAULT_RTT)
    }

    /// Whether data arrived since the last feedback. Without it, none is due, and no timer runs.
    #[inline]
    pub(crate) fn has_news(&self) -> bool {
        self.has_news
    }

    fn on_data(&mut self, now: Instant, packet: &ReceivedInfo, in_order: bool) {
        let measured = self.measured.get_or_insert_default();
        measured.rate.on_data(now, packet.size_bytes);
        self.last_data = MaybeInstant::some(now);
        self.has_news = true;
        if in_order {
            let counter_rtt = &mut measured.counter_rtt;
            if let Some(sample) = counter_rtt.on_data(now, packet.seq, packet.ccval, self.rtt.get())
            {
                // The first sample is not averaged with the default. A sender of less than one
                // packet per round-trip time gives no more samples, and the error of such an
                // average would stay.
                let rtt = self.rtt.get().map_or(sample, |rtt| (rtt * 9 + sample) / 10);
                self.rtt = MaybeDuration::some(rtt);
            }
            self.counter = packet.ccval;
        }
        match self.last_counter {
            None => self.is_due = true,
            Some(last) => {
                self.is_due |= in_order && counter_distance(last, packet.ccval) >= ONE_RTT
            }
        }
        if self.deadline == MaybeInstant::NONE {
            let since = self.last_feedback.get().unwrap_or(now);
            self.deadline = MaybeInstant::some((since + self.rtt() / 4 * 5).max(now));
        }
    }

    /// A packet arrived that may be, or show, a loss.
    #[inline(never)]
    fn take_any(&mut self, now: Instant, arrived: Arrived) {
        let (measured, rtt, small) = (self.measured.as_deref(), self.rtt(), self.small.as_deref());
        let first = || match measured {
            Some(Measured { rate, .. }) => first_interval(rate, small, now, rtt),
            None => first_interval(&ReceiveRate::default(), small, now, rtt),
        };
        let change = self.history.on_packet(arrived, &first);
        // A loss that shows only in acknowledgements waits for the next data. A report without data
        // would report that nothing arrives (RFC 5348 section 6.2).
        //= 5348-6-2
        self.is_due |= change.new_event || change.removed_event;
    }

    /// The rate at which data arrives.
    fn x_recv(&self, now: Instant) -> Rate {
        let measured = self.measured.as_ref();
        measured.map_or(Rate::default(), |measured| measured.rate.rate(now, self.rtt()))
    }

    /// A report of this rate is sent.
    fn on_report(&mut self, now: Instant, x_recv: Rate) {
        let rtt = self.rtt();
        self.measured.get_or_insert_default().rate.on_report(now, rtt, x_recv);
    }

    //= 5622-8.7-2
    //= 5622-8.7-3
    /// The data of Dropped Packets, and its length in bytes.
    fn drop_counts(&self) -> ([u8; (NINTERVAL + 1) * COUNT_LEN], usize) {
        let mut bytes = [0; (NINTERVAL + 1) * COUNT_LEN];
        let mut len = 0;
        for count in self.history.drop_counts() {
            bytes[len..len + COUNT_LEN].copy_from_slice(&count.to_be_bytes()[1..]);
            len += COUNT_LEN;
        }
        (bytes, len)
    }

    /// Bytes of options in a feedback packet.
    fn options_len(&self) -> usize {
        let (fixed, each) = self.interval_options();
        RATE_OPTIONS + fixed + each * self.history.report().1.count()
    }

    /// Bytes of the options about loss intervals, which a packet has all or none of: without
    /// intervals, and for each interval.
    fn interval_options(&self) -> (usize, usize) {
        let (fixed, each) = (LOSS_EVENT_RATE + 3, LossInterval::LEN);
        if self.small.is_some() { (fixed + 2, each + COUNT_LEN) } else { (fixed, each) }
    }

    /// Loss intervals that can be reported in `room` bytes.
    fn intervals_in(&self, room: usize) -> usize {
        let (fixed, each) = self.interval_options();
        room.saturating_sub(fixed) / each
    }
}

//= 5348-4.1-1
//= 5348-6.3.1-1
//= 5348-6.3.1-2
//= 5348-6.3.1-4
//= 4828-1-1
/// The length that gives the receive rate at the first loss (RFC 5348 section 6.3.1).
fn first_interval(
    rate: &ReceiveRate,
    small: Option<&SmallPackets>,
    now: Instant,
    rtt: Duration,
) -> u32 {
    let bytes = rate.mean_size();
    let s = small.map_or(bytes.into(), |small| small.segment(bytes));
    let floor = Rate::of(u64::from(s.nominal), rtt).scaled(LEAST_TARGET);
    let measured = rate.largest().max(rate.rate(now, rtt));
    let target = measured.with_headers(s).max(floor);
    let p = equation::loss_event_rate(s.nominal, rtt, target);
    // The rate may be so high that even the smallest loss event rate is too large.
    (1.0 / p).min(LONGEST_INTERVAL) as u32
}

impl CcidReceiver for Ccid3Receiver {
    fn ccid(&self) -> u8 {
        self.ccid
    }

    fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        // Late packets of the previous path say nothing about this one.
        if self.of_other_path.is_some_and(|last| !packet.seq.is_after(last)) {
            return;
        }
        let in_order = self.newest.is_none_or(|(newest, _)| packet.seq.is_after(newest));
        if in_order {
            self.newest = Some((packet.seq, now));
        }
        if packet.is_data {
            self.on_data(now, packet, in_order);
        }
        let arrived = Arrived {
            seq: packet.seq,
            data: packet.is_data.then_some(packet.ccval),
            ecn: packet.ecn,
            ndp: packet.ndp_count.unwrap_or(0),
        };
        if !self.history.take_next(&arrived) {
            self.take_any(now, arrived);
        }
    }

    //= 5348-6-1
    fn feedback(&self, now: Instant) -> Feedback {
        let late = self.deadline.get().is_some_and(|at| at <= now);
        if self.has_news && (self.is_due || late) { Feedback::Due } else { Feedback::None }
    }

    fn feedback_len_bytes(&self) -> usize {
        if self.has_news { self.options_len() } else { 0 }
    }

    //= 4342-8.2-1
    //= 4342-8.2-2
    //= 4342-8.3-1
    //= 4342-8.3-2
    //= 4342-6-1
    //= 4342-8.4-1
    //= 4342-8.4-2
    //= 4342-8.5-1
    //= 4342-8.6-1
    //= 4342-8.6-2
    //= 4342-8.6.1-2
    fn write_options(&mut self, now: Instant, sink: &mut dyn OptionSink) {
        (self.written, self.had_no_room) = (None, false);
        let Some((_, arrived)) = self.newest.filter(|_| self.feedback(now) == Feedback::Due) else {
            return;
        };
        let x_recv = self.x_recv(now);
        let units = (now - arrived).as_nanos() / ELAPSED_UNIT.as_nanos();
        let mut bytes = [0; (NINTERVAL + 1) * LossInterval::LEN];
        let (skip_length, intervals) = self.history.report();
        let mut len = 0;
        for interval in intervals {
            bytes[len..len + LossInterval::LEN].copy_from_slice(&interval.to_bytes());
            len += LossInterval::LEN;
        }
        let p = self.history.rate();
        let inverse = if p > 0.0 { libm::ceil(1.0 / p) as u32 } else { u32::MAX };
        let rate = x_recv.bytes_per_sec() as u32;
        let (counts, counts_len) = self.drop_counts();
        let elapsed = OptionRef::ElapsedTime(u32::try_from(units).unwrap_or(u32::MAX));
        let fits = sink.option(&elapsed) && sink.option(&OptionRef::ReceiveRate(rate));
        // If a packet has no space for all intervals, only the newest are reported.
        let most = if fits { self.intervals_in(sink.room_bytes()) } else { 0 };
        if most == 0 {
            self.had_no_room = true;
            return;
        }
        self.written = Some(x_recv);
        let intervals = &bytes[..len.min(most * LossInterval::LEN)];
        sink.option(&OptionRef::LossIntervals { skip_length, intervals });
        sink.option(&OptionRef::LossEventRate(inverse));
        if self.small.is_some() {
            sink.option(&OptionRef::DroppedPackets(&counts[..counts_len.min(most * COUNT_LEN)]));
        }
    }

    fn on_feedback_sent(&mut self, now: Instant, _seq: Seqno) {
        if core::mem::take(&mut self.had_no_room) {
            // Feedback is still due, but another packet now would have no more space.
            self.is_due = false;
            self.deadline = MaybeInstant::some(now + self.rtt());
        }
        let Some(x_recv) = self.written.take() else { return };
        self.on_report(now, x_recv);
        self.last_counter = Some(self.counter);
        self.has_news = false;
        self.is_due = false;
        self.deadline = MaybeInstant::NONE;
        self.last_feedback = MaybeInstant::some(now);
    }

    fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = MaybeDuration::some(Self::credible_rtt(rtt));
    }

    /// The peer may not know that the path has changed, and a receive rate of zero, as in a first
    /// report, would stop it. The next report therefore covers only what arrives from now on.
    fn on_path_changed(&mut self, now: Instant, newest: Option<(Seqno, Instant)>) {
        self.on_report(now, Rate::default());
        self.newest = newest;
        self.of_other_path = newest.map(|(seq, _)| seq);
    }

    fn newest(&self) -> Option<(Seqno, Instant)> {
        self.newest
    }

    /// Silent for max(0.2 s, 2 RTT).
    fn peer_is_quiescent(&self, now: Instant) -> bool {
        let silence = QUIESCENT_AFTER.max(self.rtt() * 2);
        self.last_data.get().is_none_or(|at| now - at >= silence)
    }

    fn metrics(&self, now: Instant) -> Option<ReceiverMetrics> {
        Some(ReceiverMetrics {
            x_recv_bytes_per_sec: self.x_recv(now).bytes_per_sec(),
            rtt: self.rtt.get(),
            loss_event_rate: self.history.rate(),
        })
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline.get().filter(|_| self.has_news)
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}
