//! One quantity of a table or figure: a metric, how it is computed, and how it is printed.

use std::collections::BTreeSet;

use udccp_base::Duration;
use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, FromNode, Node, Reader, Value};

use super::choice::choose;
use super::close::Close;
use super::context::{Context, View};
use super::metric::{Metric, Rates};

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

/// Runs in which each protocol is among its own kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The case that holds them.
    pub case: String,
    /// The axis of that case that names the protocol.
    pub axis: String,
    /// How many times what they found counts as expected: 1, unless a study's numbers say more.
    pub times: f64,
}

/// Printed units by the unit that a metric is computed in, each with its factor.
const UNITS: [(&str, &[(&str, f64)]); 4] = [
    (
        "Mbit/s",
        &[("Gbit/s", 1e-3), ("kbit/s", 1e3), ("bit/s", 1e6), ("MB/s", 0.125), ("kB/s", 125.0)],
    ),
    ("ms", &[("s", 1e-3), ("us", 1e3)]),
    ("s", &[("ms", 1e3), ("min", 1.0 / 60.0)]),
    ("%", &[("", 1e-2)]),
];

/// The factor from one unit to another; `None` where they measure different things.
pub(super) fn unit_factor(from: &str, to: &str) -> Option<f64> {
    if from == to {
        return Some(1.0);
    }
    let of = |base: &str, unit: &str| {
        let (_, others) = UNITS.iter().find(|(b, _)| *b == base)?;
        others.iter().find(|(u, _)| *u == unit).map(|(_, factor)| *factor)
    };
    let through_base = || {
        UNITS.iter().find_map(|(base, _)| {
            let out = |unit| if unit == *base { Some(1.0) } else { of(base, unit) };
            Some(out(to)? / out(from)?)
        })
    };
    of(from, to).or_else(|| of(to, from).map(|f| 1.0 / f)).or_else(through_base)
}

/// The `[[flow]]` that a flow is of: `bulk-3` is the third of `bulk`.
pub fn group_of(flow: &str) -> &str {
    match flow.rsplit_once('-') {
        Some((group, number)) if number.parse::<u32>().is_ok() => group,
        _ => flow,
    }
}

/// The unit at the end of a column's header: `throughput_kbps` is in kbit/s.
pub(super) fn unit_of_header(header: &str) -> Option<&'static str> {
    Some(match header.rsplit('_').next()? {
        "ms" => "ms",
        "s" => "s",
        "gbps" => "Gbit/s",
        "mbps" => "Mbit/s",
        "kbps" => "kbit/s",
        "percent" => "%",
        "db" => "dB",
        _ => return None,
    })
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
        let errors = context.errors;
        let plan = Settings::read(reader, node, context, view);
        let many = reader.raw("metrics");
        let one = reader.raw("metric");
        match (one, many) {
            (Some(_), Some(at)) => {
                let error = "`metric` and `metrics` are one or the other";
                errors.push(Diagnostic::at(&at.span, error).hint("leave one of the two out"));
                None
            }
            (None, None) => reader.need::<Metric>("metric").map(|_| Vec::new()),
            (Some(table), None) if matches!(table.value, Value::Table(_)) => {
                let error = "`metric` is one word; a metric with keys of its own stands in a list";
                let hint = "write metrics = [{ metric = \"goodput\", digits = 2 }], or the keys \
                            beside `metric`";
                errors.push(Diagnostic::at(&table.span, error).hint(hint));
                None
            }
            (Some(word), None) => {
                let metric = Metric::from_node(word, errors)?;
                Some(vec![plan?.of(metric, None, node, errors)?])
            }
            (None, Some(list)) => read_list(list, &plan?, context, view),
        }
    }
}

fn read_list(
    list: &Node,
    plan: &Settings,
    context: &Context<'_>,
    view: &View,
) -> Option<Vec<MetricSpec>> {
    let errors = context.errors;
    let Value::List(items) = &list.value else {
        let error = format!("`metrics` is a list, found {}", list.kind());
        let hint = "write metrics = [\"throughput\", { metric = \"delay\", digits = 3 }]";
        errors.push(Diagnostic::at(&list.span, error).hint(hint));
        return None;
    };
    let mut all: Vec<MetricSpec> = Vec::new();
    for item in items {
        let shown = match &item.value {
            Value::Text(_) => plan.of(Metric::from_node(item, errors)?, None, item, errors)?,
            _ => {
                let mut reader = Reader::new(item, "table.metrics", errors)?;
                let metric = reader.need("metric");
                let name = reader.want("name");
                let own = Settings::read(&mut reader, item, context, view);
                reader.finish();
                own?.over(plan).of(metric?, name, item, errors)?
            }
        };
        if all.iter().any(|s| s.name == shown.name) {
            let error = format!("two metrics are called \"{}\"", shown.name);
            let hint = "give one a name: { metric = \"goodput\", name = \"before\" }";
            errors.push(Diagnostic::at(&item.span, error).hint(hint));
            return None;
        }
        all.push(shown);
    }
    let first = all.first().map(|s| s.metric.is_per_flow());
    if all.iter().any(|s| Some(s.metric.is_per_flow()) != first) {
        let error = "a table shows metrics of flows or of the whole network, not both";
        errors.push(Diagnostic::at(&list.span, error).hint("make it two tables"));
        return None;
    }
    if all.is_empty() {
        errors.push(Diagnostic::at(&list.span, "`metrics` names no metric"));
        return None;
    }
    Some(all)
}

/// The keys beside a metric.
#[derive(Clone, Debug, Default)]
struct Settings {
    rates: Option<Rates>,
    unit: Option<String>,
    digits: Option<u64>,
    close: Option<Close>,
    from: Option<Duration>,
    to: Option<Duration>,
    epoch: Option<Duration>,
    level: Option<f64>,
    group: Option<String>,
    weights: Option<Weights>,
}

impl Settings {
    fn read(
        reader: &mut Reader<'_>,
        node: &Node,
        context: &Context<'_>,
        view: &View,
    ) -> Option<Self> {
        let errors = context.errors;
        let rates = reader.raw("of");
        let settings = Self {
            rates: rates.and_then(|n| choose(n, errors, "kind of rate", Rates::WORDS)),
            unit: reader.want("unit"),
            digits: reader.want("digits"),
            close: reader.want("close"),
            from: reader.want("from"),
            to: reader.want("to"),
            epoch: reader.want("epoch"),
            level: reader.want("level"),
            group: reader.want("group"),
            weights: match reader.raw("weights") {
                Some(n) => Some(Weights::read(n, context, view)?),
                None => None,
            },
        };
        if let (Some(from), Some(to)) = (settings.from, settings.to)
            && from >= to
        {
            let at = node.get("to").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, format!("it begins at {from} and ends at {to}")));
            return None;
        }
        if let Some(group) = &settings.group {
            let groups: BTreeSet<&str> = view.flows.iter().map(|f| group_of(f)).collect();
            if !groups.contains(group.as_str()) {
                let at = node.get("group").map_or(&node.span, |n| &n.span);
                let names: Vec<&str> = groups.into_iter().collect();
                let error = Diagnostic::at(at, format!("there is no [[flow]] \"{group}\""));
                errors.push(error.hint(suggestion(group, "flows", &names)));
                return None;
            }
        }
        if settings.digits.is_some_and(|d| d > 9) {
            let at = node.get("digits").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, "at most 9 digits can be printed"));
            return None;
        }
        Some(settings)
    }

    /// These, and where one is absent that of the table.
    fn over(self, table: &Self) -> Self {
        let window = self.from.is_some() || self.to.is_some();
        Self {
            rates: self.rates.or(table.rates),
            unit: self.unit.or_else(|| table.unit.clone()),
            digits: self.digits.or(table.digits),
            close: self.close.or(table.close),
            from: if window { self.from } else { table.from },
            to: if window { self.to } else { table.to },
            epoch: self.epoch.or(table.epoch),
            level: self.level.or(table.level),
            group: self.group.or_else(|| table.group.clone()),
            weights: self.weights.or_else(|| table.weights.clone()),
        }
    }

    fn of(
        &self,
        metric: Metric,
        name: Option<String>,
        node: &Node,
        errors: &DiagnosticSink,
    ) -> Option<MetricSpec> {
        let plain = MetricSpec::plain(metric);
        let unit = self.unit.clone().unwrap_or_else(|| plain.unit.clone());
        let Some(factor) = unit_factor(&plain.unit, &unit) else {
            let at = node.get("unit").map_or(&node.span, |n| &n.span);
            let known = UNITS.iter().find(|(base, _)| *base == plain.unit);
            let others = known.map(|(_, u)| u.iter().map(|(u, _)| *u)).into_iter().flatten();
            let names: Vec<&str> = core::iter::once(plain.unit.as_str()).chain(others).collect();
            let error = format!("{} is not measured in \"{unit}\"", metric.word());
            errors.push(Diagnostic::at(at, error).hint(suggestion(&unit, "units", &names)));
            return None;
        };
        let window = match (self.from, self.to) {
            (None, None) => None,
            (Some(from), Some(to)) => Some(Window { from, to }),
            (from, _) => {
                let (has, lacks) = if from.is_some() { ("from", "to") } else { ("to", "from") };
                let at = node.get(has).map_or(&node.span, |n| &n.span);
                errors.push(Diagnostic::at(at, format!("`{has}` comes with `{lacks}`")));
                return None;
            }
        };
        self.check_times(metric, window, node, errors)?;
        Some(MetricSpec {
            name: name.unwrap_or(plain.name),
            rates: self.rates.unwrap_or(plain.rates),
            close: self.close.unwrap_or(metric.default_close().scaled(factor)),
            digits: self.digits.map_or(plain.digits, |d| d as usize),
            unit,
            factor,
            window,
            epoch: self.epoch,
            level: self.level,
            group: self.group.clone(),
            weights: self.weights.clone(),
            metric,
        })
    }
}

impl Settings {
    /// A stretch, a change: what the metric needs, and nothing that it cannot use.
    fn check_times(
        &self,
        metric: Metric,
        window: Option<Window>,
        node: &Node,
        errors: &DiagnosticSink,
    ) -> Option<()> {
        let word = metric.word();
        if window.is_some() && !metric.has_stretches() {
            let at = node.get("from").map_or(&node.span, |n| &n.span);
            let error = format!("{word} has no value of a stretch of a run");
            let hint = "there are: throughput, goodput, share, jain, recovery-time";
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        if metric.needs_weights() && self.weights.is_none() {
            let error = format!("{word} compares flows with runs among their own kind");
            let hint = "write weights = { case = \"self\", axis = \"protocol\" }: a case whose \
                        flows \
                        are of one protocol, and its axis that says which";
            let at = node.get("metric").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        if metric.needs_group() && self.group.is_none() {
            let at = node.get("metric").map_or(&node.span, |n| &n.span);
            let error = format!("{word} is of the flows of one [[flow]]");
            let hint = "write group = \"name\" next to it";
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        if metric == Metric::Recovery && (window.is_none() || self.epoch.is_none()) {
            let error = "recovery-time needs the change and the interval to compare with";
            let hint = "epoch = \"300 s\" is when the flood ends, from = \"50 s\" and \
                        to = \"100 s\" when all was well; level = 0.9 is the part that is enough";
            let at = node.get("metric").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        Some(())
    }
}

impl Weights {
    fn read(node: &Node, context: &Context<'_>, view: &View) -> Option<Self> {
        let mut reader = Reader::new(node, "weights", context.errors)?;
        let case: Option<String> = reader.need("case");
        let axis: Option<String> = reader.need("axis");
        let times: f64 = reader.or("times", 1.0);
        reader.finish();
        let (case, axis) = (case?, axis?);
        if times <= 0.0 {
            let at = node.get("times").map_or(&node.span, |n| &n.span);
            context.errors.push(Diagnostic::at(at, "`times` must be above 0"));
            return None;
        }
        let at = node.get("case").map_or(&node.span, |n| &n.span);
        let part = context.case_named(&case, at)?;
        let Some(_) = part.grid.axis(&axis) else {
            let at = node.get("axis").map_or(&node.span, |n| &n.span);
            let error = format!("case \"{case}\" has no axis `{axis}`");
            let hint = suggestion(&axis, "it has", &part.grid.names());
            context.errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        };
        // Every other axis of the self-runs has to be told by the point that is weighted.
        for other in part.grid.axes.iter().filter(|a| a.name != axis) {
            if other.values.len() > 1 && view.grid.axis(&other.name).is_none() {
                let error = format!(
                    "case \"{case}\" has weights for each `{}`, which is not an axis here",
                    other.name
                );
                context.errors.push(Diagnostic::at(&node.span, error));
                return None;
            }
        }
        Some(Self { case, axis, times })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_convert_both_ways_and_never_across_kinds() {
        assert_eq!(unit_factor("Mbit/s", "kbit/s"), Some(1e3));
        assert_eq!(unit_factor("kbit/s", "Mbit/s"), Some(1e-3));
        assert_eq!(unit_factor("kbit/s", "MB/s"), Some(1.25e-4));
        assert_eq!(unit_factor("s", "ms"), Some(1e3));
        assert_eq!(unit_factor("ms", "Mbit/s"), None);
        assert_eq!(unit_factor("", "dB"), None);
    }

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
