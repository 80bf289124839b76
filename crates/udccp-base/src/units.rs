//! Rates and sizes as types.

use core::fmt;
use core::str::FromStr;

use crate::quantity::{self, QuantityError};
use crate::time::Duration;

/// A data rate in bits per second (decimal prefixes: 1 Mbit/s is 10^6 bit/s).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataRate(u64);

/// An amount of data in bytes (decimal prefixes: 1 kB is 1000 B; 1 KiB is 1024 B).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DataSize(u64);

impl DataRate {
    /// `n` bits per second.
    pub const fn from_bits_per_sec(n: u64) -> Self {
        Self(n)
    }

    /// `n` bytes per second.
    pub const fn from_bytes_per_sec(n: u64) -> Self {
        Self(n.saturating_mul(8))
    }

    /// `n` megabits per second.
    pub const fn from_mbps(n: u64) -> Self {
        Self(n * 1_000_000)
    }

    /// The rate in bits per second.
    pub const fn bits_per_sec(self) -> u64 {
        self.0
    }

    /// The rate in whole bytes per second.
    pub const fn bytes_per_sec(self) -> u64 {
        self.0 / 8
    }

    /// The rate in Mbit/s, for reports.
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The mean rate of `bytes` over `span`; zero for an empty span.
    pub fn of(bytes: u64, span: Duration) -> Self {
        if span.is_zero() {
            return Self(0);
        }
        let bits = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(span.as_nanos());
        Self(u64::try_from(bits).unwrap_or(u64::MAX))
    }

    /// Transmission time of `bytes`, rounded up to the nanosecond; [`Duration::MAX`] at rate zero.
    pub const fn time_for(self, bytes: u64) -> Duration {
        if self.0 == 0 {
            return Duration::MAX;
        }
        // 64-bit arithmetic holds for every packet (up to 2 GB); larger amounts go through 128.
        match bytes.checked_mul(8_000_000_000) {
            Some(bit_nanos) => Duration::from_nanos(bit_nanos.div_ceil(self.0)),
            None => {
                let bit_nanos = bytes as u128 * 8_000_000_000;
                Duration::from_nanos(bit_nanos.div_ceil(self.0 as u128) as u64)
            }
        }
    }

    /// The data carried in `span` (the bandwidth-delay product if `span` is a round-trip time).
    pub const fn bytes_in(self, span: Duration) -> DataSize {
        let bits = self.0 as u128 * span.as_nanos() as u128;
        DataSize((bits / 8_000_000_000) as u64)
    }
}

impl DataSize {
    /// `n` bytes.
    pub const fn from_bytes(n: u64) -> Self {
        Self(n)
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }
}

const RATE_UNITS: [(&str, u64); 4] =
    [("Gbit/s", 1_000_000_000), ("Mbit/s", 1_000_000), ("kbit/s", 1_000), ("bit/s", 1)];

const SIZE_UNITS: [(&str, u64); 7] = [
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("MB", 1_000_000),
    ("KiB", 1 << 10),
    ("kB", 1_000),
    ("B", 1),
];

impl fmt::Display for DataRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::print(f, self.0, &RATE_UNITS)
    }
}

impl FromStr for DataRate {
    type Err = QuantityError;
    fn from_str(s: &str) -> Result<Self, QuantityError> {
        quantity::parse(s, &RATE_UNITS, "100 Mbit/s").map(Self)
    }
}

impl fmt::Display for DataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        quantity::print(f, self.0, &SIZE_UNITS)
    }
}

impl FromStr for DataSize {
    type Err = QuantityError;
    fn from_str(s: &str) -> Result<Self, QuantityError> {
        quantity::parse(s, &SIZE_UNITS, "1500 B").map(Self)
    }
}

quantity::serde_as_text!(DataRate);
quantity::serde_as_text!(DataSize);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_convert_to_bits_bytes_and_times() {
        let rate: DataRate = "100 Mbit/s".parse().unwrap();
        assert_eq!(rate.bits_per_sec(), 100_000_000);
        assert_eq!(rate.time_for(1500), Duration::from_micros(120));
        assert_eq!(rate.bytes_in(Duration::from_millis(100)).bytes(), 1_250_000);
        assert_eq!(DataRate::of(1_250_000, Duration::from_millis(100)), rate);
        assert_eq!(rate.to_string(), "100 Mbit/s");
    }

    #[test]
    fn a_wrong_unit_lists_the_right_ones() {
        let e = "100 Mbps".parse::<DataRate>().unwrap_err().to_string();
        assert!(e.contains("Mbit/s") && e.contains("100 Mbps"), "{e}");
        assert!("12 kb".parse::<DataSize>().is_err());
        assert_eq!("64 KiB".parse::<DataSize>().unwrap().bytes(), 65_536);
    }
}
