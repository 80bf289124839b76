//! Figures of an experiment.

use udccp_base::Duration;
use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, FromNode, Node, Reader, Value};

use super::choice::words;
use super::context::{Context, View};
use super::grid::Filter;
use super::metric::{Metric, Rates};
use super::metric_spec::{MetricSpec, Window};
use super::table::{FLOW_KEY, METRIC_KEY, Table};

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name.
    pub id: String,
    /// Its title.
    pub title: String,
    /// What a reader should see in it.
    pub says: Option<String>,
    /// What it draws.
    pub kind: FigureKind,
}

/// Kinds of figures.
#[derive(Clone, Debug)]
pub enum FigureKind {
    /// A table plotted against one of its keys: our values with intervals, and the published ones.
    Table(TableFigure),
    /// Runs over time.
    Time(Box<TimeFigure>),
    /// A computed curve, without runs.
    Curve(Curve),
}

/// How the values of a table are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// A line per row.
    Lines,
    /// A bar per value.
    Bars,
    /// From the lowest to the highest metric of a point, with the middle one marked.
    Ranges,
}

/// A table as a figure.
#[derive(Clone, Debug)]
pub struct TableFigure {
    /// The table.
    pub table: String,
    /// How it is drawn.
    pub form: TableForm,
    /// The key on the x axis.
    pub x: String,
    /// The key with a panel for each label.
    pub panels: Option<String>,
    /// The cells that are drawn.
    pub filter: Filter,
    /// The metrics of a range: highest, middle (if there is one) and lowest.
    pub range: Vec<String>,
}

words! {
    /// A quantity with a value for every interval of a run.
    TimeMetric, "metric over time":
    /// Wire rate delivered.
    Throughput = "throughput",
    /// Payload rate delivered.
    Goodput = "goodput",
    /// Congestion window in packets.
    Cwnd = "cwnd",
    /// Smoothed round-trip time of the sender.
    Srtt = "srtt",
    /// Allowed rate of a rate-based sender.
    AllowedRate = "allowed-rate",
    /// Loss event rate of a rate-based sender.
    LossEventRate = "loss-event-rate",
    /// Jain's index of the interval.
    Jain = "jain",
}

impl TimeMetric {
    /// Whether each flow has its own.
    pub const fn is_per_flow(self) -> bool {
        !matches!(self, Self::Jain)
    }

    /// Whether a value is of the whole interval, rather than of its end.
    pub const fn is_of_interval(self) -> bool {
        matches!(self, Self::Throughput | Self::Goodput | Self::Jain)
    }

    /// Its unit.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::Throughput | Self::Goodput | Self::AllowedRate => "Mbit/s",
            Self::Cwnd => "packets",
            Self::Srtt => "ms",
            Self::LossEventRate => "%",
            Self::Jain => "",
        }
    }

    /// Its name in a title.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Throughput => Metric::Throughput.title(),
            Self::Goodput => Metric::Goodput.title(),
            Self::Cwnd => "Congestion window",
            Self::Srtt => "Smoothed round-trip time",
            Self::AllowedRate => "Allowed rate",
            Self::LossEventRate => "Loss event rate",
            Self::Jain => Metric::Jain.title(),
        }
    }
}

/// Runs over time.
#[derive(Clone, Debug)]
pub struct TimeFigure {
    /// The cases, with their axes and flows.
    pub view: View,
    /// The quantities; several have a panel each.
    pub metrics: Vec<TimeMetric>,
    /// The rates of which a fairness index is computed.
    pub rates: Rates,
    /// The unit of rates.
    pub unit: Option<String>,
    /// The key with a line for each label: `flow`, an axis, or none.
    pub lines: Option<String>,
    /// The key with a panel for each label.
    pub panels: Option<String>,
    /// The points and flows.
    pub at: Filter,
    /// The run, from 1; `None`: the mean over all runs, with the band in which 90 % of them are.
    pub run: Option<u64>,
    /// Whether starts, stops and changes are marked.
    pub events: bool,
    /// The part of the time that is drawn.
    pub window: Option<Window>,
}

/// A computed curve.
#[derive(Clone, Debug)]
pub struct Curve {
    /// What is computed.
    pub function: CurveFunction,
    /// The parameter's range.
    pub from: f64,
    /// Its end.
    pub to: f64,
    /// The value of the other shares.
    pub fixed: f64,
}

words! {
    /// Functions that a curve can draw.
    CurveFunction, "function of a curve":
    /// Jain's index of two flows, of which one varies.
    JainOfTwo = "jain-of-two",
}

impl Figure {
    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        const KINDS: [&str; 5] = ["table", "bars", "range", "time", "curve"];
        let label = node.get("id").map(Node::label).unwrap_or_default();
        let errors = context.errors;
        let mut reader = Reader::new(node, format!("[[figure]] \"{label}\""), errors)?;
        let id: Option<String> = reader.need("id");
        let title: Option<String> = reader.need("title");
        let says = reader.want("says");
        let kind: String = reader.need("kind")?;
        let kind = match kind.as_str() {
            "table" => TableFigure::read(&mut reader, context, TableForm::Lines),
            "bars" => TableFigure::read(&mut reader, context, TableForm::Bars),
            "range" => TableFigure::read(&mut reader, context, TableForm::Ranges),
            "time" => TimeFigure::read(&mut reader, node, context),
            "curve" => Curve::read(&mut reader, node, errors),
            _ => {
                let span = node.get("kind").map_or(&node.span, |n| &n.span);
                let error = Diagnostic::at(span, format!("\"{kind}\" is not a kind of figure"));
                errors.push(error.hint(suggestion(&kind, "choose from", &KINDS)));
                return None;
            }
        };
        reader.finish();
        Some(Self { id: id?, title: title?, says, kind: kind? })
    }
}

impl TableFigure {
    fn read(reader: &mut Reader<'_>, context: &Context<'_>, form: TableForm) -> Option<FigureKind> {
        let table = context.table(reader);
        let x = reader.raw("x");
        let panels = reader.raw("panels");
        let filter = reader.raw("where");
        let range = match form {
            TableForm::Ranges => [reader.raw("high"), reader.raw("middle"), reader.raw("low")],
            _ => [None; 3],
        };
        let table = table?;
        let keys: Vec<String> = table.columns.iter().chain(&table.rows).cloned().collect();
        let key = |node: Option<&Node>| match node {
            None => Some(None),
            Some(node) => {
                let key = String::from_node(node, context.errors)?;
                context.check_name(&key, "key", &keys, &node.span);
                keys.contains(&key).then_some(Some(key))
            }
        };
        let (x, panels) = (key(x)?, key(panels)?);
        let is_axis = |key: &&String| table.view.grid.axis(key).is_some();
        let is_free = |key: &&String| panels.as_ref() != Some(*key);
        let x = x
            .or_else(|| keys.iter().filter(is_axis).find(is_free).cloned())
            .or_else(|| keys.first().cloned())
            .unwrap_or_default();
        let filter = filter.map(|n| table.filter_of(n, context.errors)).unwrap_or_default();
        let range = read_range(range, form, table, reader, context)?;
        let table = table.id.clone();
        Some(FigureKind::Table(Self { table, form, x, panels, filter, range }))
    }
}

/// The metrics of a range figure: `high`, `middle`, `low`.
fn read_range(
    nodes: [Option<&Node>; 3],
    form: TableForm,
    table: &Table,
    reader: &Reader<'_>,
    context: &Context<'_>,
) -> Option<Vec<String>> {
    if form != TableForm::Ranges {
        return Some(Vec::new());
    }
    let names: Vec<String> = table.shown.iter().map(|s| s.name.clone()).collect();
    if nodes[0].is_none() || nodes[2].is_none() {
        let at = super::context::first_line(reader.span());
        let error = Diagnostic::at(&at, "a range goes from `low` to `high`");
        context.errors.push(error.hint(format!("metrics of the table: {}", names.join(", "))));
        return None;
    }
    let mut range = Vec::new();
    for node in nodes.into_iter().flatten() {
        let name = String::from_node(node, context.errors)?;
        context.check_name(&name, "metric", &names, &node.span);
        range.push(name);
    }
    range.iter().all(|r| names.contains(r)).then_some(range)
}

/// The run of a figure must be one of those of its cases; otherwise it would always be empty.
fn check_run(run: Option<u64>, node: &Node, view: &View, context: &Context<'_>) -> Option<()> {
    let parts = context.parts.iter().filter(|part| view.cases.contains(&part.id));
    let runs = parts.map(|part| part.grid.runs).max().unwrap_or(1);
    let Some(run) = run.filter(|run| !(1..=runs).contains(run)) else { return Some(()) };
    let at = node.get("run").map_or(&node.span, |n| &n.span);
    let error = Diagnostic::at(at, format!("there is no run {run}"));
    context.errors.push(error.hint(format!("runs are numbered from 1, and `runs` is {runs}")));
    None
}

impl TimeFigure {
    fn read(reader: &mut Reader<'_>, node: &Node, context: &Context<'_>) -> Option<FigureKind> {
        let errors = context.errors;
        let view = context.view(reader, true);
        let metrics = read_metrics(reader, errors);
        let rates = reader.or("of", Rates::Goodput);
        let unit: Option<String> = reader.want("unit");
        let lines: Option<String> = reader.want("lines");
        let panels: Option<String> = reader.want("panels");
        let at = reader.raw("at");
        let run: Option<u64> = reader.want("run");
        let mean: Option<bool> = reader.want("mean");
        let events = reader.or("events", true);
        let (from, to) = (reader.want::<Duration>("from"), reader.want::<Duration>("to"));
        let (view, metrics) = (view?, metrics?);
        let at = at.map(|n| Filter::read(n, &view.grid, &view.flows, errors)).unwrap_or_default();
        if mean == Some(true) && run.is_some() {
            let at = node.get("run").map_or(&node.span, |n| &n.span);
            let error = "a figure shows one run or the mean of all";
            errors.push(Diagnostic::at(at, error).hint("leave `run` or `mean` out"));
            return None;
        }
        check_run(run, node, &view, context)?;
        let run = if mean == Some(true) { None } else { Some(run.unwrap_or(1)) };
        let window = from.or(to).map(|_| Window {
            from: from.unwrap_or(Duration::ZERO),
            to: to.unwrap_or(Duration::from_secs(u64::from(u32::MAX))),
        });
        let is_per_flow = metrics.iter().any(|m| m.is_per_flow());
        let lines = lines.or_else(|| {
            let free = panels.as_deref() != Some(FLOW_KEY);
            (is_per_flow && free).then(|| FLOW_KEY.to_owned())
        });
        let panels = panels.or_else(|| (metrics.len() > 1).then(|| METRIC_KEY.to_owned()));
        let figure = Self { view, metrics, rates, unit, lines, panels, at, run, events, window };
        figure.check(node, context)?;
        Some(FigureKind::Time(Box::new(figure)))
    }

    /// Every key has a line, a panel, or one value.
    fn check(&self, node: &Node, context: &Context<'_>) -> Option<()> {
        let span = |key: &str| node.get(key).map_or(&node.span, |n| &n.span);
        let errors = context.errors;
        let mut known = self.view.grid.names();
        if self.metrics.iter().any(|m| m.is_per_flow()) {
            known.push(FLOW_KEY);
        }
        for (place, key) in [("lines", &self.lines), ("panels", &self.panels)] {
            let Some(key) = key else { continue };
            let is_metric = place == "panels" && key == METRIC_KEY && self.metrics.len() > 1;
            if !known.contains(&key.as_str()) && !is_metric {
                let error = Diagnostic::at(span(place), format!("there is no grid axis `{key}`"));
                errors.push(error.hint(suggestion(key, "choose from", &known)));
                return None;
            }
        }
        if self.lines.is_some() && self.lines == self.panels {
            let error = "a key has a line or a panel for each of its values, not both";
            errors.push(Diagnostic::at(span("panels"), error));
            return None;
        }
        if self.metrics.len() > 1 && self.panels.as_deref() != Some(METRIC_KEY) {
            let error = "several metrics need one panel each";
            let hint = "write panels = \"metric\", or make it several figures";
            errors.push(Diagnostic::at(span("panels"), error).hint(hint));
            return None;
        }
        let placed =
            |key: &str| self.lines.as_deref() == Some(key) || self.panels.as_deref() == Some(key);
        for key in known.iter().filter(|k| !placed(k)) {
            let labels = self.labels(key);
            if labels.len() > 1 {
                let error =
                    format!("a line shows one `{key}`, but there are {} here", labels.len());
                let hint = format!(
                    "choose one: at = {{ {key} = \"{}\" }}; or lines = \"{key}\"",
                    labels[0]
                );
                let at = super::context::first_line(&node.span);
                errors.push(Diagnostic::at(&at, error).hint(hint));
                return None;
            }
        }
        self.check_unit(span("unit"), errors)
    }

    fn check_unit(&self, span: &udccp_scenario::Span, errors: &DiagnosticSink) -> Option<()> {
        let Some(unit) = &self.unit else { return Some(()) };
        let has = |m: &TimeMetric| super::unit::unit_factor(m.unit(), unit).is_some();
        if self.metrics.iter().all(has) {
            return Some(());
        }
        let hint = "rates are in Mbit/s, kbit/s, Gbit/s, MB/s, kB/s";
        errors.push(Diagnostic::at(span, format!("not measured in \"{unit}\"")).hint(hint));
        None
    }

    /// The selected labels of a key.
    pub fn labels(&self, key: &str) -> Vec<String> {
        let all = match key {
            METRIC_KEY => self.metrics.iter().map(|m| m.word().to_owned()).collect(),
            _ => match self.view.grid.axis(key) {
                Some(axis) => axis.labels(),
                None if key == FLOW_KEY => self.view.flows.clone(),
                None => Vec::new(),
            },
        };
        all.into_iter().filter(|l| self.at.allows(key, l)).collect()
    }

    /// Factor from a metric's unit to the one that is drawn.
    pub fn factor(&self, metric: TimeMetric) -> f64 {
        let unit = self.unit.as_deref().unwrap_or(metric.unit());
        super::unit::unit_factor(metric.unit(), unit).unwrap_or(1.0)
    }
}

/// Reads `metric = "goodput"` or `metric = ["goodput", "cwnd"]`.
fn read_metrics(reader: &mut Reader<'_>, errors: &DiagnosticSink) -> Option<Vec<TimeMetric>> {
    let Some(node) = reader.raw("metric") else { return Some(vec![TimeMetric::Throughput]) };
    match &node.value {
        Value::List(items) if !items.is_empty() => {
            items.iter().map(|n| TimeMetric::from_node(n, errors)).collect()
        }
        _ => TimeMetric::from_node(node, errors).map(|m| vec![m]),
    }
}

impl Curve {
    fn read(reader: &mut Reader<'_>, node: &Node, errors: &DiagnosticSink) -> Option<FigureKind> {
        let function = reader.need("function");
        let (from, to) = (reader.need::<f64>("from"), reader.need::<f64>("to"));
        let fixed = reader.or("fixed", 1.0);
        let (function, from, to) = (function?, from?, to?);
        if !(from > 0.0 && from < to && fixed > 0.0) {
            let error = "a curve over shares needs `from` above zero and `to` above `from`";
            let at = node.get("from").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, error).hint("for example from = 1, to = 10000"));
            return None;
        }
        Some(FigureKind::Curve(Self { function, from, to, fixed }))
    }
}

impl TableFigure {
    /// The metric of the y axis: the first of those that are drawn.
    pub fn shown<'t>(&self, table: &'t Table) -> Option<&'t MetricSpec> {
        let named = |name: &String| table.shown.iter().find(|s| s.name == *name);
        self.range
            .first()
            .and_then(named)
            .or_else(|| table.shown.iter().find(|s| self.filter.allows(METRIC_KEY, &s.name)))
    }
}
