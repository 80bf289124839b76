//! Round-trip time and timeout estimation (RFC 6298).

use udccp_base::Duration;

/// Bounds of the timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RtoConfig {
    /// The timeout before the first sample (RFC 6298 section 2.1: 1 s).
    pub initial: Duration,
    /// The smallest timeout. RFC 6298 section 2.4 asks TCP for 1 s, Linux has 200 ms; DCCP needs no
    /// minimum (RFC 4341 section 5).
    pub min: Duration,
    /// The largest timeout, at least 60 s (RFC 6298 section 2.5).
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

/// Smoothed round-trip time, its variation, and the timeout with its exponential back-off.
///
/// Give it at most one sample per round-trip time and none from retransmitted segments (Karn's
/// rule; DCCP never sends a sequence number twice, so each of its acknowledgements qualifies).
#[derive(Clone, Debug)]
pub struct RttEstimator {
    config: RtoConfig,
    smoothed: Option<Smoothed>,
    min_rtt: Option<Duration>,
    backoff: u32,
    /// The timeout that follows from the rest.
    rto: Duration,
}

#[derive(Clone, Copy, Debug)]
struct Smoothed {
    latest: Duration,
    srtt: Duration,
    rttvar: Duration,
}

impl RttEstimator {
    /// No samples yet.
    pub fn new(config: RtoConfig) -> Self {
        let mut this =
            Self { config, smoothed: None, min_rtt: None, backoff: 0, rto: Duration::ZERO };
        this.update_rto();
        this
    }

    /// Takes a sample into the averages and ends any back-off (RFC 6298 sections 2.2, 2.3, 5.7).
    pub fn sample(&mut self, rtt: Duration) {
        self.observe(rtt);
        let next = match self.smoothed {
            None => Smoothed { latest: rtt, srtt: rtt, rttvar: rtt / 2 },
            Some(old) => Smoothed {
                latest: rtt,
                srtt: (old.srtt * 7 + rtt) / 8,
                rttvar: (old.rttvar * 3 + old.srtt.abs_diff(rtt)) / 4,
            },
        };
        self.smoothed = Some(next);
        self.backoff = 0;
        self.update_rto();
    }

    /// Takes a sample into the minimum only.
    pub fn observe(&mut self, rtt: Duration) {
        self.min_rtt = Some(self.min_rtt.map_or(rtt, |m| m.min(rtt)));
    }

    /// Smoothed round-trip time; `None` before the first sample.
    pub fn srtt(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.srtt)
    }

    /// Round-trip time variation.
    pub fn rttvar(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.rttvar)
    }

    /// The last sample that went into the averages.
    pub fn latest(&self) -> Option<Duration> {
        self.smoothed.map(|s| s.latest)
    }

    /// The smallest round-trip time seen.
    pub fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// The timeout now, backed off and within its bounds.
    pub fn rto(&self) -> Duration {
        self.rto
    }

    fn update_rto(&mut self) {
        let base = match self.smoothed {
            None => self.config.initial,
            Some(s) => s.srtt + self.config.granularity.max(s.rttvar * 4),
        };
        let bounded = base.max(self.config.min).min(self.config.max);
        self.rto = (bounded * (1 << self.backoff)).min(self.config.max);
    }

    /// Doubles the timeout until the next sample (RFC 6298 section 5.5).
    pub fn back_off(&mut self) {
        if self.rto < self.config.max && self.backoff < 32 {
            self.backoff += 1;
            self.update_rto();
        }
    }

    /// How many times the timeout is doubled now.
    pub fn backoff(&self) -> u32 {
        self.backoff
    }
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self::new(RtoConfig::default())
    }
}
