//! Represents sending rates as integers.

use udccp_base::Duration;

use super::{MAX_BACK_OFF_SECS, Segment};

const NANOS: u128 = 1_000_000_000;
/// Time in nanoseconds in which the lowest rate sends one segment.
const UNIT_NANOS: u64 = NANOS as u64 * MAX_BACK_OFF_SECS;

/// A rate in bytes per 64 seconds. The lowest rate of RFC 5348, one segment in t_mbi, is then the
/// segment's number of bytes, and is reached without rounding errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rate(u64);

impl Rate {
    /// Greater than the rate of any network.
    pub const MAX: Self = Self(u64::MAX);

    /// A rate in bytes per second.
    pub const fn from_bytes_per_sec(bytes: u64) -> Self {
        Self(bytes.saturating_mul(MAX_BACK_OFF_SECS))
    }

    /// A rate in bytes per second, rounded down. Negative numbers and NaN give zero.
    pub fn from_bytes_per_sec_f64(bytes: f64) -> Self {
        Self((bytes * MAX_BACK_OFF_SECS as f64) as u64)
    }

    /// `bytes` per `span`. A span of zero gives the largest rate.
    pub fn of(bytes: u64, span: Duration) -> Self {
        let nanos = u128::from(span.as_nanos());
        if nanos == 0 {
            return Self::MAX;
        }
        let rate = u128::from(bytes) * NANOS * u128::from(MAX_BACK_OFF_SECS) / nanos;
        Self(u64::try_from(rate).unwrap_or(u64::MAX))
    }

    /// One segment every 64 seconds: s/t_mbi.
    pub const fn lowest(segment_bytes: u32) -> Self {
        Self(segment_bytes as u64)
    }

    //= 4828-3-4
    /// The rate left for data if this rate has to include the headers (RFC 4828 section 4.2).
    #[must_use]
    pub(crate) fn without_headers(self, s: Segment) -> Self {
        if s.header == 0 || self == Self::MAX {
            return self;
        }
        let left = u128::from(self.0) * u128::from(s.bytes) / u128::from(s.bytes + s.header);
        Self(left as u64)
    }

    /// The rate including headers that leaves this rate for data.
    #[must_use]
    pub(crate) fn with_headers(self, s: Segment) -> Self {
        if s.header == 0 {
            return self;
        }
        let all = u128::from(self.0) * u128::from(s.bytes + s.header) / u128::from(s.bytes.max(1));
        Self(u64::try_from(all).unwrap_or(u64::MAX))
    }

    /// The rate in bytes per second.
    pub fn bytes_per_sec(self) -> f64 {
        self.0 as f64 / MAX_BACK_OFF_SECS as f64
    }

    /// Time between segments, t_ipi = s/X (RFC 5348 section 4.6).
    pub fn interval(self, segment_bytes: u32) -> Duration {
        let rate = self.0.max(1);
        // Called for each packet. For all real segment sizes, the product fits into 64 bits.
        let nanos = match u64::from(segment_bytes).checked_mul(UNIT_NANOS) {
            Some(nanos) => nanos / rate,
            None => {
                let nanos = u128::from(segment_bytes) * u128::from(UNIT_NANOS);
                u64::try_from(nanos / u128::from(rate)).unwrap_or(u64::MAX)
            }
        };
        Duration::from_nanos(nanos)
    }

    /// Number of bytes in `span`.
    pub fn bytes_in(self, span: Duration) -> u64 {
        let bytes = u128::from(self.0) * u128::from(span.as_nanos());
        u64::try_from(bytes / (NANOS * u128::from(MAX_BACK_OFF_SECS))).unwrap_or(u64::MAX)
    }

    /// Twice the rate.
    #[must_use]
    pub const fn doubled(self) -> Self {
        Self(self.0.saturating_mul(2))
    }

    /// Half the rate.
    #[must_use]
    pub const fn halved(self) -> Self {
        Self(self.0 / 2)
    }

    /// The difference, or zero if `other` is greater.
    #[must_use]
    pub const fn minus(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// A multiple of the rate. A negative factor and NaN give zero.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Self {
        if self == Self::MAX { self } else { Self((self.0 as f64 * factor) as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_segment_in_64_seconds_is_exact_for_every_size() {
        for s in [1, 64, 1460, 65_536, u32::MAX] {
            assert_eq!(Rate::lowest(s).interval(s), Duration::from_secs(64));
        }
        assert_eq!(Rate::of(1460, Duration::from_millis(100)).bytes_per_sec(), 14_600.0);
        assert_eq!(Rate::of(1460, Duration::ZERO), Rate::MAX);
        assert_eq!(Rate::default().interval(1460).as_nanos(), 1460 * 64_000_000_000);
    }
}
