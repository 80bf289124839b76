//! Tables: our mean and interval beside the published value.

use udccp_metrics::Summary;

use super::explanation::Reason;
use super::results::Results;
use super::value::value;
use crate::protocol::{self, Protocol};
use crate::schema::{Experiment, Point, Published, Table};

/// A table filled in.
#[derive(Debug)]
pub struct TableResult<'a> {
    /// Its definition.
    pub table: &'a Table,
    /// Labels of the columns.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A row: one value of the row axis, and one flow where the metric is a flow's.
#[derive(Debug)]
pub struct Row {
    /// The value of the row axis.
    pub label: String,
    /// The flow.
    pub flow: Option<String>,
    /// The protocol that the row is about: the flow's, or the one that its label names.
    pub protocol: Option<&'static Protocol>,
    /// One cell a column.
    pub cells: Vec<Cell>,
}

/// One cell.
#[derive(Debug)]
pub struct Cell {
    /// Its grid point, and the flow under the name `flow` where there is one.
    pub labels: Point,
    /// Our runs.
    pub ours: Summary,
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
    /// No run yet, or no value.
    Missing,
    /// Nothing was published.
    Alone,
    /// Within the distance that counts as agreement.
    Close,
    /// Further away, but the published value lies in our 95 % interval.
    InInterval,
    /// Further away.
    Differs,
}

impl Row {
    /// What the row is about, in words.
    pub fn title(&self) -> String {
        self.protocol.map_or_else(|| self.label.clone(), |p| p.title.to_owned())
    }
}

impl Cell {
    /// Our mean less the published value.
    pub fn difference(&self) -> Option<f64> {
        Some(self.ours.mean.ok()? - self.published?.value)
    }

    /// Whether a reader has to be told why the two differ.
    pub fn needs_reason(&self) -> bool {
        matches!(self.agreement, Agreement::InInterval | Agreement::Differs)
    }

    /// Whether a run supports one of the reasons given.
    pub fn is_explained(&self) -> bool {
        self.reasons.iter().any(|r| r.support.is_some_and(|s| s.counts()))
    }
}

impl TableResult<'_> {
    /// All cells.
    pub fn cells(&self) -> impl Iterator<Item = &Cell> {
        self.rows.iter().flat_map(|r| &r.cells)
    }
}

/// Fills a table with the runs of a variant (`None` is the experiment as it stands).
pub fn tabulate<'a>(
    experiment: &Experiment,
    table: &'a Table,
    results: &Results,
    variant: Option<&str>,
) -> TableResult<'a> {
    let view = &table.view;
    let labels = |axis: &str| view.grid.axis(axis).map(|a| a.labels()).unwrap_or_default();
    let flows: Vec<Option<String>> = if table.metric.is_per_flow() {
        view.flows.iter().cloned().map(Some).collect()
    } else {
        vec![None]
    };
    let points: Vec<Point> =
        view.grid.points().into_iter().filter(|p| table.filter.matches(p)).collect();
    let columns: Vec<String> = labels(&table.columns)
        .into_iter()
        .filter(|c| points.iter().any(|p| has(p, &table.columns, c)))
        .collect();
    let mut rows = Vec::new();
    for label in labels(&table.rows) {
        for flow in &flows {
            let at = |column: &String| {
                let here =
                    |p: &&Point| has(p, &table.rows, &label) && has(p, &table.columns, column);
                let point = points.iter().find(here)?;
                Some(cell(table, results, variant, point, flow.as_deref()))
            };
            let cells: Vec<Cell> = columns.iter().filter_map(at).collect();
            if !cells.is_empty() {
                let protocol = protocol(experiment, table, &cells, &label, flow.as_deref());
                rows.push(Row { label: label.clone(), flow: flow.clone(), protocol, cells });
            }
        }
    }
    TableResult { table, columns, rows }
}

fn protocol(
    experiment: &Experiment,
    table: &Table,
    cells: &[Cell],
    label: &str,
    flow: Option<&str>,
) -> Option<&'static Protocol> {
    let Some(flow) = flow else { return protocol::find(label) };
    let part = experiment.part(table.view.cases.first()?.as_deref())?;
    let point = part.grid.on_axes(&cells.first()?.labels);
    let scenario = part.scenario(&point, &[], false).ok()?;
    scenario.flows.iter().find(|f| f.name == flow).map(|f| f.protocol)
}

fn has(point: &Point, axis: &str, label: &str) -> bool {
    point.iter().any(|(name, value)| name == axis && value == label)
}

fn cell(
    table: &Table,
    results: &Results,
    variant: Option<&str>,
    point: &Point,
    flow: Option<&str>,
) -> Cell {
    let mut values = Vec::new();
    let mut undefined = None;
    let case = table.view.cases.first().and_then(|c| c.as_deref());
    for record in results.at(case, variant, point) {
        match value(record, table.metric, table.rates, flow) {
            Ok(value) => values.push(value),
            Err(why) => undefined = Some(why),
        }
    }
    let ours = Summary::of(&values);
    let published = table.reference.as_ref().and_then(|r| r.lookup(point, flow));
    let agreement = agreement(&ours, published, table);
    let mut labels = point.clone();
    labels.extend(flow.map(|f| ("flow".to_owned(), f.to_owned())));
    Cell { labels, ours, undefined, published, agreement, reasons: Vec::new() }
}

fn agreement(ours: &Summary, published: Option<Published>, table: &Table) -> Agreement {
    let Ok(mean) = ours.mean else { return Agreement::Missing };
    let Some(published) = published else { return Agreement::Alone };
    if is_close(mean, published.value, table) {
        return Agreement::Close;
    }
    let inside = |(low, high)| (low..=high).contains(&published.value);
    if ours.interval().is_some_and(inside) { Agreement::InInterval } else { Agreement::Differs }
}

/// Whether two values agree, compared with the digits that are printed.
pub(super) fn is_close(mean: f64, published: f64, table: &Table) -> bool {
    let unit = 10_f64.powi(-(table.metric.digits() as i32));
    let round = |x: f64| (x / unit).round() * unit;
    (round(mean) - round(published)).abs() <= table.close + unit * 1e-6
}
