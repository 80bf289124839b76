//! Other measures of sharing: max-min and proportional fairness, the product measure,
//! epsilon-fairness, potential delay.
//!
//! Source: RFC 5166 section 2.3; Bhatti et al., "Revisiting inter-flow fairness" (2008), section
//! II.B; Kelly, Maulloo and Tan 1998 for proportional fairness.

use crate::summary::mean;
use crate::undefined::{Measured, Undefined, check};

/// The max-min fair shares of a link of `capacity`, by progressive filling: all rates grow equally,
/// and a flow stops at its demand (`None` for a flow without limit). RFC 5166 section 2.3.2. All
/// values in the same unit; empty without flows.
///
/// # Errors
/// [`Undefined::BadInput`] on a negative or non-finite input.
pub fn max_min_shares(capacity: f64, demands: &[Option<f64>]) -> Result<Vec<f64>, Undefined> {
    check(&[capacity])?;
    let bounded: Vec<f64> = demands.iter().flatten().copied().collect();
    check(&bounded)?;
    let demand = |i: usize| demands[i].unwrap_or(f64::INFINITY);
    let mut by_demand: Vec<usize> = (0..demands.len()).collect();
    by_demand.sort_by(|a, b| demand(*a).total_cmp(&demand(*b)));
    let mut shares = vec![0.0; demands.len()];
    let mut left = capacity;
    for (filled, &flow) in by_demand.iter().enumerate() {
        let equal = left / (demands.len() - filled) as f64;
        shares[flow] = demand(flow).min(equal);
        left -= shares[flow];
    }
    Ok(shares)
}

/// How far rates are from the max-min fair ones: the smallest `r_n / f_n`. It is at most 1 unless
/// the link is overfull; 0 means that a flow starves.
///
/// # Errors
/// [`Undefined::NoSamples`] without flows, [`Undefined::DifferentLengths`],
/// [`Undefined::ZeroReference`] when a fair share is zero, [`Undefined::BadInput`].
pub fn max_min_ratio(rates: &[f64], fair: &[f64]) -> Measured {
    check(rates)?;
    check(fair)?;
    if rates.len() != fair.len() {
        return Err(Undefined::DifferentLengths);
    }
    if fair.contains(&0.0) {
        return Err(Undefined::ZeroReference);
    }
    rates.iter().zip(fair).map(|(r, f)| r / f).reduce(f64::min).ok_or(Undefined::NoSamples)
}

/// Rates divided by an equal share of all rates: 1 is fair among flows that all want more (the
/// normalised throughput of Floyd, Handley, Padhye and Widmer, "Equation-based congestion control
/// for unicast applications" (2000), section 4.1). `all` includes `some`.
///
/// # Errors
/// [`Undefined::Silent`] when all rates are zero, [`Undefined::NoSamples`] when there are none,
/// [`Undefined::BadInput`].
pub fn normalised(some: &[f64], all: &[f64]) -> Result<Vec<f64>, Undefined> {
    check(some)?;
    let share = mean(all)?;
    if share == 0.0 {
        return Err(Undefined::Silent);
    }
    Ok(some.iter().map(|rate| rate / share).collect())
}

/// The utility that proportional fairness maximises: `sum ln T_n` over flows with throughput `T_n`
/// (Bhatti et al. 2008 section II.B after Kelly et al. 1998). It depends on the unit of the rates:
/// compare only values with equal units and numbers of flows.
///
/// # Errors
/// [`Undefined::NoSamples`] without flows, [`Undefined::Silent`] if a flow has rate zero (minus
/// infinity), [`Undefined::BadInput`].
pub fn log_utility(rates: &[f64]) -> Measured {
    check(rates)?;
    if rates.is_empty() {
        return Err(Undefined::NoSamples);
    }
    if rates.contains(&0.0) {
        return Err(Undefined::Silent);
    }
    Ok(rates.iter().map(|r| libm::log(*r)).sum())
}

/// The aggregate of proportional changes from `rates` to `other`, `sum (x*_i - x_i) / x_i`: `rates`
/// are proportionally fair when this is zero or less for every feasible `other`
/// (RFC 5166 section 2.3.2).
///
/// # Errors
/// [`Undefined::Silent`] when a rate is zero, [`Undefined::DifferentLengths`],
/// [`Undefined::NoSamples`], [`Undefined::BadInput`].
pub fn proportional_change(rates: &[f64], other: &[f64]) -> Measured {
    check(rates)?;
    check(other)?;
    if rates.len() != other.len() {
        return Err(Undefined::DifferentLengths);
    }
    if rates.is_empty() {
        return Err(Undefined::NoSamples);
    }
    if rates.contains(&0.0) {
        return Err(Undefined::Silent);
    }
    Ok(rates.iter().zip(other).map(|(x, o)| (o - x) / x).sum())
}

/// The product measure as a rate: the geometric mean of the flows' rates, `(prod x_i)^(1/n)` (RFC
/// 5166 section 2.3.1 has the plain product). Zero if a flow starves; for equal sums it is largest
/// if all rates are equal.
///
/// # Errors
/// [`Undefined::NoSamples`] without flows, [`Undefined::BadInput`].
pub fn geometric_mean(rates: &[f64]) -> Measured {
    match log_utility(rates) {
        Err(Undefined::Silent) => Ok(0.0),
        utility => Ok(libm::exp(utility? / rates.len() as f64)),
    }
}

/// The smallest epsilon for which the rates are epsilon-fair: `1 - min / max` (RFC 5166 section
/// 2.3.1). 0 means equal; 1 means that a flow starves.
///
/// # Errors
/// [`Undefined::NoSamples`] without flows, [`Undefined::AllSilent`] when all rates are zero,
/// [`Undefined::BadInput`].
pub fn epsilon(rates: &[f64]) -> Measured {
    check(rates)?;
    let least = rates.iter().copied().reduce(f64::min).ok_or(Undefined::NoSamples)?;
    let most = rates.iter().copied().fold(0.0, f64::max);
    if most == 0.0 {
        return Err(Undefined::AllSilent);
    }
    Ok(1.0 - least / most)
}

/// Mean potential delay, `sum (1 / x_i) / n`: the mean time to transfer one unit of data (RFC 5166
/// section 2.3.2, there as a sum). Smaller is better.
///
/// # Errors
/// [`Undefined::NoSamples`] without flows, [`Undefined::Silent`] if a flow has rate zero,
/// [`Undefined::BadInput`].
pub fn potential_delay(rates: &[f64]) -> Measured {
    check(rates)?;
    if rates.contains(&0.0) {
        return Err(Undefined::Silent);
    }
    mean(&rates.iter().map(|r| 1.0 / r).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normalised_rates_of_all_have_a_mean_of_one() {
        let all = [1.0, 3.0, 2.0, 2.0];
        assert_eq!(normalised(&all[..2], &all), Ok(vec![0.5, 1.5]));
        assert_eq!(mean(&normalised(&all, &all).unwrap()), Ok(1.0));
        assert_eq!(normalised(&[0.0], &[0.0, 0.0]), Err(Undefined::Silent));
        assert_eq!(normalised(&[], &[]), Err(Undefined::NoSamples));
    }

    #[test]
    fn filling_a_link_with_small_and_greedy_flows() {
        let shares = max_min_shares(100.0, &[None, Some(10.0), None, Some(70.0)]).unwrap();
        assert_eq!(shares, [30.0, 10.0, 30.0, 30.0]);
        // If the sum of demands is below capacity, all are met.
        assert_eq!(max_min_shares(100.0, &[Some(10.0), Some(20.0)]), Ok(vec![10.0, 20.0]));
        assert_eq!(max_min_shares(1.0, &[]), Ok(vec![]));
        assert_eq!(max_min_shares(-1.0, &[None]), Err(Undefined::BadInput));
    }

    #[test]
    fn max_min_ratio_is_that_of_the_worst_flow() {
        assert_eq!(max_min_ratio(&[17.0, 73.0], &[50.0, 50.0]), Ok(0.34));
        assert_eq!(max_min_ratio(&[], &[]), Err(Undefined::NoSamples));
        assert_eq!(max_min_ratio(&[1.0], &[0.0]), Err(Undefined::ZeroReference));
        assert_eq!(max_min_ratio(&[1.0], &[]), Err(Undefined::DifferentLengths));
    }

    #[test]
    fn equal_shares_are_proportionally_fair_on_one_link() {
        let equal = [50.0, 50.0];
        for other in [[17.0, 73.0], [99.0, 1.0], [50.0, 50.0]] {
            assert!(proportional_change(&equal, &other).unwrap() <= 0.0);
            assert!(log_utility(&other).unwrap() <= log_utility(&equal).unwrap());
        }
        assert!(proportional_change(&[17.0, 73.0], &equal).unwrap() > 0.0);
        assert_eq!(log_utility(&[0.0, 1.0]), Err(Undefined::Silent));
    }

    #[test]
    fn product_epsilon_and_potential_delay() {
        assert!((geometric_mean(&[20.0, 80.0]).unwrap() - 40.0).abs() < 1e-9);
        assert_eq!(geometric_mean(&[0.0, 80.0]), Ok(0.0));
        assert_eq!(geometric_mean(&[]), Err(Undefined::NoSamples));
        assert_eq!(epsilon(&[20.0, 80.0]), Ok(0.75));
        assert_eq!(epsilon(&[0.0, 0.0]), Err(Undefined::AllSilent));
        assert_eq!(potential_delay(&[2.0, 4.0]), Ok(0.375));
        assert_eq!(potential_delay(&[0.0]), Err(Undefined::Silent));
    }
}
