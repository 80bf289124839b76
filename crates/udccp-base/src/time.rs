//! Time in integer nanoseconds. Virtual and real time have the same types.

use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};
use core::str::FromStr;

use crate::quantity::{self, QuantityError};

/// A point in time: nanoseconds since an epoch that the driver chose (simulation start, or the
/// moment a socket driver started). 64 bits last 584 years.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

/// A span of time in nanoseconds; never negative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(u64);

impl Instant {
    /// The driver's epoch.
    pub const ZERO: Self = Self(0);
    /// Later than any event.
    pub const MAX: Self = Self(u64::MAX);

    /// The instant `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the epoch, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }

    /// The first multiple of `unit` since the epoch that is not before this time: the next tick of
    /// a clock. This time itself if `unit` is zero, and [`Self::MAX`] if there is no such multiple.
    #[inline]
    pub const fn next_multiple_of(self, unit: Duration) -> Self {
        if unit.is_zero() {
            return self;
        }
        match self.0.checked_next_multiple_of(unit.0) {
            Some(nanos) => Self(nanos),
            None => Self::MAX,
        }
    }
}

impl Duration {
    /// The span zero.
    pub const ZERO: Self = Self(0);
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Self {
        Self(n)
    }

    /// `n` microseconds.
    pub const fn from_micros(n: u64) -> Self {
        Self(n * 1_000)
    }

    /// `n` milliseconds.
    pub const fn from_millis(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// `n` seconds.
    pub const fn from_secs(n: u64) -> Self {
        Self(n * 1_000_000_000)
    }

    /// `s` seconds, rounded to the nanosecond; zero if `s` is negative or NaN.
    pub fn from_secs_f64(s: f64) -> Self {
        Self((s * 1e9 + 0.5) as u64)
    }

    /// The span in nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The span in whole microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// The span in whole milliseconds, rounded down.
    pub const fn as_millis(self) -> u64 {
        self.0 / 1_000_000
    }

    /// The span in seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span in milliseconds, for reports.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The difference, or zero if `other` is longer.
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The absolute difference of two spans.
    pub const fn abs_diff(self, other: Self) -> Self {
        Self(self.0.abs_diff(other.0))
    }

    /// Whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// The same span in the type of the standard library.
    pub const fn to_std(self) -> core::time::Duration {
        core::time::Duration::from_nanos(self.0)
    }
}

impl From<core::time::Duration> for Duration {
    fn from(d: core::time::Duration) -> Self {
        Self(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;
    fn add(self, d: Duration) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Instant {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;
    fn sub(self, d: Duration) -> Self {
        Self(self.0.saturating_sub(d.0))
    }
}

impl Sub for Instant {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        self.saturating_since(earlier)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, d: Self) -> Self {
        Self(self.0.saturating_add(d.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, d: Self) {
        *self = *self + d;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, d: Self) -> Self {
        self.saturating_sub(d)
    }
}

impl SubAssign for Duration {
    fn sub_assign(&mut self, d: Self) {
        *self = *self - d;
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, k: u64) -> Self {
        Self(self.0.saturating_mul(k))
    }
}

impl Div<u64> for Duration {
    type Output = Self;
    fn div(self, k: u64) -> Self {
        Self(self.0 / k)
    }
}

impl fmt::Display for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::print(f, self.0, &UNITS)
    }
}

const UNITS: [(&str, u64); 6] = [
    ("h", 3_600_000_000_000),
    ("min", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
];

impl FromStr for Duration {
    type Err = QuantityError;
    fn from_str(s: &str) -> Result<Self, QuantityError> {
        quantity::parse(s, &UNITS, "25 ms").map(Self)
    }
}

quantity::serde_as_text!(Duration);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_multiple_is_not_before() {
        let next = |at, unit| Instant(at).next_multiple_of(Duration(unit)).as_nanos();
        assert_eq!([next(0, 4), next(1, 4), next(4, 4), next(5, 4)], [0, 4, 4, 8]);
        assert_eq!([next(5, 0), next(u64::MAX - 1, 4)], [5, u64::MAX]);
    }

    #[test]
    fn durations_print_in_the_largest_exact_unit() {
        for text in ["25 ms", "1500 us", "90 s", "2 min", "1 h", "7 ns", "0 ns"] {
            assert_eq!(text.parse::<Duration>().unwrap().to_string(), text);
        }
        assert_eq!("1.5 ms".parse::<Duration>().unwrap(), Duration::from_micros(1500));
    }

    #[test]
    fn a_duration_without_its_unit_is_refused_with_an_example() {
        let e = "25".parse::<Duration>().unwrap_err().to_string();
        assert!(e.contains("unit") && e.contains("25 ms"), "{e}");
    }

    #[test]
    fn time_saturates_and_never_wraps() {
        assert_eq!(Instant::MAX + Duration::from_secs(1), Instant::MAX);
        assert_eq!(Instant::ZERO - Instant::from_nanos(5), Duration::ZERO);
    }
}
