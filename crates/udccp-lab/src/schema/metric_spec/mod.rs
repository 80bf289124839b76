//! A metric of a table or figure, with how it is computed and printed.

mod settings;
mod weights;

use udccp_base::Duration;
use udccp_scenario::document::{Node, Reader};

use self::settings::Settings;
use super::close::Close;
use super::context::{Context, View};
use super::metric::{Metric, Rates};

pub use self::weights::Weights;

/// A metric with everything that determines its value and its printed form.
#[derive(Clone, Debug)]
pub struct MetricSpec {
    /// Its name in rows, columns and claims: the metric's word unless the file gives another.
    pub name: String,
    /// The metric.
    pub metric: Metric,
    /// The rates from which a fairness index is computed.
    pub rates: Rates,
    /// The printed unit.
    pub unit: String,
    /// Factor from the metric's own unit to the printed one.
    pub factor: f64,
    /// Number of decimals.
    pub digits: usize,
    /// The distance from the published value that counts as agreement.
    pub close: Close,
    /// The part of the run that the value covers, if it is not the measured interval.
    pub window: Option<Window>,
    /// The time of the change from which a duration is measured.
    pub epoch: Option<Duration>,
    /// The level to be reached: a fraction of the value before the change, or decibels.
    pub level: Option<f64>,
    /// The group of flows that the value covers.
    pub group: Option<String>,
    /// The source of the weights of a normalised metric.
    pub weights: Option<Weights>,
}

/// A part of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Start.
    pub from: Duration,
    /// End.
    pub to: Duration,
}

/// The `[[flow]]` to which a flow belongs: `bulk-3` is the third of `bulk`.
pub fn group_of(flow: &str) -> &str {
    match flow.rsplit_once('-') {
        Some((group, number)) if number.parse::<u32>().is_ok() => group,
        _ => flow,
    }
}

impl MetricSpec {
    /// A metric with its default settings.
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

    /// The heading: the file's name for it, or the metric's title.
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

    /// The possible values in a run with this many flows, in the printed unit: minimum, maximum.
    pub fn bounds(&self, flows: usize) -> (f64, f64) {
        let (low, high) = self.metric.bounds(flows);
        (low * self.factor, high * self.factor)
    }

    /// The distance from this published value that counts as agreement, in the printed unit. A
    /// relative distance of a share refers to the smaller side, so that it holds for the flow and
    /// for the others.
    pub fn distance(&self, published: f64) -> f64 {
        match self.metric {
            Metric::Share => {
                let (_, whole) = self.bounds(0);
                self.close.distance(published.min(whole - published))
            }
            _ => self.close.distance(published),
        }
    }

    /// One unit of the last printed digit.
    pub(crate) fn last_digit(&self) -> f64 {
        (0..self.digits).fold(1.0, |unit, _| unit / 10.0)
    }

    /// A value as printed, with a typographic minus.
    pub fn print(&self, value: f64) -> String {
        let text = format!("{value:.*}", self.digits).replace('-', "\u{2212}");
        let is_zero = text.chars().all(|c| "\u{2212}0.".contains(c));
        if is_zero { text.trim_start_matches('\u{2212}').to_owned() } else { text }
    }

    /// Reads `metric = "word"` with its related keys, or `metrics = [...]`.
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

    /// 10 % of 80:20 are two points in either direction: eight would allow 40 % for the small flow.
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
