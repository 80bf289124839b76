//! Convergence: the time from a change until flows have their fair share.
//!
//! Source: Bhatti et al., "Revisiting inter-flow fairness" (2008), equations (11) and (12), and
//! Bansal et al. 2001 as RFC 5166 section 2.3.3 cites it.

use crate::undefined::{Measured, Undefined, check, check_finite};

/// The threshold `U_c` of the study in decibels: a share ratio of 0.90.
pub const THRESHOLD_DB: f64 = -0.46;

/// Convergence time `T_U = t_U - t_e` in seconds of a set of flows: from the epoch to the first
/// time at which each of them has at least `threshold`. Equations (11) and (12).
///
/// With one flow this is the flow's convergence time, with some flows the inter-flow one, with all
/// flows the system's. `flows` has `U_n(t)` of each flow in decibels, `times_s` the end of each
/// interval. Intervals that end at or before the epoch do not count. By the study's definition, the
/// first such time is enough: a flow may fall back later (see [`settling_time`]).
///
/// # Errors
/// [`Undefined::Never`] when there is no such time, [`Undefined::NoSamples`] without flows or
/// intervals after the epoch, [`Undefined::DifferentLengths`], [`Undefined::NotRising`] when the
/// times do not rise, [`Undefined::BadInput`] on a non-finite input.
pub fn convergence_time(
    flows: &[&[f64]],
    times_s: &[f64],
    epoch_s: f64,
    threshold: f64,
) -> Measured {
    let fair = fair_intervals(flows, times_s, epoch_s, threshold)?;
    let first = fair.iter().find(|(_, fair)| *fair).ok_or(Undefined::Never)?;
    Ok(first.0 - epoch_s)
}

/// Settling time in seconds: like [`convergence_time`], but until the first time after which all
/// flows have at least `threshold` in every later interval. This is this project's own, stricter
/// definition.
///
/// # Errors
/// As [`convergence_time`].
pub fn settling_time(flows: &[&[f64]], times_s: &[f64], epoch_s: f64, threshold: f64) -> Measured {
    let fair = fair_intervals(flows, times_s, epoch_s, threshold)?;
    let last_unfair = fair.iter().rposition(|(_, fair)| !fair);
    let first = fair.get(last_unfair.map_or(0, |i| i + 1)).ok_or(Undefined::Never)?;
    Ok(first.0 - epoch_s)
}

/// Delta-fair convergence time in seconds of two flows: from the epoch to the first interval in
/// which the smaller of two rates has at least `(1 - delta) / 2` of their sum (Bansal et al. 2001,
/// RFC 5166 section 2.3.3, where the flows start at shares of 100/101 and 1/101).
///
/// # Errors
/// [`Undefined::BadInput`] unless `delta` is in `0.0..=1.0` and no rate is negative; else as
/// [`convergence_time`].
pub fn delta_fair_time(rates: [&[f64]; 2], times_s: &[f64], epoch_s: f64, delta: f64) -> Measured {
    if !(0.0..=1.0).contains(&delta) {
        return Err(Undefined::BadInput);
    }
    // The smaller of the two shares; an interval without packets has none, which counts as zero.
    let share = |(a, b): (&f64, &f64)| if a + b > 0.0 { a.min(*b) / (a + b) } else { 0.0 };
    rates.iter().try_for_each(|r| check(r))?;
    if rates[0].len() != rates[1].len() {
        return Err(Undefined::DifferentLengths);
    }
    let shares: Vec<f64> = rates[0].iter().zip(rates[1]).map(share).collect();
    convergence_time(&[&shares], times_s, epoch_s, (1.0 - delta) / 2.0)
}

/// The end of each interval after the epoch, and whether all flows reach the threshold in it.
fn fair_intervals(
    flows: &[&[f64]],
    times_s: &[f64],
    epoch_s: f64,
    threshold: f64,
) -> Result<Vec<(f64, bool)>, Undefined> {
    check_finite(times_s)?;
    check_finite(&[epoch_s, threshold])?;
    flows.iter().try_for_each(|f| check_finite(f))?;
    if flows.iter().any(|f| f.len() != times_s.len()) {
        return Err(Undefined::DifferentLengths);
    }
    if !times_s.is_sorted_by(|earlier, later| earlier < later) {
        return Err(Undefined::NotRising);
    }
    let after = times_s.iter().enumerate().filter(|(_, t)| **t > epoch_s);
    let fair: Vec<(f64, bool)> =
        after.map(|(i, t)| (*t, flows.iter().all(|f| f[i] >= threshold))).collect();
    if flows.is_empty() || fair.is_empty() {
        return Err(Undefined::NoSamples);
    }
    Ok(fair)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: [f64; 6] = [31.0, 32.0, 33.0, 34.0, 35.0, 36.0];
    const OLD: [f64; 6] = [2.0, 1.0, -1.0, 0.0, 0.0, 0.1];
    const NEW: [f64; 6] = [-9.0, -0.4, 0.3, -0.4, -2.0, -0.3];

    #[test]
    fn the_first_time_counts_for_a_flow_and_for_the_system() {
        let time = |flows: &[&[f64]]| convergence_time(flows, &TIMES, 30.0, THRESHOLD_DB);
        assert_eq!(time(&[&OLD]), Ok(1.0));
        assert_eq!(time(&[&NEW]), Ok(2.0));
        assert_eq!(time(&[&OLD, &NEW]), Ok(2.0));
        assert_eq!(time(&[&[-1.0; 6]]), Err(Undefined::Never));
        assert_eq!(time(&[]), Err(Undefined::NoSamples));
        assert_eq!(time(&[&[0.0]]), Err(Undefined::DifferentLengths));
    }

    #[test]
    fn settling_asks_that_it_lasts() {
        let time = |flows: &[&[f64]]| settling_time(flows, &TIMES, 30.0, THRESHOLD_DB);
        assert_eq!(time(&[&OLD]), Ok(4.0));
        assert_eq!(time(&[&OLD, &NEW]), Ok(6.0));
        assert_eq!(time(&[&[0.0; 6]]), Ok(1.0));
        assert_eq!(time(&[&[-1.0; 6]]), Err(Undefined::Never));
    }

    #[test]
    fn what_was_before_the_epoch_does_not_count() {
        assert_eq!(convergence_time(&[&OLD], &TIMES, 32.0, THRESHOLD_DB), Ok(2.0));
        assert_eq!(convergence_time(&[&OLD], &TIMES, 36.0, 0.0), Err(Undefined::NoSamples));
    }

    #[test]
    fn times_must_rise() {
        for times in [[1.0, 3.0, 2.0], [1.0, 1.0, 2.0]] {
            let time = convergence_time(&[&[0.0; 3]], &times, 0.0, 0.0);
            assert_eq!(time, Err(Undefined::NotRising));
        }
    }

    #[test]
    fn delta_fair_at_a_tenth() {
        // The newcomer needs (1 - 0.1) / 2 = 0.45 of the link.
        let (old, new) = ([100.0, 60.0, 54.0], [1.0, 40.0, 46.0]);
        let times = [1.0, 2.0, 3.0];
        assert_eq!(delta_fair_time([&old, &new], &times, 0.0, 0.1), Ok(3.0));
        assert_eq!(delta_fair_time([&old, &new], &times, 0.0, 0.05), Err(Undefined::Never));
        assert_eq!(delta_fair_time([&old, &new], &times, 0.0, 1.5), Err(Undefined::BadInput));
        assert_eq!(delta_fair_time([&[0.0], &[0.0]], &[1.0], 0.0, 0.1), Err(Undefined::Never));
    }
}
