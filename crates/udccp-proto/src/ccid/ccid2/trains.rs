//! Has packets leave in trains, which a driver writes with one call, as segmentation offload and
//! the pacing of Linux do. Without, each acknowledgement of a few packets could release as few, and
//! these cause the next such acknowledgement: a mode of small batches that nothing ends.

use udccp_base::{Duration, Instant, MaybeInstant};
use udccp_cc::Pacer;

/// A full window is used again when this part of it is free.
const WINDOW_PARTS: u32 = 8;
/// It is used for less when this part of a round-trip time is over.
const ROUND_PARTS: u64 = 4;
/// A paced train is what leaves in this time.
const QUANTUM: Duration = Duration::from_millis(1);
/// What a paced train was late for may be made up for, up to this: a timer of a millisecond, and a
/// turn of the task that waits for it.
const LATENESS: Duration = Duration::from_millis(2);

/// Gathers packets that may leave until they are worth a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trains {
    /// Packets of a train at most; 1 for no trains.
    most: u32,
    /// What the window has room for leaves, until it is full.
    fills: bool,
    /// The window is used then at the latest, whatever its room.
    until: MaybeInstant,
    /// What the window has room for is not worth a train, and waits for acknowledgements.
    rests: bool,
    /// A paced train leaves.
    paces: bool,
}

/// How packets are spread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time between two.
    interval: Duration,
    /// Time from the first packet of a train to the last, had they not left together; zero without
    /// trains.
    train: Duration,
}

impl Trains {
    pub(super) fn new(most: u32) -> Self {
        Self { most, fills: false, until: MaybeInstant::NONE, rests: false, paces: false }
    }

    #[inline]
    pub(super) fn are_on(&self) -> bool {
        self.most > 1
    }

    /// Packets of a train at most, where there are trains.
    #[inline]
    pub(super) fn most(&self) -> Option<u32> {
        self.are_on().then_some(self.most)
    }

    /// Whether what the window has room for leaves at once.
    #[inline]
    pub(super) fn fill(&self) -> bool {
        !self.are_on() || self.fills
    }

    /// The window is full.
    pub(super) fn on_full(&mut self) {
        (self.fills, self.until) = (false, MaybeInstant::NONE);
    }

    /// Packets for which a window of `cwnd` packets is used again.
    #[inline]
    fn worth(&self, cwnd: u32) -> u64 {
        (cwnd / WINDOW_PARTS).min(self.most).into()
    }

    /// A train has left, and the window has room for `room` packets more. Whether these wait until
    /// acknowledgements make a train of them.
    pub(super) fn rest(&mut self, room: u64, cwnd: u32) -> bool {
        self.rests = self.are_on() && self.fills && room > 0 && room < self.worth(cwnd);
        if self.rests {
            self.on_full();
        }
        self.rests
    }

    /// Whether room for `room` packets waits for more.
    #[inline]
    pub(super) fn is_resting(&mut self, room: u64, cwnd: u32) -> bool {
        self.rests &= room < self.worth(cwnd);
        self.rests
    }

    /// The window of `cwnd` packets has room for `room`; when to use it, if not now.
    pub(super) fn wait_for_room(
        &mut self,
        now: Instant,
        room: u64,
        cwnd: u32,
        srtt: Option<Duration>,
    ) -> Option<Instant> {
        if !self.are_on() || self.fills {
            return None;
        }
        let wait = srtt.unwrap_or(Duration::ZERO) / ROUND_PARTS;
        let until = self.until.get().unwrap_or(now + wait);
        self.until = MaybeInstant::some(until);
        if room < self.worth(cwnd) && now < until {
            return Some(until);
        }
        (self.fills, self.until) = (true, MaybeInstant::NONE);
        None
    }

    /// One packet per `interval` in the mean.
    pub(super) fn pace(&self, interval: Duration) -> Pace {
        if !self.are_on() {
            return Pace { interval, train: Duration::ZERO };
        }
        let packets = QUANTUM.as_nanos() / interval.as_nanos().max(1);
        Pace { interval, train: interval * (packets.clamp(2, u64::from(self.most)) - 1) }
    }

    /// When a packet may leave.
    pub(super) fn next_paced(&mut self, now: Instant, pace: Pace, pacer: &Pacer) -> Instant {
        if !self.are_on() {
            return pacer.next(pace.interval);
        }
        let last = pacer.due() - pace.train;
        self.paces = if self.paces { last <= now } else { pacer.due() <= now };
        if self.paces { now } else { pacer.due() }
    }

    /// A packet left.
    pub(super) fn on_sent(&self, now: Instant, pace: Pace, pacer: &mut Pacer) {
        let credit = match self.are_on() {
            true => LATENESS.max(pace.train + pace.interval),
            false => Duration::ZERO,
        };
        pacer.on_sent_late(now, pace.interval, credit);
    }
}
