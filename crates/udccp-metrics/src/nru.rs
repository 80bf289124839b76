//! Normalised Resource Usage of a flow: its rate relative to its rate among flows of its own kind.
//!
//! Source: Bhatti, Bateman, Rehunathan, Henderson, Bigwood and Miras, "Revisiting inter-flow
//! fairness" (2008), equations (3) to (5), (9), (13) and (14).

use crate::summary::{Summary, mean};
use crate::undefined::{Measured, Undefined, check, check_finite};

/// The weight `w_n` of a flow with the rate `expected` among flows of its own kind: `1 / expected`.
/// Equations (13), for one instant, and (14), for the mean of a self-run.
///
/// # Errors
/// [`Undefined::ZeroReference`] if `expected` is zero, [`Undefined::BadInput`] if it is negative or
/// not finite.
pub fn weight(expected: f64) -> Measured {
    check(&[expected])?;
    if expected == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok(1.0 / expected)
}

/// The Resource Share Ratio `R_n(t) = w_n(t) r_n(t)`; 1 is a fair share. Equation (4).
///
/// # Errors
/// [`Undefined::BadInput`] when weight or rate is negative or not finite.
pub fn share_ratio(weight: f64, rate: f64) -> Measured {
    check(&[weight, rate])?;
    Ok(weight * rate)
}

/// The Normalised Resource Usage `U_n(t) = 10 log10 R_n(t)` in decibels; 0 is a fair share,
/// negative is less. Equation (3).
///
/// # Errors
/// [`Undefined::Silent`] when the ratio is zero (minus infinity decibels),
/// [`Undefined::BadInput`] when it is negative or not finite.
pub fn usage_db(ratio: f64) -> Measured {
    check(&[ratio])?;
    if ratio == 0.0 {
        return Err(Undefined::Silent);
    }
    Ok(10.0 * libm::log10(ratio))
}

/// `U_n(t)` of one flow over the measured intervals.
///
/// The study does not say how an interval without packets counts (its logarithm is minus infinity).
/// Here it counts as one packet, the least that could have been measured: omitting such intervals
/// would make a starved flow look better than it is, and with a smaller value one empty second
/// would dominate the mean. [`FlowNru::raised`] counts them.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowNru {
    /// `U_n(t)` in decibels, one per interval.
    pub values: Vec<f64>,
    /// How many intervals had less than one packet and were raised to one.
    pub raised: usize,
}

impl FlowNru {
    /// Computes the usage from the rates of the intervals, the weight of the flow, and the rate of
    /// one packet per interval, all in the same unit.
    ///
    /// # Errors
    /// [`Undefined::NoSamples`] without intervals, [`Undefined::ZeroReference`] when weight or
    /// `least` is zero, [`Undefined::BadInput`] on a negative or non-finite input.
    pub fn new(rates: &[f64], weight: f64, least: f64) -> Result<Self, Undefined> {
        check(rates)?;
        check(&[weight, least])?;
        if rates.is_empty() {
            return Err(Undefined::NoSamples);
        }
        if weight == 0.0 || least == 0.0 {
            return Err(Undefined::ZeroReference);
        }
        let usage = |rate: &f64| usage_db(weight * rate.max(least));
        let values = rates.iter().map(usage).collect::<Result<_, _>>()?;
        Ok(Self { values, raised: rates.iter().filter(|r| **r < least).count() })
    }

    /// The flow NRU `U_n`: the mean of `U_n(t)` in decibels. Equation (5).
    ///
    /// It is at most [`usage_of_mean`], and lower the more the rate varies: the mean of logarithms
    /// is below the logarithm of the mean.
    ///
    /// # Errors
    /// [`Undefined::NoSamples`] without intervals.
    pub fn mean(&self) -> Measured {
        mean(&self.values)
    }

    /// The flow stability `S_n = |sigma_n / U_n|`; smaller is more stable. Equation (9). It grows
    /// without bound near `U_n` = 0, as the study notes (section VII.A).
    ///
    /// # Errors
    /// [`Undefined::TooFew`] for fewer than two intervals, [`Undefined::ZeroReference`] when
    /// `U_n` is zero.
    pub fn stability(&self) -> Measured {
        stability(&self.values)
    }
}

/// `|sigma / mean|`, equation (9).
pub(crate) fn stability(values: &[f64]) -> Measured {
    check_finite(values)?;
    let summary = Summary::of(values);
    let (sigma, mean) = (summary.stddev?, summary.mean?);
    if mean == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok((sigma / mean).abs())
}

/// The NRU of a flow's mean rate in decibels, `10 log10(w_n r_n)`: equations (3) and (4) on means.
///
/// This is not the flow NRU of equation (5). The tuples of Table VI follow from it, as far as they
/// follow from Tables III and IV.
///
/// # Errors
/// As [`usage_db`] and [`share_ratio`].
pub fn usage_of_mean(mean_rate: f64, weight: f64) -> Measured {
    usage_db(share_ratio(weight, mean_rate)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Measured, want: f64, within: f64) {
        let got = got.unwrap();
        assert!((got - want).abs() <= within, "got {got}, want {want}");
    }

    #[test]
    fn ccid2_and_cubic_at_100_ms_as_the_study_works_it_out() {
        // Tables III and IV: CCID 2 has 17 where it has 45 and 48 with itself; CUBIC has 73 where
        // it has 44 and 48. Table VI prints 2.00 and -4.24. Rates are printed as whole Mbit/s: an
        // error of one half is 0.13 dB at 17, plus 0.02 dB from the weight.
        let rounding = 0.15;
        close(usage_of_mean(17.0, weight(46.5).unwrap()), -4.24, rounding);
        close(usage_of_mean(73.0, weight(46.0).unwrap()), 2.00, rounding);
    }

    #[test]
    fn a_fair_share_is_zero_decibels_and_half_of_it_minus_three() {
        let w = weight(47.0).unwrap();
        close(usage_db(share_ratio(w, 47.0).unwrap()), 0.0, 1e-12);
        close(usage_db(share_ratio(w, 23.5).unwrap()), -3.0103, 1e-4);
        // The threshold of the study: "equivalent to an RSR value of 0.90".
        close(usage_db(0.90), crate::convergence::THRESHOLD_DB, 0.005);
    }

    #[test]
    fn usage_of_a_silent_flow_is_undefined() {
        assert_eq!(usage_db(0.0), Err(Undefined::Silent));
        assert_eq!(weight(0.0), Err(Undefined::ZeroReference));
        assert_eq!(share_ratio(1.0, f64::NAN), Err(Undefined::BadInput));
        assert_eq!(FlowNru::new(&[], 1.0, 1.0), Err(Undefined::NoSamples));
        assert_eq!(FlowNru::new(&[1.0], 0.0, 1.0), Err(Undefined::ZeroReference));
    }

    #[test]
    fn an_empty_second_counts_as_one_packet() {
        // Expected 10; one packet per second is 0.01, which is 30 dB below.
        let nru = FlowNru::new(&[10.0, 0.0], 0.1, 0.01).unwrap();
        assert_eq!(nru.raised, 1);
        close(nru.mean(), -15.0, 1e-9);
    }

    #[test]
    fn the_mean_of_decibels_is_below_the_decibels_of_the_mean() {
        let rates = [20.0, 80.0, 20.0, 80.0];
        let nru = FlowNru::new(&rates, 1.0 / 50.0, 0.01).unwrap();
        close(usage_of_mean(50.0, 1.0 / 50.0), 0.0, 1e-12);
        close(nru.mean(), -0.9691, 1e-4);
    }

    #[test]
    fn stability_by_hand() {
        // -2 and -4 dB: mean -3, sample deviation sqrt(2).
        close(stability(&[-2.0, -4.0]), 0.4714, 1e-4);
        assert_eq!(stability(&[-1.0, 1.0]), Err(Undefined::ZeroReference));
        assert_eq!(stability(&[1.0]), Err(Undefined::TooFew { needed: 2, got: 1 }));
    }
}
