//! Sends packets in trains, which a driver writes with one call, as segmentation offload and pacing
//! in Linux do. Without trains, each acknowledgement of a few packets releases only a few, and they
//! in turn cause the next such acknowledgement. The flow would stay in small batches forever.

use udccp_base::{Duration, Instant, MaybeInstant};
use udccp_cc::Pacer;

/// A full window is used again when this fraction of it is free.
const WINDOW_PARTS: u32 = 8;
/// It is used earlier when this fraction of a round-trip time has passed.
const ROUND_PARTS: u64 = 4;
/// A paced train contains the packets of this time.
const QUANTUM: Duration = Duration::from_millis(1);
/// Largest delay of a paced train that later trains make up for. It covers a timer granularity of
/// one millisecond, and the scheduling of the task that waits for it.
const LATENESS: Duration = Duration::from_millis(2);

/// Collects packets that may be sent until there are enough for a train.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trains {
    /// Largest number of packets in a train; 1 turns trains off.
    most: u32,
    /// Whether packets are sent until the window is full.
    fills: bool,
    /// The time at which the free part of the window is used even if it is small.
    until: MaybeInstant,
    /// Whether the free part of the window, which is too small for a train, waits for
    /// acknowledgements.
    rests: bool,
    /// Whether a paced train is being sent.
    paces: bool,
}

/// How packets are paced.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time between two packets.
    interval: Duration,
    /// Time from the first packet of a train to the last if they were spaced evenly. Zero without
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

    /// The most packets of a train; `None` without trains.
    #[inline]
    pub(super) fn most(&self) -> Option<u32> {
        self.are_on().then_some(self.most)
    }

    /// Whether packets that fit into the window are sent at once.
    #[inline]
    pub(super) fn fill(&self) -> bool {
        !self.are_on() || self.fills
    }

    /// The window is full.
    pub(super) fn on_full(&mut self) {
        (self.fills, self.until) = (false, MaybeInstant::NONE);
    }

    /// The number of free packets from which on a window of `cwnd` packets is used again.
    #[inline]
    fn worth(&self, cwnd: u32) -> u64 {
        (cwnd / WINDOW_PARTS).min(self.most).into()
    }

    /// A train was sent, and `room` packets of the window are free. Returns whether they wait until
    /// acknowledgements free enough for another train.
    pub(super) fn rest(&mut self, room: u64, cwnd: u32) -> bool {
        self.rests = self.are_on() && self.fills && room > 0 && room < self.worth(cwnd);
        if self.rests {
            self.on_full();
        }
        self.rests
    }

    /// Whether `room` free packets of the window still wait for more.
    #[inline]
    pub(super) fn is_resting(&mut self, room: u64, cwnd: u32) -> bool {
        self.rests &= room < self.worth(cwnd);
        self.rests
    }

    /// `room` packets of a window of `cwnd` are free. Returns when to use them; `None` for now.
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

    /// Sends one packet per `interval` on average.
    pub(super) fn pace(&self, interval: Duration) -> Pace {
        if !self.are_on() {
            return Pace { interval, train: Duration::ZERO };
        }
        let packets = QUANTUM.as_nanos() / interval.as_nanos().max(1);
        Pace { interval, train: interval * (packets.clamp(2, u64::from(self.most)) - 1) }
    }

    /// When a packet may be sent.
    pub(super) fn next_paced(&mut self, now: Instant, pace: Pace, pacer: &Pacer) -> Instant {
        if !self.are_on() {
            return pacer.next(pace.interval);
        }
        let last = pacer.due() - pace.train;
        self.paces = if self.paces { last <= now } else { pacer.due() <= now };
        if self.paces { now } else { pacer.due() }
    }

    /// A packet was sent.
    pub(super) fn on_sent(&self, now: Instant, pace: Pace, pacer: &mut Pacer) {
        let credit = match self.are_on() {
            true => LATENESS.max(pace.train + pace.interval),
            false => Duration::ZERO,
        };
        pacer.on_sent_late(now, pace.interval, credit);
    }
}
