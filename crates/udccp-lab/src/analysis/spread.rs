//! The spread of runs around their mean.

use udccp_metrics::Summary;

use crate::schema::MetricSpec;

/// Smallest and largest possible value of a quantity.
pub type Bounds = (f64, f64);

/// How far the runs of one point differ.
///
/// With three or more runs, the 95 % interval of the mean, cut at the bounds of the quantity: a
/// fairness index is never above 1, a rate never below 0. With two, only their values are known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// No run, or one.
    None,
    /// Too few runs for an interval: the smallest and the largest value.
    Range {
        /// How many there are.
        runs: usize,
        /// The smallest.
        low: f64,
        /// The largest.
        high: f64,
    },
    /// The 95 % interval of the mean.
    Interval {
        /// Its lower end.
        low: f64,
        /// Its upper end.
        high: f64,
        /// Half of its width before it was cut.
        half: f64,
        /// Whether it was cut at a bound of the quantity.
        is_cut: bool,
    },
}

impl Spread {
    /// The spread of a quantity with these bounds.
    pub fn of(summary: &Summary, bounds: Bounds) -> Self {
        if let (Ok(mean), Ok(half)) = (summary.mean, summary.ci95) {
            // Rounding may have moved the mean itself over the bound.
            let (least, most) = (bounds.0.min(mean), bounds.1.max(mean));
            let (low, high) = ((mean - half).max(least), (mean + half).min(most));
            let is_cut = mean - half < low || mean + half > high;
            return Self::Interval { low, high, half, is_cut };
        }
        match summary.range {
            Some((low, high)) if summary.n > 1 => Self::Range { runs: summary.n, low, high },
            _ => Self::None,
        }
    }

    /// The 95 % interval; `None` for fewer than three runs.
    pub const fn interval(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Interval { low, high, .. } => Some((low, high)),
            _ => None,
        }
    }

    /// Half the width of the interval, if it is symmetric around the mean.
    pub const fn half(&self) -> Option<f64> {
        match *self {
            Self::Interval { half, is_cut: false, .. } => Some(half),
            _ => None,
        }
    }

    /// The uncertainty of the mean: half the width of the interval, or of the range.
    pub fn doubt(&self) -> f64 {
        match *self {
            Self::None => 0.0,
            Self::Range { low, high, .. } => (high - low) / 2.0,
            Self::Interval { half, .. } => half,
        }
    }

    /// As text after a mean: `±0.13`, `0.83..1.00` if a bound cuts it, `2 runs, 0.64..0.98`; `None`
    /// if there is nothing to print.
    pub fn text(&self, shown: &MetricSpec, plus_minus: &str) -> Option<String> {
        let extent = self.extent(shown, plus_minus)?;
        Some(match self {
            Self::Range { runs, .. } => format!("{runs} runs, {extent}"),
            _ => extent,
        })
    }

    /// The same without the number of runs: `0.64..0.98`.
    pub fn extent(&self, shown: &MetricSpec, plus_minus: &str) -> Option<String> {
        match *self {
            Self::None => None,
            Self::Interval { half, is_cut: false, .. } => {
                Some(format!("{plus_minus}{}", shown.print(half)))
            }
            Self::Range { low, high, .. } | Self::Interval { low, high, .. } => {
                Some(format!("{}..{}", shown.print(low), shown.print(high)))
            }
        }
    }

    /// A mean as printed with its spread: `0.95 ±0.13`, `0.95 (0.83..1.00)`,
    /// `0.81 (2 runs, 0.64..0.98)`, or the mean alone.
    pub fn beside(&self, mean: f64, shown: &MetricSpec, plus_minus: &str) -> String {
        let mean = shown.print(mean);
        match (self.text(shown, plus_minus), self.half()) {
            (None, _) => mean,
            (Some(text), Some(_)) => format!("{mean} {text}"),
            (Some(text), None) => format!("{mean} ({text})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Metric;

    fn said(metric: Metric, values: &[f64]) -> String {
        let (summary, shown) = (Summary::of(values), MetricSpec::plain(metric));
        let spread = Spread::of(&summary, shown.bounds(2));
        spread.beside(summary.mean.expect("values"), &shown, "±")
    }

    #[test]
    fn two_runs_show_their_range_and_three_an_interval() {
        assert_eq!(said(Metric::Jain, &[0.81]), "0.81");
        assert_eq!(said(Metric::Jain, &[0.64, 0.98]), "0.81 (2 runs, 0.64..0.98)");
        assert_eq!(said(Metric::Jain, &[0.80, 0.82, 0.81]), "0.81 ±0.02");
        let two = Spread::of(&Summary::of(&[0.64, 0.98]), (0.5, 1.0));
        assert_eq!((two.interval(), two.half()), (None, None));
        assert!((two.doubt() - 0.17).abs() < 1e-12);
    }

    /// The index of two flows is between 1/2 and 1, a rate or a loss not below 0, a share not above
    /// 100 %. Without the cut: 0.96 +- 0.07, 0.67 +- 2.87, 99.0 +- 2.5.
    #[test]
    fn an_interval_stays_in_the_bounds_of_its_metric() {
        assert_eq!(said(Metric::Jain, &[0.94, 0.95, 0.99]), "0.96 (0.89..1.00)");
        assert_eq!(said(Metric::Jain, &[0.5, 0.5, 0.9]), "0.63 (0.50..1.00)");
        assert_eq!(said(Metric::Throughput, &[0.0, 0.0, 2.0]), "0.7 (0.0..3.5)");
        assert_eq!(said(Metric::Utilisation, &[98.0, 99.0, 100.0]), "99.0 (96.5..100.0)");
        assert_eq!(
            said(Metric::NruUnfair, &[-0.1, -0.2, -3.0]),
            "\u{2212}1.10 (\u{2212}5.19..0.00)"
        );
        assert_eq!(said(Metric::Harm, &[-0.5, 0.0, 0.9]), "0.13 (\u{2212}1.63..1.00)");
    }

    /// In the printed unit: 1 Mbit/s is 1000 kbit/s, and 100 % is 1 where a paper prints parts.
    #[test]
    fn bounds_are_in_the_printed_unit() {
        let mut shown = MetricSpec::plain(Metric::Loss);
        shown.factor = 0.01;
        assert_eq!(shown.bounds(2), (0.0, 1.0));
        assert_eq!(MetricSpec::plain(Metric::Jain).bounds(4), (0.25, 1.0));
    }

    #[test]
    fn a_mean_over_its_bound_by_rounding_stays_inside_its_interval() {
        let summary = Summary::of(&[1.0 + 1e-12; 3]);
        let (low, high) = Spread::of(&summary, (0.5, 1.0)).interval().expect("three runs");
        assert!((low..=high).contains(&summary.mean.expect("three runs")));
    }
}
