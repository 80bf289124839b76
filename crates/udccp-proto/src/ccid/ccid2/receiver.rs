//! The receiver half: when acknowledgements are due (RFC 4340 section 11.3, RFC 4341 section 6).

use udccp_base::{Duration, Ecn, Instant, MaybeInstant};
use udccp_wire::{OptionRef, Seqno};

use crate::ccid::ccid2::{Ccid2Config, NUMBER, ack_ratio};
use crate::ccid::{CcidReceiver, Feedback, OptionSink, ReceivedInfo, ReceivedRun};

/// The round-trip time to assume while it is unknown (RFC 4340 section 3.4).
const DEFAULT_RTT: Duration = Duration::from_millis(200);
/// Shortest silence after which the sender is quiescent (RFC 4341 section 6.2.1).
const QUIESCENT_AFTER: Duration = Duration::from_millis(200);
/// Unit of the Elapsed Time option (RFC 4340 section 13.2).
const ELAPSED_UNIT: Duration = Duration::from_micros(10);

/// The receiver half of CCID 2. It acknowledges every Ack Ratio data packets, gaps and marks at
/// once, and everything else within the delayed-ack time.
#[derive(Clone, Debug)]
pub struct Ccid2Receiver {
    number: u8,
    delayed_ack: Duration,
    ack_ratio: u16,
    rtt: Duration,
    /// The packet with the greatest sequence number, and its arrival time.
    newest: Option<(Seqno, Instant)>,
    /// Data packets not yet acknowledged.
    pending: u32,
    /// Something must be reported to the sender at once.
    urgent: bool,
    deadline: MaybeInstant,
    last_mark: MaybeInstant,
    last_data: MaybeInstant,
    /// Our first packet that acknowledged all data, until the sender is known to have it. While
    /// more data is pending, it has no meaning.
    covered_by: Option<Seqno>,
}

impl Ccid2Receiver {
    /// Creates a receiver with nothing to acknowledge and Ack Ratio 2.
    pub fn new(config: &Ccid2Config) -> Self {
        Self::numbered(NUMBER, config)
    }

    /// Creates the receiver of an experimental CCID.
    pub(crate) fn numbered(number: u8, config: &Ccid2Config) -> Self {
        Self {
            number,
            delayed_ack: config.delayed_ack,
            ack_ratio: ack_ratio::INITIAL,
            rtt: DEFAULT_RTT,
            newest: None,
            pending: 0,
            urgent: false,
            deadline: MaybeInstant::NONE,
            last_mark: MaybeInstant::NONE,
            last_data: MaybeInstant::NONE,
            covered_by: None,
        }
    }

    /// The packet may be out of order, after a gap or in one, or marked. Its data has been counted.
    #[cold]
    #[inline(never)]
    fn note_order(&mut self, now: Instant, packet: &ReceivedInfo) {
        let newest = self.newest.map(|(newest, _)| newest);
        let is_next = newest.is_none_or(|newest| newest == packet.seq.prev());
        if is_next || newest.is_some_and(|newest| packet.seq.is_after(newest)) {
            self.newest = Some((packet.seq, now));
        }
        // A gap among packets without data must not cause acknowledgements of acknowledgements.
        if self.pending > 0 {
            //= 4340-11.3-6
            let marked = packet.ecn == Ecn::Ce && self.note_mark(now);
            self.urgent |= !is_next || marked;
        }
    }

    /// Elapsed Time of the newest packet, if it waited. Rounded down, so it is never too large.
    #[inline]
    pub(crate) fn elapsed_units(&self, now: Instant) -> Option<u32> {
        let (_, arrived) = self.newest?;
        let waited = now - arrived;
        if waited < ELAPSED_UNIT {
            return None;
        }
        Some(u32::try_from(waited.as_nanos() / ELAPSED_UNIT.as_nanos()).unwrap_or(u32::MAX))
    }

    /// Whether no acknowledgement is owed.
    #[inline]
    pub(crate) fn owes_nothing(&self) -> bool {
        self.deadline == MaybeInstant::NONE
    }

    /// The latest time for the next acknowledgement.
    #[inline]
    pub(crate) fn next_wake(&self) -> MaybeInstant {
        self.deadline
    }

    /// Whether a mark must be acknowledged at once. True for the first in a round-trip time.
    fn note_mark(&mut self, now: Instant) -> bool {
        if self.last_mark.get().is_some_and(|at| now - at < self.rtt) {
            return false;
        }
        self.last_mark = MaybeInstant::some(now);
        true
    }
}

impl CcidReceiver for Ccid2Receiver {
    fn ccid(&self) -> u8 {
        self.number
    }

    #[inline(always)]
    fn on_packet(&mut self, now: Instant, packet: &ReceivedInfo) {
        if packet.is_data {
            self.pending += 1;
            self.last_data = MaybeInstant::some(now);
            //= 4340-11.3-5
            if self.deadline == MaybeInstant::NONE {
                self.deadline = MaybeInstant::some(now + self.delayed_ack);
            }
        }
        match &mut self.newest {
            Some(newest) if newest.0 == packet.seq.prev() && packet.ecn != Ecn::Ce => {
                *newest = (packet.seq, now);
            }
            _ => self.note_order(now, &packet.clone()),
        }
    }

    fn on_run(&mut self, now: Instant, run: &ReceivedRun<'_>) {
        self.on_packet(now, run.first());
        // The others are in order, and have the same codepoint as the first.
        self.newest = Some((run.last(), now));
        self.pending += run.count() - 1;
    }

    #[inline]
    fn feedback(&self, now: Instant) -> Feedback {
        let Some(deadline) = self.deadline.get() else { return Feedback::None };
        //= 4340-11.3-2
        let enough = self.pending >= u32::from(self.ack_ratio);
        if enough || self.urgent || deadline <= now {
            Feedback::Due
        } else {
            Feedback::At(deadline)
        }
    }

    //= 4340-13.2-4
    /// Writes Elapsed Time if the newest packet waited.
    fn write_options(&mut self, now: Instant, sink: &mut dyn OptionSink) {
        if let Some(units) = self.elapsed_units(now) {
            // If it does not fit, the sender's sample is a little too large.
            sink.option(&OptionRef::ElapsedTime(units));
        }
    }

    fn on_path_changed(&mut self, _now: Instant, newest: Option<(Seqno, Instant)>) {
        self.newest = newest;
    }

    fn newest(&self) -> Option<(Seqno, Instant)> {
        self.newest
    }

    #[inline]
    fn on_feedback_sent(&mut self, _now: Instant, seq: Seqno) {
        if self.pending > 0 {
            self.covered_by = Some(seq);
        }
        self.pending = 0;
        self.urgent = false;
        self.deadline = MaybeInstant::NONE;
    }

    #[inline]
    fn on_ack_of_ack(&mut self, seq: Seqno) {
        if self.covered_by.is_some_and(|first| seq.at_least(first)) {
            self.covered_by = None;
        }
    }

    fn set_ack_ratio(&mut self, ack_ratio: u16) {
        self.ack_ratio = if ack_ratio == 0 { ack_ratio::INITIAL } else { ack_ratio };
    }

    #[inline]
    fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// Silent for max(0.2 s, 2 RTT), with all its data acknowledged and our acknowledgements
    /// acknowledged (RFC 4341 section 6.2.1).
    fn peer_is_quiescent(&self, now: Instant) -> bool {
        let silence = QUIESCENT_AFTER.max(self.rtt * 2);
        self.pending == 0
            && self.covered_by.is_none()
            && self.last_data.get().is_none_or(|at| now - at >= silence)
    }

    #[inline]
    fn poll_timeout(&self) -> Option<Instant> {
        self.deadline.get()
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}
