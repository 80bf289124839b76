//! Fills tables with the results of an experiment's runs.

use std::borrow::Cow;

use udccp_metrics::Summary;
use udccp_scenario::Record;
use udccp_scenario::protocol::{self, Protocol};

use super::averaged::averaged;
use super::basis::Basis;
use super::cell::{Cell, agreement};
use super::expected::Expected;
use super::labels::{label_text, own_name};
use super::results::Results;
use super::spread::Spread;
use super::value::value;
use crate::schema::{
    CASE_AXIS, Case, Experiment, FLOW_KEY, METRIC_KEY, MetricSpec, Names, Point, Published,
    Scenario, Table, Variant,
};

/// A link that transmits this much of the time is full, in percent.
const FULL_PERCENT: f64 = 98.0;

/// A table with its results.
#[derive(Debug)]
pub struct TableResult<'a> {
    /// Its definition.
    pub table: &'a Table,
    /// Its columns: a label for each key of [`Table::columns`].
    pub columns: Vec<Point>,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Names of its labels.
    names: Names,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// A label for each key of [`Table::rows`].
    pub labels: Point,
    /// Its protocol: that of its flow, or one that a label names; `None` if there is none.
    pub protocol: Option<&'static Protocol>,
    /// One cell per column; `None` if the table's cases have no such point.
    pub cells: Vec<Option<Cell>>,
    /// Names of its labels.
    names: Names,
}
impl Row {
    /// What the row is about, in words: `TCP CUBIC (2007), first: DCCP CCID 2`.
    pub fn title(&self) -> String {
        let word = |(key, label): &(String, String)| match (key.as_str(), self.protocol) {
            (FLOW_KEY, Some(p)) => match own_name(&self.names, label, p.title) {
                Some(name) => format!("{name}: {}", p.title),
                None => p.title.to_owned(),
            },
            _ => label_text(&self.names, key, label),
        };
        self.labels.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The cells that exist.
    pub fn filled(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().flatten()
    }
}

impl TableResult<'_> {
    /// Names of its labels. In a variant that runs another protocol than the one a label names, the
    /// label has that protocol's title.
    pub(crate) const fn names(&self) -> &Names {
        &self.names
    }

    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(Row::filled)
    }

    /// The mean of each cell as a reference for others; `None` if it was not run.
    pub(super) fn means(&self) -> Vec<(Point, Basis, Option<Published>)> {
        let mean = |cell: &Cell| {
            let value = cell.ours.mean.ok();
            (cell.runs() > 0).then_some(Published::value(value))
        };
        self.cells().map(|cell| (cell.labels.clone(), cell.basis, mean(cell))).collect()
    }

    /// Compares every cell with the result of another backend.
    pub(super) fn compare_with(&mut self, measure: &[(Point, Basis, Option<Published>)]) {
        for cell in self.rows.iter_mut().flat_map(|r| &mut r.cells).flatten() {
            let found = measure.iter().find(|(labels, ..)| *labels == cell.labels);
            cell.published = found.and_then(|(.., published)| *published);
            let weaker = found.map_or(cell.basis, |(_, basis, _)| cell.basis.weaker(*basis));
            let held = (&cell.ours, &cell.spread);
            let found = agreement(held, cell.without, weaker, cell.published, &cell.shown);
            cell.agreement = found.on_link(cell.fills_link);
        }
    }
}

/// Fills a table with the runs of a variant (`None`: the experiment without variants).
pub fn tabulate<'a>(
    experiment: &Experiment,
    table: &'a Table,
    results: &Results,
    variant: Option<&str>,
) -> TableResult<'a> {
    let variant = variant.and_then(|id| experiment.variants.iter().find(|v| v.id == id));
    let places = places(experiment, table);
    let replacements = variant.map_or_else(Vec::new, |v| replacements(v, &places));
    let mut names = table.view.names.clone();
    for (label, protocol) in &replacements {
        names = names.with(label, protocol.title);
    }
    let filler = Filler { experiment, table, results, variant, places, names: &names };
    let columns = table.combinations(&table.columns);
    let mut rows: Vec<Row> = table
        .combinations(&table.rows)
        .into_iter()
        .map(|labels| {
            let cells = columns.iter().map(|column| filler.cell(&labels, column)).collect();
            let mut row = Row { labels, protocol: None, cells, names: names.clone() };
            row.protocol = row_protocol(&row, &replacements);
            row
        })
        .filter(|row| row.filled().next().is_some())
        .collect();
    let is_used = |i: usize| rows.iter().any(|r| r.cells[i].is_some());
    let used: Vec<bool> = (0..columns.len()).map(is_used).collect();
    let keep = |i: &usize| used[*i];
    for row in &mut rows {
        let cells = core::mem::take(&mut row.cells).into_iter().enumerate();
        row.cells = cells.filter(|(i, _)| keep(i)).map(|(_, c)| c).collect();
    }
    let columns = columns.into_iter().enumerate().filter(|(i, _)| keep(i)).map(|(_, c)| c);
    TableResult { table, columns: columns.collect(), rows, names }
}

/// Every grid point of a table's cases, with the case among its labels if the table distinguishes
/// cases.
fn places<'e>(experiment: &'e Experiment, table: &Table) -> Vec<(&'e Case, Point, Point)> {
    let mut places = Vec::new();
    for case in &table.view.cases {
        let Some(part) = experiment.part(case.as_deref()) else { continue };
        for point in part.grid.points() {
            let mut labels = point.clone();
            if table.view.cases.len() > 1 {
                labels.extend(case.iter().map(|id| (CASE_AXIS.to_owned(), id.clone())));
            }
            if table.filter.allows_all(&labels) {
                places.push((part, point, labels));
            }
        }
    }
    places
}

/// A protocol that a label names, and the one that a variant runs in its place.
type Replacement = (String, &'static Protocol);

/// The protocols of an axis that a variant replaces.
fn replacements(variant: &Variant, places: &[(&Case, Point, Point)]) -> Vec<Replacement> {
    let mut found: Vec<Replacement> = Vec::new();
    for (part, point, _) in places.iter().filter(|(part, ..)| part.id == variant.case) {
        let named = point.iter().find(|(_, label)| protocol::find(label).is_some());
        let Some((_, label)) = named else { continue };
        if found.iter().any(|(known, _)| known == label) {
            continue;
        }
        let scenario = |changes| part.scenario(point, changes).ok();
        let (Some(plain), Some(changed)) = (scenario(&[]), scenario(&variant.changes)) else {
            continue;
        };
        let pairs = plain.flows.iter().zip(&changed.flows).map(|(a, b)| (a.protocol, b.protocol));
        let own = protocol::find(label);
        let other = pairs.filter(|(a, b)| Some(*a) == own && a != b).map(|(_, b)| b).next();
        found.extend(other.map(|protocol| (label.clone(), protocol)));
    }
    found
}

struct Filler<'a, 'e> {
    experiment: &'e Experiment,
    table: &'a Table,
    results: &'a Results,
    variant: Option<&'e Variant>,
    places: Vec<(&'e Case, Point, Point)>,
    names: &'a Names,
}

impl Filler<'_, '_> {
    fn cell(&self, row: &Point, column: &Point) -> Option<Cell> {
        let labels: Point = row.iter().chain(column).cloned().collect();
        let (part, point, at) = self.place(&labels)?;
        let shown = self.table.shown_at(&labels)?;
        let named = |key: &str| labels.iter().find(|(k, _)| k == key).map(|(_, l)| l.clone());
        let flow = match shown.metric.is_per_flow() {
            true => Some(named(FLOW_KEY).or_else(|| self.table.labels(FLOW_KEY).pop())?),
            false => None,
        };
        let changes = self.variant.map_or(&[][..], |v| &v.changes);
        let scenario = part.scenario(point, changes).ok();
        let has = |flow: &String| match &scenario {
            Some(scenario) => scenario.flows.iter().any(|f| f.name == *flow),
            None => part.flows.contains(flow),
        };
        if !flow.as_ref().is_none_or(has) {
            return None;
        }
        let mut labels = at.clone();
        labels.extend(flow.iter().map(|f| (FLOW_KEY.to_owned(), f.clone())));
        labels.extend(named(METRIC_KEY).map(|m| (METRIC_KEY.to_owned(), m)));
        Some(self.fill((part, point, scenario.as_ref()), labels, shown, flow.as_deref()))
    }

    /// The point that these labels name.
    fn place(&self, labels: &Point) -> Option<&(&Case, Point, Point)> {
        let told = |(key, _): &&(String, String)| key != FLOW_KEY && key != METRIC_KEY;
        self.places.iter().find(|(_, _, at)| labels.iter().filter(told).all(|l| at.contains(l)))
    }

    fn fill(
        &self,
        (part, point, scenario): (&Case, &Point, Option<&Scenario>),
        labels: Point,
        shown: &MetricSpec,
        flow: Option<&str>,
    ) -> Cell {
        let mut values = Vec::new();
        let (mut without, mut undefined) = (0, None);
        let mut flows = 0;
        let (expected, basis) = self.expected(part, point, shown);
        let variant = self.variant.map(|v| v.id.as_str());
        for record in self.records(part, point, shown) {
            flows = flows.max(record.flows.len());
            match value(&record, shown, flow, expected.as_ref()) {
                Ok(value) => values.push(value * shown.factor),
                Err(why) => {
                    without += 1;
                    undefined = Some(why);
                }
            }
        }
        let ours = Summary::of(&values);
        let published = self.table.reference.as_ref().and_then(|r| r.lookup(&labels));
        let spread = Spread::of(&ours, shown.bounds(flows));
        let runs = || self.results.at(part.id.as_deref(), variant, point);
        let fills_link = shown.metric.is_of_one_link() && runs().all(fills_link);
        let agreement = agreement((&ours, &spread), without, basis, published, shown);
        let agreement = agreement.on_link(fills_link);
        let is_zero = ours.mean.is_ok_and(|mean| mean.abs() < f64::MIN_POSITIVE);
        Cell {
            labels,
            place: (part.id.clone(), point.clone()),
            protocol: protocol(scenario, point, flow),
            idle: is_zero && scenario.is_some_and(|s| !runs_in(s, shown, flow)),
            shown: shown.clone(),
            ours,
            spread,
            basis,
            without,
            undefined,
            published,
            fills_link,
            agreement,
            reasons: Vec::new(),
            agreeing_backend: None,
            names: self.names.clone(),
        }
    }

    /// The runs at a point, or their average if the metric is of averages.
    fn records<'p>(
        &'p self,
        part: &'p Case,
        point: &'p Point,
        shown: &MetricSpec,
    ) -> Vec<Cow<'p, Record>> {
        let variant = self.variant.map(|v| v.id.as_str());
        let runs = self.results.at(part.id.as_deref(), variant, point);
        match shown.weights.as_ref().is_some_and(|w| w.averaged) {
            true => averaged(runs).map(Cow::Owned).into_iter().collect(),
            false => runs.map(Cow::Borrowed).collect(),
        }
    }

    /// What flows get among their own kind at a point, if the metric needs it, and the runs on
    /// which the value then depends.
    fn expected(
        &self,
        part: &Case,
        point: &Point,
        shown: &MetricSpec,
    ) -> (Option<Expected>, Basis) {
        let of = |part: &Case, variant, point: &Point| {
            Basis::at(self.experiment, self.results, part, variant, point)
        };
        let basis = of(part, self.variant.map(|v| v.id.as_str()), point);
        let weights = shown.weights.as_ref().filter(|_| shown.metric.needs_weights());
        let found = weights.and_then(|w| Some((w, self.experiment.part(Some(&w.case))?)));
        let Some((weights, part)) = found else { return (None, basis) };
        let here = |own: &Point| weights.is_at(own, point);
        let points: Vec<Point> = part.grid.points().into_iter().filter(here).collect();
        let basis = points.iter().fold(basis, |weakest, p| weakest.weaker(of(part, None, p)));
        let runs = points.iter().flat_map(|p| self.results.at(part.id.as_deref(), None, p));
        (Some(Expected::of(runs, shown.rates, weights.times)), basis)
    }
}

/// The protocol of a flow at a point, or the one that a label names.
fn protocol(
    scenario: Option<&Scenario>,
    point: &Point,
    flow: Option<&str>,
) -> Option<&'static Protocol> {
    match flow {
        None => point.iter().find_map(|(_, label)| protocol::find(label)),
        Some(flow) => scenario?.flows.iter().find(|f| f.name == *flow).map(|f| f.protocol),
    }
}

/// Whether a flow runs during the time of a value.
fn runs_in(scenario: &Scenario, shown: &MetricSpec, flow: Option<&str>) -> bool {
    let found = flow.and_then(|name| scenario.flows.iter().find(|f| f.name == name));
    let (Some(flow), Some(window)) = (found, shown.window) else { return true };
    flow.start < window.to && flow.stop.is_none_or(|stop| stop > window.from)
}

/// The protocol of a row: that of all its cells if it distinguishes flows, or one that a label
/// names.
fn row_protocol(row: &Row, replacements: &[Replacement]) -> Option<&'static Protocol> {
    if row.labels.iter().any(|(key, _)| key == FLOW_KEY) {
        let mut found = row.filled().map(|cell| cell.protocol);
        let first = found.next()??;
        return found.all(|p| p == Some(first)).then_some(first);
    }
    let replacement = |label: &String| replacements.iter().find(|(known, _)| known == label);
    row.labels.iter().find_map(|(_, label)| {
        replacement(label).map_or_else(|| protocol::find(label), |(_, protocol)| Some(*protocol))
    })
}

/// Whether the only flow of a run fills the link.
fn fills_link(record: &Record) -> bool {
    let utilisation = record.system.utilisation_percent;
    record.flows.len() == 1 && utilisation.is_some_and(|percent| percent >= FULL_PERCENT)
}
