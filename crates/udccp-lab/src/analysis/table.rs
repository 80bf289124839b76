//! Tables: our mean and interval beside the published value.

use udccp_metrics::Summary;

use super::expected::Expected;
use super::explanation::Reason;
use super::results::Results;
use super::spread::Spread;
use super::value::value;
use crate::protocol::{self, Protocol};
use crate::schema::{
    CASE_AXIS, Case, Experiment, FLOW_KEY, METRIC_KEY, Point, Published, Shown, Table,
};

/// A table filled in.
#[derive(Debug)]
pub struct TableResult<'a> {
    /// Its definition.
    pub table: &'a Table,
    /// Its columns: a label for each key of [`Table::columns`].
    pub columns: Vec<Point>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row.
#[derive(Debug)]
pub struct Row {
    /// A label for each key of [`Table::rows`].
    pub labels: Point,
    /// The protocol that the row is about: its flow's, or the one that a label names.
    pub protocol: Option<&'static Protocol>,
    /// One cell a column; none where the table's cases have no such point.
    pub cells: Vec<Option<Cell>>,
}

/// One cell.
#[derive(Debug)]
pub struct Cell {
    /// Its grid point, and `flow`, `metric` and `case` where the table tells them apart.
    pub labels: Point,
    /// Its metric.
    pub shown: Shown,
    /// The protocol that it is about: its flow's, or the one that a label names.
    pub protocol: Option<&'static Protocol>,
    /// Our runs.
    pub ours: Summary,
    /// How far they lie apart.
    pub spread: Spread,
    /// How many runs have no value.
    pub without: usize,
    /// Why a run has no value, where one has none.
    pub undefined: Option<String>,
    /// The published value.
    pub published: Option<Published>,
    /// How the two compare.
    pub agreement: Agreement,
    /// Why they differ, as far as runs support it.
    pub reasons: Vec<Reason>,
}

/// How our mean compares with the published value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// No run yet.
    Missing,
    /// Nothing was published.
    Alone,
    /// Within the distance that counts as agreement; or neither has a value.
    Close,
    /// Further away, but the published value lies in our 95 % interval.
    InInterval,
    /// Further away; or one has a value and the other says that there is none.
    Differs,
}

impl Row {
    /// What the row is about, in words: `TCP CUBIC (2007), first: DCCP CCID 2`.
    pub fn title(&self) -> String {
        let word = |(key, label): &(String, String)| match (key.as_str(), self.protocol) {
            (FLOW_KEY, Some(p)) => format!("{label}: {}", p.title),
            _ => in_words(key, label),
        };
        self.labels.iter().map(word).collect::<Vec<_>>().join(", ")
    }

    /// The cells that are there.
    pub fn filled(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().flatten()
    }
}

/// A label in words.
pub(crate) fn in_words(key: &str, label: &str) -> String {
    match key {
        FLOW_KEY => format!("{label} flow"),
        _ => protocol::title_of(label).to_owned(),
    }
}

impl Cell {
    /// Our mean less the published value.
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours.mean.ok()? - self.published?.value?)
    }

    /// Whether there is a published value, or a published "–", and runs to compare it with.
    pub fn is_compared(&self) -> bool {
        !matches!(self.agreement, Agreement::Missing | Agreement::Alone)
    }

    /// Whether a reader has to be told why the two differ.
    pub fn needs_reason(&self) -> bool {
        matches!(self.agreement, Agreement::InInterval | Agreement::Differs)
    }

    /// Whether a run supports one of the reasons given.
    pub fn is_explained(&self) -> bool {
        self.reasons.iter().any(|r| r.support.is_some_and(|s| s.counts()))
    }

    /// Our mean as printed with its [`Spread`]; a dash without any.
    pub(crate) fn ours_in_words(&self, plus_minus: &str) -> String {
        let Ok(mean) = self.ours.mean else { return "–".to_owned() };
        self.spread.beside(mean, &self.shown, plus_minus)
    }

    /// How many runs there are, with a value or without.
    pub fn runs(&self) -> usize {
        self.ours.n + self.without
    }

    /// The cell in words: `TCP CUBIC (2007), 50 ms`.
    pub fn title(&self) -> String {
        let words: Vec<String> = self.labels.iter().map(|(key, l)| in_words(key, l)).collect();
        words.join(", ")
    }
}

impl TableResult<'_> {
    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(Row::filled)
    }

    /// The mean of each cell, as something to compare others with; `None` where it was not run.
    pub(super) fn means(&self) -> Vec<(Point, Option<Published>)> {
        let mean = |cell: &Cell| {
            let value = cell.ours.mean.ok();
            (cell.runs() > 0).then_some(Published { value, stddev: None })
        };
        self.cells().map(|cell| (cell.labels.clone(), mean(cell))).collect()
    }

    /// Compares every cell with what another backend found there.
    pub(super) fn hold_against(&mut self, measure: &[(Point, Option<Published>)]) {
        for cell in self.rows.iter_mut().flat_map(|r| &mut r.cells).flatten() {
            let found = measure.iter().find(|(labels, _)| *labels == cell.labels);
            cell.published = found.and_then(|(_, published)| *published);
            let held = (&cell.ours, &cell.spread);
            cell.agreement = agreement(held, cell.without, cell.published, &cell.shown);
        }
    }
}

/// Fills a table with the runs of a variant (`None` is the experiment as it stands).
pub fn tabulate<'a>(
    experiment: &Experiment,
    table: &'a Table,
    results: &Results,
    variant: Option<&str>,
) -> TableResult<'a> {
    let filler = Filler { experiment, table, results, variant, places: places(experiment, table) };
    let columns = table.combinations(&table.columns);
    let mut rows: Vec<Row> = table
        .combinations(&table.rows)
        .into_iter()
        .map(|labels| {
            let cells = columns.iter().map(|column| filler.cell(&labels, column)).collect();
            let mut row = Row { labels, protocol: None, cells };
            row.protocol = row_protocol(&row);
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
    TableResult { table, columns: columns.collect(), rows }
}

/// Every grid point of a table's cases, with the case's name among its labels where it tells.
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

struct Filler<'a, 'e> {
    experiment: &'e Experiment,
    table: &'a Table,
    results: &'a Results,
    variant: Option<&'a str>,
    places: Vec<(&'e Case, Point, Point)>,
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
        if flow.as_ref().is_some_and(|f| !part.flows.contains(f)) {
            return None;
        }
        let mut labels = at.clone();
        labels.extend(flow.iter().map(|f| (FLOW_KEY.to_owned(), f.clone())));
        labels.extend(named(METRIC_KEY).map(|m| (METRIC_KEY.to_owned(), m)));
        Some(self.fill(part, point, labels, shown, flow.as_deref()))
    }

    /// The point that these labels name.
    fn place(&self, labels: &Point) -> Option<&(&Case, Point, Point)> {
        let told = |(key, _): &&(String, String)| key != FLOW_KEY && key != METRIC_KEY;
        self.places.iter().find(|(_, _, at)| labels.iter().filter(told).all(|l| at.contains(l)))
    }

    fn fill(
        &self,
        part: &Case,
        point: &Point,
        labels: Point,
        shown: &Shown,
        flow: Option<&str>,
    ) -> Cell {
        let mut values = Vec::new();
        let (mut without, mut undefined) = (0, None);
        let mut flows = 0;
        let expected = self.expected(point, shown);
        for record in self.results.at(part.id.as_deref(), self.variant, point) {
            flows = flows.max(record.flows.len());
            match value(record, shown, flow, expected.as_ref()) {
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
        let agreement = agreement((&ours, &spread), without, published, shown);
        let (shown, reasons) = (shown.clone(), Vec::new());
        let protocol = self.protocol(part, point, flow);
        Cell {
            labels,
            shown,
            protocol,
            ours,
            spread,
            without,
            undefined,
            published,
            agreement,
            reasons,
        }
    }

    /// What flows get among their own kind at a point, where the metric asks.
    fn expected(&self, point: &Point, shown: &Shown) -> Option<Expected> {
        let weights = shown.weights.as_ref().filter(|_| shown.metric.needs_weights())?;
        let part = self.experiment.part(Some(&weights.case))?;
        // The self-runs are of the same point in all but the axis that names the protocol.
        let here = |own: &Point| {
            own.iter().filter(|(key, _)| *key != weights.axis).all(|(key, label)| {
                point.iter().all(|(other, theirs)| other != key || theirs == label)
            })
        };
        let points: Vec<Point> = part.grid.points().into_iter().filter(here).collect();
        let runs = points.iter().flat_map(|p| self.results.at(part.id.as_deref(), None, p));
        Some(Expected::of(runs, shown.rates))
    }

    /// The protocol of a flow at a point, or the one that a label names.
    fn protocol(
        &self,
        part: &Case,
        point: &Point,
        flow: Option<&str>,
    ) -> Option<&'static Protocol> {
        let Some(flow) = flow else {
            return point.iter().find_map(|(_, label)| protocol::find(label));
        };
        let scenario = part.scenario(point, &[]).ok()?;
        scenario.flows.iter().find(|f| f.name == *flow).map(|f| f.protocol)
    }
}

/// The protocol of a row: that of all its cells, where it tells flows apart, or the one that a
/// label names.
fn row_protocol(row: &Row) -> Option<&'static Protocol> {
    if row.labels.iter().any(|(key, _)| key == FLOW_KEY) {
        let mut found = row.filled().map(|cell| cell.protocol);
        let first = found.next()??;
        return found.all(|p| p == Some(first)).then_some(first);
    }
    row.labels.iter().find_map(|(_, label)| protocol::find(label))
}

fn agreement(
    (ours, spread): (&Summary, &Spread),
    without: usize,
    published: Option<Published>,
    shown: &Shown,
) -> Agreement {
    if ours.n + without == 0 {
        return Agreement::Missing;
    }
    match (ours.mean.ok(), published.map(|p| p.value)) {
        (_, None) => Agreement::Alone,
        (None, Some(None)) => Agreement::Close,
        (None, Some(Some(_))) | (Some(_), Some(None)) => Agreement::Differs,
        (Some(mean), Some(Some(value))) if is_close(mean, value, shown) => Agreement::Close,
        (Some(_), Some(Some(value))) => {
            let inside = |(low, high)| (low..=high).contains(&value);
            if spread.interval().is_some_and(inside) {
                Agreement::InInterval
            } else {
                Agreement::Differs
            }
        }
    }
}

/// Whether two values agree, compared with the digits that are printed.
pub(super) fn is_close(mean: f64, published: f64, shown: &Shown) -> bool {
    let unit = (0..shown.digits).fold(1.0, |unit, _| unit / 10.0);
    let round = |x: f64| (x / unit).round() * unit;
    let distance = (round(mean) - round(published)).abs();
    distance <= shown.close.distance(published) + unit * 1e-6
}
