//! Delay and its quantiles.

use crate::undefined::{Measured, Undefined, check_finite};

/// Mean of delays given in nanoseconds, in milliseconds (Nor et al., "Performance Enhancement of
/// DCCP TCP-like over Long Delay Link Networks" (2012), equation (3)).
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
/// [`Undefined::NoSamples`] without values, [`Undefined::BadInput`] when `p` is out of range or a
/// value is not finite.
pub fn quantile(sorted: &[f64], p: f64) -> Measured {
    if !(0.0..=1.0).contains(&p) {
        return Err(Undefined::BadInput);
    }
    check_finite(sorted)?;
    let last = sorted.len().checked_sub(1).ok_or(Undefined::NoSamples)?;
    let rank = p * last as f64;
    let low = rank as usize;
    let part = rank - low as f64;
    let high = sorted[(low + 1).min(last)];
    Ok(sorted[low] + (high - sorted[low]) * part)
}

#[cfg(test)]
mod tests {
    use super::*;

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
