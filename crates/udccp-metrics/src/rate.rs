//! Throughput and utilisation from counts.

use crate::undefined::{Measured, Undefined, check};

/// Mean rate of `bytes` over `span_s` seconds in Mbit/s (10^6 bit/s).
///
/// With wire bytes (IP packets) this is throughput, with payload bytes goodput (RFC 5166 section
/// 2.1.1). It is also transfer size over transfer time, equation (1) of Nor et al., "Performance
/// Enhancement of DCCP TCP-like over Long Delay Link Networks" (2012), which counts the flow's IP
/// bytes on the link between the routers.
///
/// # Errors
/// [`Undefined::EmptyInterval`] if the span is zero.
pub fn throughput_mbps(bytes: u64, span_s: f64) -> Measured {
    check(&[span_s])?;
    if span_s <= 0.0 {
        return Err(Undefined::EmptyInterval);
    }
    Ok(bytes as f64 * 8.0 / 1e6 / span_s)
}

/// The percentage of a link of `capacity_mbps` that the given rates use (RFC 5166 section 2.1.1).
///
/// # Errors
/// [`Undefined::ZeroReference`] for a link without capacity, [`Undefined::BadInput`] on a
/// negative or non-finite rate.
pub fn utilisation_percent(rates_mbps: &[f64], capacity_mbps: f64) -> Measured {
    check(rates_mbps)?;
    check(&[capacity_mbps])?;
    if capacity_mbps == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok(100.0 * rates_mbps.iter().sum::<f64>() / capacity_mbps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_a_full_link() {
        assert_eq!(throughput_mbps(12_500_000, 1.0), Ok(100.0));
        assert_eq!(throughput_mbps(1, 0.0), Err(Undefined::EmptyInterval));
        assert_eq!(throughput_mbps(1, f64::NAN), Err(Undefined::BadInput));
    }

    #[test]
    fn ccid2_with_itself_at_200_ms_leaves_a_third_unused() {
        // Bhatti 2008, Table II: 33 and 32 Mbit/s on a link of 100.
        assert_eq!(utilisation_percent(&[33.0, 32.0], 100.0), Ok(65.0));
        assert_eq!(utilisation_percent(&[1.0], 0.0), Err(Undefined::ZeroReference));
    }
}
