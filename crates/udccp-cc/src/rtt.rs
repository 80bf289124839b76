//! Round-trip time and timeout estimation (RFC 6298).

use udccp_base::{Duration, MaybeDuration};

/// Bounds of the retransmission timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The timeout before the first sample (RFC 6298 section 2.1: 1 s).
    pub initial: Duration,
    /// The smallest timeout (default 200 ms, as in Linux). RFC 6298 section 2.4 asks TCP for 1 s;
    /// DCCP needs no minimum (RFC 4341 section 5).
    pub min: Duration,
    /// The largest timeout (default 60 s; RFC 6298 section 2.5 requires at least that).
    pub max: Duration,
    /// Clock granularity G (RFC 6298 section 2).
    pub granularity: Duration,
}

impl Default for RtoConfig {
    fn default() -> Self {
        Self {
            initial: Duration::from_secs(1),
            min: Duration::from_millis(200),
            max: Duration::from_secs(60),
            granularity: Duration::from_millis(1),
        }
    }
}

/// Smoothed round-trip time, its variation, and the timeout with exponential backoff.
///
/// Use at most one sample per round-trip time, and none from retransmitted segments (Karn's
/// algorithm). DCCP never sends a sequence number twice, so all its acknowledgements qualify.
#[derive(Clone, Debug)]
pub struct RttEstimator {
    min: Duration,
    max: Duration,
    granularity: Duration,
    /// None before the first sample. Until then the averages are meaningless, except `srtt`, which
    /// is the initial timeout.
    latest: MaybeDuration,
    srtt: Duration,
    rttvar: Duration,
    min_rtt: MaybeDuration,
    backoff: u32,
    /// The timeout, derived from the other fields.
    rto: Duration,
}

impl RttEstimator {
    /// No samples yet.
    pub fn new(config: RtoConfig) -> Self {
        let RtoConfig { initial, min, max, granularity } = config;
        let mut this = Self {
            min,
            max,
            granularity,
            latest: MaybeDuration::NONE,
            srtt: initial,
            rttvar: Duration::ZERO,
            min_rtt: MaybeDuration::NONE,
            backoff: 0,
            rto: Duration::ZERO,
        };
        this.update_rto();
        this
    }

    /// Adds a sample to the averages and ends any backoff (RFC 6298 sections 2.2, 2.3, 5.7).
    #[inline]
    pub fn sample(&mut self, rtt: Duration) {
        self.observe(rtt);
        (self.srtt, self.rttvar) = if self.has_sample() {
            ((self.srtt * 7 + rtt) / 8, (self.rttvar * 3 + self.srtt.abs_diff(rtt)) / 4)
        } else {
            (rtt, rtt / 2)
        };
        self.latest = MaybeDuration::some(rtt);
        self.backoff = 0;
        self.update_rto();
    }

    /// Uses a sample only for the minimum.
    pub fn observe(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.shorter(MaybeDuration::some(rtt));
    }

    fn has_sample(&self) -> bool {
        self.latest != MaybeDuration::NONE
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.has_sample().then_some(self.srtt)
    }

    /// Round-trip time variation; `None` before the first sample.
    pub fn rttvar(&self) -> Option<Duration> {
        self.has_sample().then_some(self.rttvar)
    }

    /// The last sample that was added to the averages; `None` before the first.
    pub fn latest(&self) -> Option<Duration> {
        self.latest.get()
    }

    /// The smallest round-trip time measured; `None` before the first sample.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.get()
    }

    /// The current timeout, with backoff and within its bounds.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    fn update_rto(&mut self) {
        let variation = self.granularity.max(self.rttvar * 4);
        let base = if self.has_sample() { self.srtt + variation } else { self.srtt };
        let bounded = base.max(self.min).min(self.max);
        self.rto = (bounded * (1 << self.backoff)).min(self.max);
    }

    /// Doubles the timeout until the next sample (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        if self.rto < self.max && self.backoff < 32 {
            self.backoff += 1;
            self.update_rto();
        }
    }

    /// How many times the timeout is doubled at present.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(RtoConfig::default())
    }
}
