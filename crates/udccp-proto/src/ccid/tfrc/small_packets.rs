//! Adapts TFRC to small packets (RFC 4828, RFC 5622 section 5).

use udccp_base::{Duration, Instant};

use super::Segment;

/// Round-trip times up to which a loss interval is short.
pub(crate) const SHORT_ROUNDS: u64 = 2;
/// Packets that may leave in as many intervals.
const PACKETS: usize = 3;

/// Settings of TFRC-SP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmallPackets {
    /// s of the throughput equation, bytes.
    pub(crate) nominal: u32,
    /// H, bytes.
    pub(crate) header: u32,
    /// Least time between packets.
    pub(crate) min_interval: Duration,
}

impl SmallPackets {
    /// Sizes of packets that hold `bytes` in the mean.
    pub(crate) fn segment(&self, bytes: u32) -> Segment {
        Segment { bytes, nominal: self.nominal, header: self.header }
    }

    //= 4828-3-8
    /// The length of a loss interval with this many data packets, of which `drops` were lost or
    /// marked.
    pub(crate) fn length(data: u64, drops: u64, is_short: bool) -> f64 {
        let data = data as f64;
        if is_short && drops > 0 { data / drops as f64 } else { data }
    }
}

//= 4828-3-10
//= 5622-5-2
/// Keeps packets a least interval apart. One that waited for its time and left late, since timers
/// are coarse, moves no later one, as long as no more than three leave in three intervals.
#[derive(Clone, Debug)]
pub(crate) struct MinInterval {
    least: Duration,
    /// When the next packet may leave.
    due: Instant,
    /// Whether the next packet waits for that.
    waits: bool,
    /// When the last ones left, newest first.
    left: [Option<Instant>; PACKETS],
}

impl MinInterval {
    pub(crate) fn new(least: Duration) -> Self {
        Self { least, due: Instant::ZERO, waits: false, left: [None; PACKETS] }
    }

    /// When the next packet may leave; in the past where it may leave at once.
    pub(crate) fn next(&self) -> Instant {
        let third = self.left[PACKETS - 1].map(|at| at + self.least * PACKETS as u64);
        third.map_or(self.due, |at| at.max(self.due))
    }

    /// A packet is there and has to wait.
    pub(crate) fn on_wait(&mut self) {
        self.waits = true;
    }

    /// A packet left.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        let was_late = core::mem::take(&mut self.waits) && now - self.due < self.least;
        self.due = if was_late { self.due } else { now } + self.least;
        self.left.rotate_right(1);
        self.left[0] = Some(now);
    }
}
