//! The building blocks of window algorithms.

use udccp_base::{Duration, Instant};

/// Slow start: the window grows by the packets acknowledged, up to the threshold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlowStart;

impl SlowStart {
    /// Increases `cwnd` by `acked` packets, up to `ssthresh`. Returns the new window and the
    /// packets left over for congestion avoidance.
    pub fn grow(cwnd: u32, ssthresh: u32, acked: u32) -> (u32, u32) {
        let used = acked.min(ssthresh.saturating_sub(cwnd));
        (cwnd + used, acked - used)
    }
}

/// Congestion avoidance by additive increase: one packet per window of packets acknowledged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdditiveIncrease {
    acked: u32,
}

impl AdditiveIncrease {
    /// Counts `acked` packets, and returns by how many packets a window of `cwnd` grows.
    pub fn grow(&mut self, cwnd: u32, acked: u32) -> u32 {
        self.acked = self.acked.saturating_add(acked);
        let mut grown = 0;
        while self.acked >= cwnd + grown {
            self.acked -= cwnd + grown;
            grown += 1;
        }
        grown
    }

    /// Discards the count for the current window, because of congestion.
    pub fn reset(&mut self) {
        self.acked = 0;
    }
}

/// Growth in whole packets, one per `count` acknowledged (`tcp_cong_avoid_ai` of Linux).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WholePackets {
    acked: u32,
}

impl WholePackets {
    /// The packets by which the window grows.
    pub(crate) fn grow(&mut self, count: u32, acked: u32) -> u32 {
        let mut grown = 0;
        // The count may have fallen since.
        if self.acked >= count {
            self.acked = 0;
            grown = 1;
        }
        self.acked += acked;
        grown += self.acked / count;
        self.acked %= count;
        grown
    }

    /// Forgets progress towards the next packet.
    pub(crate) fn reset(&mut self) {
        self.acked = 0;
    }
}

/// Clock ticks of a kernel with 250 Hz, Linux's time unit for window algorithms.
pub(crate) struct Ticks;

impl Ticks {
    /// Ticks per second.
    pub(crate) const PER_SECOND: u64 = 250;
    const LENGTH: u64 = 1_000_000_000 / Self::PER_SECOND;

    /// The number of whole ticks at `now`.
    pub(crate) fn at(now: Instant) -> u64 {
        (now - Instant::ZERO).as_nanos() / Self::LENGTH
    }

    /// The number of ticks after which `time` has certainly passed.
    pub(crate) fn for_time(time: Duration) -> u64 {
        time.as_nanos().div_ceil(Self::LENGTH)
    }
}

/// Which packets count for additive increase after a cut.
///
/// RFC 4341 section 5 lets the window grow "for every window of data acknowledged without lost or
/// marked packets", and leaves open whether packets count that were sent before the cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum GrowthAfterCut {
    /// Only packets sent after the cut count, starting from zero: no growth for a round trip, as in
    /// the recovery of TCP (RFC 5681 section 3.2).
    #[default]
    Pauses,
    /// Every packet acknowledged unmarked counts, and the count continues, as in CCID 2 of Linux
    /// (2.6.14 to 6.15) and of ns-2.
    Continues,
}

/// The share of an unused window that is kept in the threshold (RFC 2861, RFC 7661).
pub(crate) const THREE_QUARTERS: Cut = Cut { keep_permille: 750 };

/// Multiplicative decrease: the share of the window that is kept after a congestion event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cut {
    /// Thousandths kept, 0 to 1000: 500 halves, 750 cuts a quarter, 950 cuts 5 %.
    pub keep_permille: u32,
}

impl Cut {
    /// Halving (RFC 5681 section 3.1, RFC 4341 section 5).
    pub const HALF: Self = Self { keep_permille: 500 };

    /// A cut by `percent` of the window, 0 to 100; more counts as 100.
    pub const fn drop_percent(percent: u32) -> Self {
        Self { keep_permille: 1000_u32.saturating_sub(percent.saturating_mul(10)) }
    }

    /// The window after the cut, rounded down.
    pub const fn apply(self, window: u32) -> u32 {
        let keep = if self.keep_permille > 1000 { 1000 } else { self.keep_permille };
        (window as u64 * keep as u64 / 1000) as u32
    }

    /// The share kept in 1024ths, as in kernels: 819 for 80 %, 717 for 70 %.
    pub(crate) const fn in_1024ths(self) -> u32 {
        (self.keep_permille * 1024 + 500) / 1000
    }
}

impl Default for Cut {
    fn default() -> Self {
        Self::HALF
    }
}
