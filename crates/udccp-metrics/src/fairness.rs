//! Fairness: Jain's index, at one instant and over time.
//!
//! Source: Bhatti, Bateman and Miras, "A Comparative Performance Evaluation of DCCP" (2008),
//! equations (1) and (2), after Chiu and Jain (1989).

use crate::undefined::{Measured, Undefined, check};

/// Jain's fairness index of the shares `r_n`: `(sum r)^2 / (N * sum r^2)`, in `1/N..=1`.
///
/// Any unit, as long as it is the same for all. 1 means equal shares; `1/N` means that one flow
/// has everything. Source: Bhatti 2008, equation (1).
///
/// # Errors
/// [`Undefined::NoSamples`] without flows, [`Undefined::AllSilent`] when every share is zero,
/// [`Undefined::BadInput`] on a negative or non-finite share.
pub fn jain(shares: &[f64]) -> Measured {
    check(shares)?;
    if shares.is_empty() {
        return Err(Undefined::NoSamples);
    }
    // Scaled by the largest share, so that the squares of very small or large shares are
    // representable.
    let largest = shares.iter().copied().fold(0.0, f64::max);
    if largest == 0.0 {
        return Err(Undefined::AllSilent);
    }
    let sum: f64 = shares.iter().map(|r| r / largest).sum();
    let squares: f64 = shares.iter().map(|r| (r / largest) * (r / largest)).sum();
    Ok(sum * sum / (shares.len() as f64 * squares))
}

/// Fairness in every interval of a run, and its mean.
#[derive(Clone, Debug, PartialEq)]
pub struct JainOverTime {
    /// J(t) of each interval; an error for an interval in which no flow delivered anything.
    pub values: Vec<Measured>,
}

impl JainOverTime {
    /// The mean of the defined J(t): the J in the tables of Bhatti 2008 (section II.B).
    ///
    /// # Errors
    /// [`Undefined::NoSamples`] when no interval has a value.
    pub fn mean(&self) -> Measured {
        let defined: Vec<f64> = self.values.iter().filter_map(|v| v.ok()).collect();
        crate::summary::mean(&defined)
    }

    /// How many intervals have no value.
    pub fn undefined_intervals(&self) -> usize {
        self.values.iter().filter(|v| v.is_err()).count()
    }
}

/// J(t): Jain's index of each interval, from one series of interval throughputs per flow.
///
/// Series of different lengths are read up to the shortest. Source: Bhatti 2008, equation (2).
pub fn jain_over_time(series: &[&[f64]]) -> JainOverTime {
    let intervals = series.iter().map(|s| s.len()).min().unwrap_or(0);
    let at = |t: usize| jain(&series.iter().map(|s| s[t]).collect::<Vec<_>>());
    JainOverTime { values: (0..intervals).map(at).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: Measured, want: f64) {
        let got = got.unwrap();
        assert!((got - want).abs() < 5e-4, "got {got}, want {want}");
    }

    #[test]
    fn pairs_of_table_5_of_the_study() {
        // BIC at 25 ms shares 40 to 54 Mbit/s; CUBIC at 125 ms shares 13 to 75.
        close(jain(&[40.0, 54.0]), 0.9783);
        close(jain(&[13.0, 75.0]), 0.6683);
    }

    #[test]
    fn jain_index_is_one_for_equal_and_one_over_n_for_one_flow() {
        close(jain(&[5.0, 5.0, 5.0]), 1.0);
        close(jain(&[0.0, 9.0]), 0.5);
        close(jain(&[0.0, 0.0, 0.0, 1.0]), 0.25);
        close(jain(&[1e-200, 1e-200]), 1.0);
    }

    #[test]
    fn undefined_fairness_reports_its_reason() {
        assert_eq!(jain(&[]), Err(Undefined::NoSamples));
        assert_eq!(jain(&[0.0, 0.0]), Err(Undefined::AllSilent));
        assert_eq!(jain(&[1.0, f64::NAN]), Err(Undefined::BadInput));
        assert_eq!(jain(&[1.0, -1.0]), Err(Undefined::BadInput));
    }

    #[test]
    fn the_mean_over_time_is_below_the_index_of_the_means() {
        // Two flows that alternate are fair on average and unfair in every interval.
        let turns = jain_over_time(&[&[10.0, 0.0, 0.0], &[0.0, 10.0, 0.0]]);
        close(turns.mean(), 0.5);
        assert_eq!(turns.values[2], Err(Undefined::AllSilent));
        assert_eq!(turns.undefined_intervals(), 1);
        close(jain(&[10.0, 10.0]), 1.0);
    }

    #[test]
    fn mean_over_no_intervals_is_undefined() {
        assert_eq!(jain_over_time(&[]).mean(), Err(Undefined::NoSamples));
    }
}
