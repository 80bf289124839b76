//! Delay, its quantiles, and jitter.

use crate::undefined::{Measured, Undefined, check};

/// Mean of delays given in nanoseconds, in milliseconds.
///
/// # Errors
/// [`Undefined::NoSamples`] without packets.
pub fn mean_ms(delays_ns: &[u64]) -> Measured {
    if delays_ns.is_empty() {
        return Err(Undefined::NoSamples);
    }
    let sum: u128 = delays_ns.iter().map(|d| u128::from(*d)).sum();
    Ok(sum as f64 / delays_ns.len() as f64 / 1e6)
}

/// The `p` quantile (0..=1) of `sorted` (rising), with linear interpolation between ranks.
///
/// # Errors
/// [`Undefined::NoSamples`] without values, [`Undefined::BadInput`] when `p` is out of range.
pub fn quantile(sorted: &[f64], p: f64) -> Measured {
    if !(0.0..=1.0).contains(&p) {
        return Err(Undefined::BadInput);
    }
    check(sorted)?;
    let last = sorted.len().checked_sub(1).ok_or(Undefined::NoSamples)?;
    let rank = p * last as f64;
    let low = rank as usize;
    let part = rank - low as f64;
    let high = sorted[(low + 1).min(last)];
    Ok(sorted[low] + (high - sorted[low]) * part)
}

/// Interarrival jitter, updated packet by packet: `J += (|D| - J) / 16`, where `D` is the change
/// in transit time from one received packet to the next (RFC 3550 section 6.4.1).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rfc3550Jitter {
    last_transit_ns: Option<u64>,
    jitter_ns: f64,
    sum_ns: f64,
    samples: u64,
}

impl Rfc3550Jitter {
    /// No packet yet.
    pub const fn new() -> Self {
        Self { last_transit_ns: None, jitter_ns: 0.0, sum_ns: 0.0, samples: 0 }
    }

    /// A packet was received after this time in transit.
    pub fn push(&mut self, transit_ns: u64) {
        if let Some(last) = self.last_transit_ns {
            let change = last.abs_diff(transit_ns) as f64;
            self.jitter_ns += (change - self.jitter_ns) / 16.0;
            self.sum_ns += self.jitter_ns;
            self.samples += 1;
        }
        self.last_transit_ns = Some(transit_ns);
    }

    /// The estimate after the last packet, in milliseconds.
    ///
    /// # Errors
    /// [`Undefined::TooFew`] before the second packet.
    pub fn current_ms(&self) -> Measured {
        self.value(self.jitter_ns)
    }

    /// The mean of the estimate over all packets so far, in milliseconds.
    ///
    /// # Errors
    /// [`Undefined::TooFew`] before the second packet.
    pub fn mean_ms(&self) -> Measured {
        self.value(self.sum_ns / self.samples.max(1) as f64)
    }

    fn value(&self, ns: f64) -> Measured {
        if self.samples == 0 {
            let got = usize::from(self.last_transit_ns.is_some());
            return Err(Undefined::TooFew { needed: 2, got });
        }
        Ok(ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_follows_the_recurrence_of_rfc_3550() {
        let mut jitter = Rfc3550Jitter::new();
        assert_eq!(jitter.current_ms(), Err(Undefined::TooFew { needed: 2, got: 0 }));
        // Transit times 10, 26, 10 ms: |D| = 16 twice, so J = 1 and then 1 + 15/16.
        for transit_ms in [10, 26, 10] {
            jitter.push(transit_ms * 1_000_000);
        }
        assert_eq!(jitter.current_ms(), Ok(1.9375));
        assert_eq!(jitter.mean_ms(), Ok((1.0 + 1.9375) / 2.0));
    }

    #[test]
    fn a_constant_delay_has_no_jitter() {
        let mut jitter = Rfc3550Jitter::new();
        (0..10).for_each(|_| jitter.push(50_000_000));
        assert_eq!(jitter.mean_ms(), Ok(0.0));
    }

    #[test]
    fn quantiles_interpolate() {
        let values = [0.0, 10.0, 20.0, 30.0, 40.0];
        assert_eq!(quantile(&values, 0.5), Ok(20.0));
        assert_eq!(quantile(&values, 0.95), Ok(38.0));
        assert_eq!(quantile(&values, 1.0), Ok(40.0));
        assert_eq!(quantile(&[], 0.5), Err(Undefined::NoSamples));
        assert_eq!(quantile(&values, 1.5), Err(Undefined::BadInput));
    }

    #[test]
    fn mean_delay_in_milliseconds() {
        assert_eq!(mean_ms(&[50_000_000, 51_000_000]), Ok(50.5));
        assert_eq!(mean_ms(&[]), Err(Undefined::NoSamples));
    }
}
