//! Reads the keys that accompany a metric or a list of metrics.

use std::collections::BTreeSet;

use udccp_base::Duration;
use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, FromNode, Node, Reader, Value};

use super::super::choice::choose;
use super::super::close::Close;
use super::super::context::{Context, View};
use super::super::metric::{Metric, Rates};
use super::super::unit::{unit_factor, units_like};
use super::{MetricSpec, Weights, Window, group_of};

/// The keys that accompany a metric.
#[derive(Clone, Debug, Default)]
pub(super) struct Settings {
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
    /// Reads `metric = "word"` with its related keys, or `metrics = [...]`.
    pub(super) fn read_all(
        reader: &mut Reader<'_>,
        node: &Node,
        context: &Context<'_>,
        view: &View,
    ) -> Option<Vec<MetricSpec>> {
        let errors = context.errors;
        let plan = Self::read(reader, node, context, view);
        let many = reader.raw("metrics");
        let one = reader.raw("metric");
        match (one, many) {
            (Some(_), Some(at)) => {
                let error = "a table has `metric` or `metrics`, not both";
                errors.push(Diagnostic::at(&at.span, error).hint("leave one of the two out"));
                None
            }
            (None, None) => reader.need::<Metric>("metric").map(|_| Vec::new()),
            (Some(table), None) if matches!(table.value, Value::Table(_)) => {
                let error = "`metric` is one word; a metric with its own keys belongs in `metrics`";
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
            errors.push(Diagnostic::at(
                at,
                format!("the interval begins at {from} and ends at {to}"),
            ));
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

    /// These settings, with those of the table for missing ones.
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
            let error = format!("{} is not measured in \"{unit}\"", metric.word());
            let hint = suggestion(&unit, "units", &units_like(&plain.unit));
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        };
        let window = match (self.from, self.to) {
            (None, None) => None,
            (Some(from), Some(to)) => Some(Window { from, to }),
            (from, _) => {
                let (has, lacks) = if from.is_some() { ("from", "to") } else { ("to", "from") };
                let at = node.get(has).map_or(&node.span, |n| &n.span);
                errors.push(Diagnostic::at(at, format!("`{has}` needs `{lacks}`")));
                return None;
            }
        };
        self.check_times(metric, window, node, errors)?;
        self.check_averaged(metric, node, errors)?;
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
    /// Checks that averages over runs are asked only of metrics that use nothing but mean rates.
    fn check_averaged(&self, metric: Metric, node: &Node, errors: &DiagnosticSink) -> Option<()> {
        if !self.weights.as_ref().is_some_and(|w| w.averaged) || metric.is_of_mean_rates() {
            return Some(());
        }
        let error = format!("{} has no value for rates averaged over runs", metric.word());
        let hint = "averaged = true is for nru-of-mean, nru-fair-of-means, nru-unfair-of-means \
                    and nru-variation-of-means";
        errors.push(Diagnostic::at(&node.span, error).hint(hint));
        None
    }

    /// Checks windows and changes: those that the metric needs are present, and no others.
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
            let error = format!("{word} has no value for part of a run");
            let hint = "choose from: throughput, goodput, share, jain, recovery-time";
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        if metric.needs_weights() && self.weights.is_none() {
            let error = format!("{word} compares flows with runs of their own protocol");
            let hint = "write weights = { case = \"self\", axis = \"protocol\" }: a case whose \
                        flows \
                        are of one protocol, and its axis that says which";
            let at = node.get("metric").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        if metric.needs_group() && self.group.is_none() {
            let at = node.get("metric").map_or(&node.span, |n| &n.span);
            let error = format!("{word} is measured over the flows of one [[flow]]");
            let hint = "write group = \"name\" next to it";
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        if metric == Metric::Recovery && (window.is_none() || self.epoch.is_none()) {
            let error = "recovery-time needs the change and the interval to compare with";
            let hint = "epoch = \"300 s\" is when the flood ends, from = \"50 s\" and to = \"100 \
                        s\" are an interval before it; level = 0.9 is the part of its rate that \
                        counts as recovered";
            let at = node.get("metric").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        Some(())
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
