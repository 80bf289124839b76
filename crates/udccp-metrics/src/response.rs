//! Response of a sender to changes: RFC 5166 sections 2.1 and 2.2.1.

use crate::undefined::{Measured, Undefined, check};

/// Power: throughput divided by delay, in Mbit/s per millisecond (RFC 5166 section 2.1).
///
/// # Errors
/// [`Undefined::ZeroReference`] without delay, [`Undefined::BadInput`].
pub fn power(throughput_mbps: f64, delay_ms: f64) -> Measured {
    check(&[throughput_mbps, delay_ms])?;
    if delay_ms == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok(throughput_mbps / delay_ms)
}

/// The rate in packets per second of a TCP without delayed acknowledgements at this round-trip time
/// and loss rate: `1.2 / (RTT sqrt(p))` (RFC 5166 section 2.1, Floyd and Fall 1999).
///
/// # Errors
/// [`Undefined::ZeroReference`] when the time is zero, [`Undefined::NoLoss`],
/// [`Undefined::BadInput`].
pub fn tcp_friendly_rate(rtt_s: f64, loss: f64) -> Measured {
    check_equation(&[rtt_s, loss], rtt_s, loss)?;
    Ok(1.2 / (rtt_s * loss.sqrt()))
}

/// A sender's packet rate relative to the TCP throughput equation, `1 / (R f(p))` with `f(p) =
/// sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2)` (RFC 5348 section 3.1, t_RTO = 4 R, b = 1): 1 if it
/// follows the equation, more if it is faster. `p` is in 0..=1.
///
/// # Errors
/// [`Undefined::ZeroReference`] when the time is zero, [`Undefined::NoLoss`],
/// [`Undefined::BadInput`].
pub fn equation_ratio(packets_per_s: f64, rtt_s: f64, p: f64) -> Measured {
    check_equation(&[packets_per_s, rtt_s, p], rtt_s, p)?;
    let f = (2.0 * p / 3.0).sqrt() + 12.0 * (3.0 * p / 8.0).sqrt() * p * (1.0 + 32.0 * p * p);
    Ok(packets_per_s * rtt_s * f)
}

/// Refuses inputs for which the equation has no rate.
fn check_equation(all: &[f64], rtt_s: f64, loss: f64) -> Result<(), Undefined> {
    check(all)?;
    match (rtt_s == 0.0, loss == 0.0) {
        (true, _) => Err(Undefined::ZeroReference),
        (_, true) => Err(Undefined::NoLoss),
        _ => Ok(()),
    }
}

/// Responsiveness: round-trip times of persistent congestion until the sending rate has halved (RFC
/// 5166 section 2.2.1). `rates` has the rate before the congestion, then one per round trip.
///
/// # Errors
/// [`Undefined::NoSamples`] without rates, [`Undefined::Never`] when it does not halve,
/// [`Undefined::BadInput`].
pub fn responsiveness(rates: &[f64]) -> Measured {
    check(rates)?;
    let first = rates.first().ok_or(Undefined::NoSamples)?;
    let halved = rates.iter().position(|r| *r <= first / 2.0);
    halved.map(|n| n as f64).ok_or(Undefined::Never)
}

/// Aggressiveness: the largest increase of the rate between consecutive round trips without
/// congestion (RFC 5166 section 2.2.1), in the unit of the rates; zero if it never increases.
///
/// # Errors
/// [`Undefined::TooFew`] for fewer than two round trips, [`Undefined::BadInput`].
pub fn aggressiveness(rates: &[f64]) -> Measured {
    largest_step(rates, |before, after| after - before)
}

/// Smoothness of one sender under periodic loss: the largest decrease of the rate between
/// consecutive round trips (RFC 5166 section 2.2.1), in the unit of the rates; zero if it never
/// decreases.
///
/// # Errors
/// [`Undefined::TooFew`] for fewer than two round trips, [`Undefined::BadInput`].
pub fn largest_reduction(rates: &[f64]) -> Measured {
    largest_step(rates, |before, after| before - after)
}

fn largest_step(rates: &[f64], step: fn(f64, f64) -> f64) -> Measured {
    check(rates)?;
    if rates.len() < 2 {
        return Err(Undefined::TooFew { needed: 2, got: rates.len() });
    }
    Ok(rates.windows(2).map(|w| step(w[0], w[1])).fold(0.0, f64::max))
}

/// Time in seconds from a change at `epoch_s` until the rate of an interval is first at `level` or
/// above again, for example after an outage or a burst of other traffic.
///
/// # Errors
/// As [`crate::convergence_time`].
pub fn recovery_time(rates: &[f64], times_s: &[f64], epoch_s: f64, level: f64) -> Measured {
    check(rates)?;
    crate::convergence_time(&[rates], times_s, epoch_s, level)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_equation_is_that_of_the_table_of_rfc_4828() {
        // Table 1: kB/s of 1500-byte packets at 100 ms.
        for (p, kilobytes) in [(0.001, 576.12), (0.01, 168.61), (0.1, 26.58), (0.3, 2.93)] {
            let ratio = equation_ratio(kilobytes * 1e3 / 1500.0, 0.1, p).unwrap();
            assert!((ratio - 1.0).abs() < 0.01, "{p}: {ratio}");
        }
        assert_eq!(equation_ratio(1.0, 0.1, 0.0), Err(Undefined::NoLoss));
        assert_eq!(equation_ratio(1.0, 0.0, 0.1), Err(Undefined::ZeroReference));
    }

    #[test]
    fn tcp_at_one_percent_and_100_ms_sends_120_packets_a_second() {
        assert!((tcp_friendly_rate(0.1, 0.01).unwrap() - 120.0).abs() < 1e-9);
        assert_eq!(tcp_friendly_rate(0.1, 0.0), Err(Undefined::NoLoss));
        assert_eq!(tcp_friendly_rate(0.0, 0.1), Err(Undefined::ZeroReference));
        assert_eq!(power(90.0, 30.0), Ok(3.0));
        assert_eq!(power(90.0, 0.0), Err(Undefined::ZeroReference));
    }

    #[test]
    fn a_tcp_halves_in_one_round_trip_and_grows_by_one_packet() {
        assert_eq!(responsiveness(&[100.0, 50.0]), Ok(1.0));
        assert_eq!(responsiveness(&[100.0, 90.0]), Err(Undefined::Never));
        assert_eq!(responsiveness(&[]), Err(Undefined::NoSamples));
        let saw = [50.0, 51.0, 52.0, 26.0, 27.0];
        assert_eq!(aggressiveness(&saw), Ok(1.0));
        assert_eq!(largest_reduction(&saw), Ok(26.0));
        assert_eq!(aggressiveness(&[5.0]), Err(Undefined::TooFew { needed: 2, got: 1 }));
        assert_eq!(largest_reduction(&[1.0, 2.0]), Ok(0.0));
    }

    #[test]
    fn recovery_counts_from_the_change() {
        let times = [1.0, 2.0, 3.0, 4.0];
        assert_eq!(recovery_time(&[9.0, 0.0, 4.0, 8.0], &times, 1.0, 8.0), Ok(3.0));
        assert_eq!(recovery_time(&[9.0, 0.0, 0.0, 0.0], &times, 1.0, 8.0), Err(Undefined::Never));
    }
}
