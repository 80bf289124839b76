//! Adapts TFRC to small packets (RFC 4828, RFC 5622 section 5).

use udccp_base::{Duration, Instant};

use super::Segment;

/// Longest duration of a short loss interval, in round-trip times.
pub(crate) const SHORT_ROUNDS: u64 = 2;
/// Number of packets that may be sent in as many intervals.
const PACKETS: usize = 3;

/// Settings of TFRC-SP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SmallPackets {
    /// s of the throughput equation, bytes.
    pub(crate) nominal: u32,
    /// H, bytes.
    pub(crate) header: u32,
    /// Shortest time between packets.
    pub(crate) min_interval: Duration,
}

impl SmallPackets {
    /// Sizes of packets with `bytes` of data on average.
    pub(crate) fn segment(&self, bytes: u32) -> Segment {
        Segment { bytes, nominal: self.nominal, header: self.header }
    }

    //= 4828-3-8
    /// Length of a loss interval with this many data packets, of which `drops` were lost or marked.
    pub(crate) fn length(data: u64, drops: u64, is_short: bool) -> f64 {
        let data = data as f64;
        if is_short && drops > 0 { data / drops as f64 } else { data }
    }
}

//= 4828-3-10
//= 5622-5-2
/// Enforces a minimum interval between packets. If a packet had to wait and was sent late because
/// timers are coarse, the packets after it are not delayed too, as long as at most three are sent
/// in three intervals.
#[derive(Clone, Debug)]
pub(crate) struct MinInterval {
    least: Duration,
    /// When the next packet may be sent.
    due: Instant,
    /// Whether the next packet waits for `due`.
    waits: bool,
    /// When the last packets were sent, newest first.
    left: [Option<Instant>; PACKETS],
}

impl MinInterval {
    pub(crate) fn new(least: Duration) -> Self {
        Self { least, due: Instant::ZERO, waits: false, left: [None; PACKETS] }
    }

    /// When the next packet may be sent. In the past if it may be sent at once.
    pub(crate) fn next(&self) -> Instant {
        let third = self.left[PACKETS - 1].map(|at| at + self.least * PACKETS as u64);
        third.map_or(self.due, |at| at.max(self.due))
    }

    /// A packet has to wait.
    pub(crate) fn on_wait(&mut self) {
        self.waits = true;
    }

    /// A packet was sent.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        let was_late = core::mem::take(&mut self.waits) && now - self.due < self.least;
        self.due = if was_late { self.due } else { now } + self.least;
        self.left.rotate_right(1);
        self.left[0] = Some(now);
    }
}
