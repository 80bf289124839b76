//! Metrics of any measurements: the functions of `udccp-metrics`, which reports use too.

use pyo3::prelude::*;
use udccp_metrics as m;

use crate::{border, error};

/// Returns the value, or raises `UndefinedError` with the reason.
fn value<T>(py: Python<'_>, work: impl FnOnce() -> Result<T, m::Undefined>) -> PyResult<T> {
    border::guard(py, || work().map_err(|why| error::raise(py, "UndefinedError", why.to_string())))
}

fn slices(series: &[Vec<f64>]) -> Vec<&[f64]> {
    series.iter().map(Vec::as_slice).collect()
}

/// A metric of a list of numbers.
type Metric = fn(&[f64]) -> m::Measured;

/// Metrics that take one list.
const OF_VALUES: [(&str, Metric); 10] = [
    ("jain", m::jain),
    ("epsilon", m::epsilon),
    ("log_utility", m::log_utility),
    ("geometric_mean", m::geometric_mean),
    ("potential_delay", m::potential_delay),
    ("mean", m::mean),
    ("coefficient_of_variation", m::coefficient_of_variation),
    ("responsiveness", m::responsiveness),
    ("aggressiveness", m::aggressiveness),
    ("largest_reduction", m::largest_reduction),
];

/// Metrics that take several numbers, with their count.
const OF_NUMBERS: [(&str, usize, Metric); 7] = [
    ("harm_more_is_better", 2, |x| m::harm_more_is_better(x[0], x[1])),
    ("harm_less_is_better", 2, |x| m::harm_less_is_better(x[0], x[1])),
    ("usage_of_mean", 2, |x| m::usage_of_mean(x[0], x[1])),
    ("weight", 1, |x| m::weight(x[0])),
    ("power", 2, |x| m::power(x[0], x[1])),
    ("tcp_friendly_rate", 2, |x| m::tcp_friendly_rate(x[0], x[1])),
    ("equation_ratio", 3, |x| m::equation_ratio(x[0], x[1], x[2])),
];

/// Computes the metric with this name from a list of numbers.
#[pyfunction]
pub(crate) fn metric_of_values(py: Python<'_>, name: &str, values: Vec<f64>) -> PyResult<f64> {
    let found = OF_VALUES.iter().find(|(known, _)| *known == name);
    let (_, function) =
        found.ok_or_else(|| error::internal(py, &format!("there is no metric {name}")))?;
    value(py, || function(&values))
}

/// Computes the metric with this name from several numbers.
#[pyfunction]
pub(crate) fn metric_of_numbers(py: Python<'_>, name: &str, numbers: Vec<f64>) -> PyResult<f64> {
    let found = OF_NUMBERS.iter().find(|(known, n, _)| *known == name && *n == numbers.len());
    let (_, _, function) =
        found.ok_or_else(|| error::internal(py, &format!("there is no metric {name}")))?;
    value(py, || function(&numbers))
}

/// Jain's index of each interval; `None` where it is undefined.
#[pyfunction]
pub(crate) fn jain_over_time(py: Python<'_>, series: Vec<Vec<f64>>) -> PyResult<Vec<Option<f64>>> {
    value(py, || {
        if series.windows(2).any(|pair| pair[0].len() != pair[1].len()) {
            return Err(m::Undefined::DifferentLengths);
        }
        let over_time = m::jain_over_time(&slices(&series));
        Ok(over_time.values.into_iter().map(Result::ok).collect())
    })
}

/// Convergence or settling time in seconds.
#[pyfunction]
pub(crate) fn convergence(
    py: Python<'_>,
    flows: Vec<Vec<f64>>,
    times_s: Vec<f64>,
    epoch_s: f64,
    threshold: f64,
    settles: bool,
) -> PyResult<f64> {
    let function = if settles { m::settling_time } else { m::convergence_time };
    value(py, || function(&slices(&flows), &times_s, epoch_s, threshold))
}

/// Delta-fair convergence time of two flows in seconds.
#[pyfunction]
pub(crate) fn delta_fair_time(
    py: Python<'_>,
    rates: [Vec<f64>; 2],
    times_s: Vec<f64>,
    epoch_s: f64,
    delta: f64,
) -> PyResult<f64> {
    let [first, second] = &rates;
    value(py, || m::delta_fair_time([first, second], &times_s, epoch_s, delta))
}

/// NRU of a flow over time in decibels, its mean, its stability, and the number of intervals that
/// were raised to one packet.
#[pyfunction]
pub(crate) fn flow_nru(
    py: Python<'_>,
    rates: Vec<f64>,
    weight: f64,
    least: f64,
) -> PyResult<(Vec<f64>, f64, Option<f64>)> {
    value(py, || {
        let nru = m::FlowNru::new(&rates, weight, least)?;
        let (mean, stability) = (nru.mean()?, nru.stability().ok());
        Ok((nru.values, mean, stability))
    })
}

/// The components of the system NRU from the flows' means: fair, unfair, mean; and its case.
#[pyfunction]
pub(crate) fn system_nru(
    py: Python<'_>,
    means_db: Vec<f64>,
    zero_within_db: f64,
) -> PyResult<(Option<f64>, Option<f64>, f64, String)> {
    value(py, || {
        let system = m::SystemNru::of_means(&means_db);
        let case = system.case(zero_within_db)?.to_string();
        Ok((system.fair.ok(), system.unfair.ok(), system.mean?, case))
    })
}

/// Mean, standard deviation and half of the 95 % interval of runs.
#[pyfunction]
pub(crate) fn summary(
    py: Python<'_>,
    values: Vec<f64>,
) -> PyResult<(usize, f64, Option<f64>, Option<f64>)> {
    value(py, || {
        let summary = m::Summary::of(&values);
        Ok((summary.n, summary.mean?, summary.stddev.ok(), summary.ci95.ok()))
    })
}

/// Quantile of values, which may be in any order.
#[pyfunction]
pub(crate) fn quantile(py: Python<'_>, mut values: Vec<f64>, p: f64) -> PyResult<f64> {
    values.sort_by(f64::total_cmp);
    value(py, || m::quantile(&values, p))
}

/// Max-min fair shares of a link.
#[pyfunction]
pub(crate) fn max_min_shares(
    py: Python<'_>,
    capacity: f64,
    demands: Vec<Option<f64>>,
) -> PyResult<Vec<f64>> {
    value(py, || m::max_min_shares(capacity, &demands))
}

/// Converts times in s to nanoseconds since the smallest. Transit times are negative if clocks
/// differ, and only differences matter for jitter.
fn since_the_least(times_s: &[f64]) -> Result<Vec<u64>, m::Undefined> {
    let least = times_s.iter().copied().fold(f64::INFINITY, f64::min);
    let nanoseconds = |s: &f64| {
        let ns = ((s - least) * 1e9).round();
        // The upper bound also rejects NaN and infinity.
        if ns < u64::MAX as f64 { Ok(ns as u64) } else { Err(m::Undefined::BadInput) }
    };
    times_s.iter().map(nanoseconds).collect()
}

/// Jitter of RFC 3550 after the last packet, in ms, from transit times in s.
#[pyfunction]
pub(crate) fn jitter_rfc3550_ms(py: Python<'_>, transits_s: Vec<f64>) -> PyResult<f64> {
    value(py, || {
        let mut jitter = m::Rfc3550Jitter::new();
        since_the_least(&transits_s)?.into_iter().for_each(|ns| jitter.push(ns));
        jitter.current_ms()
    })
}

/// Mean change of the interval between arrivals, in ms, from arrival times in s.
#[pyfunction]
pub(crate) fn arrival_gap_jitter_ms(py: Python<'_>, arrivals_s: Vec<f64>) -> PyResult<f64> {
    value(py, || m::mean_arrival_gap_jitter_ms(&since_the_least(&arrivals_s)?))
}

/// Adds this file's functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("THRESHOLD_DB", m::THRESHOLD_DB)?;
    module.add_function(wrap_pyfunction!(metric_of_values, module)?)?;
    module.add_function(wrap_pyfunction!(metric_of_numbers, module)?)?;
    module.add_function(wrap_pyfunction!(jain_over_time, module)?)?;
    module.add_function(wrap_pyfunction!(convergence, module)?)?;
    module.add_function(wrap_pyfunction!(delta_fair_time, module)?)?;
    module.add_function(wrap_pyfunction!(flow_nru, module)?)?;
    module.add_function(wrap_pyfunction!(system_nru, module)?)?;
    module.add_function(wrap_pyfunction!(summary, module)?)?;
    module.add_function(wrap_pyfunction!(quantile, module)?)?;
    module.add_function(wrap_pyfunction!(max_min_shares, module)?)?;
    module.add_function(wrap_pyfunction!(jitter_rfc3550_ms, module)?)?;
    module.add_function(wrap_pyfunction!(arrival_gap_jitter_ms, module)?)
}
