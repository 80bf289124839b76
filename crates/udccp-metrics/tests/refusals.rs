//! No metric returns a number for invalid input.

use udccp_metrics::*;

/// The results of all metrics with `bad` in place of one input.
fn results(bad: f64) -> Vec<(&'static str, Result<(), Undefined>)> {
    let (good, with) = ([1.0, 2.0], [1.0, bad]);
    let none = |result: Measured| result.map(|_| ());
    vec![
        ("power, throughput", none(power(bad, 1.0))),
        ("power, delay", none(power(1.0, bad))),
        ("tcp_friendly_rate, rtt", none(tcp_friendly_rate(bad, 0.1))),
        ("tcp_friendly_rate, loss", none(tcp_friendly_rate(1.0, bad))),
        ("equation_ratio, rate", none(equation_ratio(bad, 1.0, 0.1))),
        ("equation_ratio, rtt", none(equation_ratio(1.0, bad, 0.1))),
        ("equation_ratio, p", none(equation_ratio(1.0, 1.0, bad))),
        ("responsiveness", none(responsiveness(&with))),
        ("aggressiveness", none(aggressiveness(&with))),
        ("largest_reduction", none(largest_reduction(&with))),
        ("recovery_time", none(recovery_time(&with, &good, 0.0, 0.5))),
        ("max_min_shares, capacity", max_min_shares(bad, &[None]).map(|_| ())),
        ("max_min_shares, demand", max_min_shares(1.0, &[Some(bad)]).map(|_| ())),
        ("max_min_ratio, rates", none(max_min_ratio(&with, &good))),
        ("max_min_ratio, fair", none(max_min_ratio(&good, &with))),
        ("normalised", normalised(&with, &good).map(|_| ())),
        ("log_utility", none(log_utility(&with))),
        ("proportional_change, rates", none(proportional_change(&with, &good))),
        ("proportional_change, other", none(proportional_change(&good, &with))),
        ("geometric_mean", none(geometric_mean(&with))),
        ("epsilon", none(epsilon(&with))),
        ("potential_delay", none(potential_delay(&with))),
        ("jain", none(jain(&with))),
        ("harm_more_is_better, alone", none(harm_more_is_better(bad, 1.0))),
        ("harm_more_is_better, beside", none(harm_more_is_better(1.0, bad))),
        ("harm_less_is_better, alone", none(harm_less_is_better(bad, 1.0))),
        ("harm_less_is_better, beside", none(harm_less_is_better(1.0, bad))),
        ("weight", none(weight(bad))),
        ("share_ratio, weight", none(share_ratio(bad, 1.0))),
        ("share_ratio, rate", none(share_ratio(1.0, bad))),
        ("usage_db", none(usage_db(bad))),
        ("FlowNru, rates", FlowNru::new(&with, 1.0, 0.1).map(|_| ())),
        ("FlowNru, weight", FlowNru::new(&good, bad, 0.1).map(|_| ())),
        ("FlowNru, least", FlowNru::new(&good, 1.0, bad).map(|_| ())),
        ("throughput_mbps", none(throughput_mbps(1, bad))),
        ("utilisation_percent, rates", none(utilisation_percent(&with, 1.0))),
        ("utilisation_percent, capacity", none(utilisation_percent(&good, bad))),
        ("delta_fair_time, first", none(delta_fair_time([&with, &good], &good, 0.0, 0.1))),
        ("delta_fair_time, second", none(delta_fair_time([&good, &with], &good, 0.0, 0.1))),
        ("quantile, p", none(quantile(&good, bad))),
    ]
}

#[test]
fn negative_and_non_finite_inputs_are_rejected() {
    for bad in [f64::NAN, f64::INFINITY, -1.0] {
        for (what, result) in results(bad) {
            assert_eq!(result, Err(Undefined::BadInput), "{what}: {bad}");
        }
    }
}

/// Decibels can be negative, and so can delays between different clocks.
#[test]
fn quantiles_are_of_any_finite_values() {
    assert_eq!(quantile(&[-3.0, -2.0, 1.0], 0.25), Ok(-2.5));
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(quantile(&[1.0, bad], 0.5), Err(Undefined::BadInput));
    }
}

#[test]
fn two_flows_of_different_lengths_do_not_converge_at_any_time() {
    let longer = [1.0, 1.0, 1.0];
    let times = [1.0, 2.0];
    let time = delta_fair_time([&longer[..2], &longer], &times, 0.0, 0.1);
    assert_eq!(time, Err(Undefined::DifferentLengths));
    assert_eq!(delta_fair_time([&longer[..2]; 2], &times, 0.0, 0.1), Ok(1.0));
}

#[test]
fn a_system_without_flows_has_no_samples() {
    let none = SystemNru::new(&[]);
    assert_eq!([none.mean, none.fair, none.unfair], [Err(Undefined::NoSamples); 3]);
}
