//! Statistics of repeated runs: mean, sample standard deviation, 95 % confidence interval.

use statrs::distribution::{ContinuousCDF, StudentsT};

use crate::undefined::{Measured, Undefined};

/// Mean of the values.
///
/// # Errors
/// [`Undefined::NoSamples`] without values, [`Undefined::BadInput`] if one is not finite.
pub fn mean(values: &[f64]) -> Measured {
    if values.is_empty() {
        return Err(Undefined::NoSamples);
    }
    if values.iter().any(|v| !v.is_finite()) {
        return Err(Undefined::BadInput);
    }
    Ok(values.iter().sum::<f64>() / values.len() as f64)
}

/// Minimum number of runs for an interval. Student's t with one degree of freedom is 12.7: two runs
/// of 0.64 and 0.98 would give an interval from -1.35 to 2.97.
pub const INTERVAL_RUNS: usize = 3;

/// The statistics of one quantity over repeated runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Number of runs with a value.
    pub n: usize,
    /// Mean over the runs.
    pub mean: Measured,
    /// Sample standard deviation (divisor `n - 1`); needs two runs.
    pub stddev: Measured,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t with `n - 1`
    /// degrees of freedom; needs [`INTERVAL_RUNS`].
    pub ci95: Measured,
    /// The smallest and the largest value.
    pub range: Option<(f64, f64)>,
}

impl Summary {
    /// The summary of values, one per run.
    pub fn of(values: &[f64]) -> Self {
        let n = values.len();
        let mean = mean(values);
        let stddev = mean.and_then(|m| {
            if n < 2 {
                return Err(Undefined::TooFew { needed: 2, got: n });
            }
            let squares: f64 = values.iter().map(|v| (v - m) * (v - m)).sum();
            Ok((squares / (n - 1) as f64).sqrt())
        });
        let ci95 = match mean {
            Ok(_) if n < INTERVAL_RUNS => Err(Undefined::TooFew { needed: INTERVAL_RUNS, got: n }),
            _ => stddev.map(|s| student_t_975(n - 1) * s / (n as f64).sqrt()),
        };
        let least = values.iter().copied().reduce(f64::min);
        let range = least.zip(values.iter().copied().reduce(f64::max)).filter(|_| mean.is_ok());
        Self { n, mean, stddev, ci95, range }
    }

    /// The interval as (low, high), if it exists.
    pub fn interval(&self) -> Option<(f64, f64)> {
        let (mean, half) = (self.mean.ok()?, self.ci95.ok()?);
        Some((mean - half, mean + half))
    }
}

/// The 97.5 % quantile of Student's t distribution, by which a two-sided 95 % interval multiplies
/// the standard error. Zero `degrees` count as one.
pub fn student_t_975(degrees: usize) -> f64 {
    let degrees = degrees.max(1) as f64;
    match StudentsT::new(0.0, 1.0, degrees) {
        Ok(t) => t.inverse_cdf(0.975),
        // Cannot happen with a positive number of degrees; the value is the normal limit.
        Err(_) => 1.959_963_984_540_054,
    }
}

/// Standard deviation divided by mean: the smoothness of a bit rate (RFC 5166 section 2.2.2). No
/// unit.
///
/// # Errors
/// [`Undefined::TooFew`] for fewer than two values, [`Undefined::ZeroReference`] if the mean is
/// zero.
pub fn coefficient_of_variation(values: &[f64]) -> Measured {
    let summary = Summary::of(values);
    let (stddev, mean) = (summary.stddev?, summary.mean?);
    if mean == 0.0 {
        return Err(Undefined::ZeroReference);
    }
    Ok(stddev / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_and_interval_of_five_runs() {
        let s = Summary::of(&[0.90, 0.92, 0.94, 0.96, 0.98]);
        assert_eq!(s.n, 5);
        assert!((s.mean.unwrap() - 0.94).abs() < 1e-12);
        assert!((s.stddev.unwrap() - 0.031_622_776).abs() < 1e-8);
        // t(4, 0.975) = 2.776445; 2.776445 * 0.0316228 / sqrt(5) = 0.039265
        assert!((s.ci95.unwrap() - 0.039_265).abs() < 1e-5, "{s:?}");
        let (low, high) = s.interval().unwrap();
        assert!(low < 0.901 && high > 0.979);
    }

    #[test]
    fn student_t_as_in_the_printed_tables() {
        for (degrees, want) in [(1, 12.706), (2, 4.303), (4, 2.776), (9, 2.262), (24, 2.064)] {
            let got = student_t_975(degrees);
            assert!((got - want).abs() < 6e-4, "{degrees}: {got}");
        }
    }

    #[test]
    fn one_run_has_a_mean_and_no_interval() {
        let s = Summary::of(&[0.9]);
        assert_eq!(s.mean, Ok(0.9));
        assert_eq!(s.ci95, Err(Undefined::TooFew { needed: 3, got: 1 }));
        assert_eq!((s.interval(), s.range), (None, Some((0.9, 0.9))));
        assert_eq!(Summary::of(&[]).mean, Err(Undefined::NoSamples));
        assert_eq!(Summary::of(&[f64::NAN]).range, None);
        assert_eq!(Summary::of(&[f64::NAN, 1.0]).stddev, Err(Undefined::BadInput));
    }

    /// Regression: two runs of a Jain index gave 0.81 +- 2.16.
    #[test]
    fn two_runs_have_a_range_and_no_interval() {
        let s = Summary::of(&[0.98, 0.64]);
        assert!((s.stddev.unwrap() - 0.240_416).abs() < 1e-6);
        assert_eq!(s.ci95, Err(Undefined::TooFew { needed: 3, got: 2 }));
        assert_eq!((s.interval(), s.range), (None, Some((0.64, 0.98))));
        assert!(Summary::of(&[0.98, 0.64, 0.8]).interval().is_some());
    }

    #[test]
    fn smoothness() {
        assert_eq!(coefficient_of_variation(&[5.0, 5.0, 5.0]), Ok(0.0));
        assert_eq!(coefficient_of_variation(&[0.0, 0.0]), Err(Undefined::ZeroReference));
    }
}
