//! One quantity of a table or figure: a metric, how it is computed, and how it is printed.

mod settings;
mod weights;

use udccp_base::Duration;
use udccp_scenario::document::{Node, Reader};

use self::settings::Settings;
use super::close::Close;
use super::context::{Context, View};
use super::metric::{Metric, Rates};

pub use self::weights::Weights;

/// A metric with everything that its value and its print depend on.
#[derive(Clone, Debug)]
pub struct MetricSpec {
    /// What rows, columns and claims call it: the metric's word unless the file gives a name.
    pub name: String,
    /// The metric.
    pub metric: Metric,
    /// Which rates a fairness index is of.
    pub rates: Rates,
    /// The unit that is printed.
    pub unit: String,
    /// From the metric's own unit to the printed one.
    pub factor: f64,
    /// Digits after the point.
    pub digits: usize,
    /// How far from the published value still counts as agreement.
    pub close: Close,
    /// The stretch of a run that the value is of, where it is not the measured one.
    pub window: Option<Window>,
    /// The change from which a time is counted.
    pub epoch: Option<Duration>,
    /// The level that has to be reached: a part of the value before the change, or decibels.
    pub level: Option<f64>,
    /// The group of flows that the value is of.
    pub group: Option<String>,
    /// Where the weights of a normalised metric come from.
    pub weights: Option<Weights>,
}

/// A stretch of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Begin.
    pub from: Duration,
    /// End.
    pub to: Duration,
}

/// The `[[flow]]` that a flow is of: `bulk-3` is the third of `bulk`.
pub fn group_of(flow: &str) -> &str {
    match flow.rsplit_once('-') {
        Some((group, number)) if number.parse::<u32>().is_ok() => group,
        _ => flow,
    }
}

impl MetricSpec {
    /// A metric as it prints by default.
    pub fn plain(metric: Metric) -> Self {
        Self {
            name: metric.word().to_owned(),
            metric,
            rates: Rates::Throughput,
            unit: metric.unit().to_owned(),
            factor: 1.0,
            digits: metric.digits(),
            close: metric.default_close(),
            window: None,
            epoch: None,
            level: None,
            group: None,
            weights: None,
        }
    }

    /// The heading: what the file calls it, or the metric's title.
    pub fn title(&self) -> &str {
        if self.name == self.metric.word() { self.metric.title() } else { &self.name }
    }

    /// The heading with its unit.
    pub fn title_and_unit(&self) -> String {
        match self.unit.as_str() {
            "" => self.title().to_owned(),
            unit => format!("{}, {unit}", self.title()),
        }
    }

    /// The values that it can have in a run of so many flows, in the printed unit: from, to.
    pub fn bounds(&self, flows: usize) -> (f64, f64) {
        let (low, high) = self.metric.bounds(flows);
        (low * self.factor, high * self.factor)
    }

    /// How far from this published value still counts as agreement, in the printed unit. A part of
    /// a share is one of the smaller side, so that it holds for the flow and for the others.
    pub fn distance(&self, published: f64) -> f64 {
        match self.metric {
            Metric::Share => {
                let (_, whole) = self.bounds(0);
                self.close.distance(published.min(whole - published))
            }
            _ => self.close.distance(published),
        }
    }

    /// One in the last printed digit.
    pub(crate) fn last_digit(&self) -> f64 {
        (0..self.digits).fold(1.0, |unit, _| unit / 10.0)
    }

    /// A value as it prints, with a true minus.
    pub fn print(&self, value: f64) -> String {
        let text = format!("{value:.*}", self.digits).replace('-', "\u{2212}");
        let is_zero = text.chars().all(|c| "\u{2212}0.".contains(c));
        if is_zero { text.trim_start_matches('\u{2212}').to_owned() } else { text }
    }

    /// Reads `metric = "word"` with the keys beside it, or `metrics = [...]`.
    pub(super) fn read_all(
        reader: &mut Reader<'_>,
        node: &Node,
        context: &Context<'_>,
        view: &View,
    ) -> Option<Vec<Self>> {
        Settings::read_all(reader, node, context, view)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 10 % of 80:20 are two points either way: eight would let the small flow be 40 % off.
    #[test]
    fn a_part_of_a_share_is_one_of_the_smaller_side() {
        let mut shown = MetricSpec { close: Close::Part(0.1), ..MetricSpec::plain(Metric::Share) };
        assert!((shown.distance(80.0) - 2.0).abs() < 1e-12);
        assert!((shown.distance(20.0) - 2.0).abs() < 1e-12);
        shown.close = Close::Within(5.0);
        assert!((shown.distance(80.0) - 5.0).abs() < 1e-12);
    }

    #[test]
    fn values_print_with_their_digits_and_a_true_minus() {
        let mut shown = MetricSpec::plain(Metric::Jain);
        assert_eq!(shown.print(-0.126), "\u{2212}0.13");
        assert_eq!(shown.print(-0.001), "0.00");
        shown.digits = 6;
        assert_eq!(shown.print(0.000_086), "0.000086");
    }
}
