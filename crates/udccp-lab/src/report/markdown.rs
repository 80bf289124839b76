//! The tables of an experiment as Markdown, with one line per value and one column per source.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::cell_text::{measure, published};
use super::html::{counted, signed};
use super::table_header::axis_name;
use crate::analysis::{Agreement, Analysis, Basis, Cell, Row, TableResult, label_text};
use crate::schema::{METRIC_KEY, MetricSpec, Point};

/// The backend that runs the simulator's protocol code, so both should agree.
const OURS: &str = "linux-udccp";
/// How closely the two should agree, in percent.
const NEAR_PERCENT: f64 = 5.0;

/// A source of numbers: a backend's id and its results.
type Source<'t, 'a> = (&'t str, &'t TableResult<'a>);

/// The answer, the score, and all printed tables.
pub(super) fn markdown(analysis: &Analysis<'_>) -> String {
    let mut out = super::answers::markdown(analysis);
    out.push_str(&super::score::markdown(analysis));
    for (i, table) in analysis.tables.iter().enumerate().filter(|(_, t)| t.table.is_printed) {
        let others = analysis.others.iter().filter_map(|other| {
            let table = other.tables.get(i)?;
            let is_run = table.cells().any(|c| c.runs() > 0);
            is_run.then_some((other.results.backend.as_str(), table))
        });
        let sources: Vec<Source<'_, '_>> = others.chain([(SIM, table)]).collect();
        out.push_str(&section(table, &sources));
    }
    out
}

fn section(table: &TableResult<'_>, sources: &[Source<'_, '_>]) -> String {
    let metrics: Vec<String> = table.table.shown.iter().map(MetricSpec::title_and_unit).collect();
    let mut out = format!("### {}\n\n{}.", table.table.title, metrics.join("; "));
    let runs = sources.iter().flat_map(|(_, t)| t.cells()).map(Cell::runs).max().unwrap_or(0);
    out.push_str(match runs {
        0 | 1 => " One run each.\n\n",
        2 => " Mean and range of two runs.\n\n",
        _ => " Mean ± half the 95 % interval.\n\n",
    });
    let mut lines = String::new();
    for row in &table.rows {
        for (column, cell) in table.columns.iter().zip(&row.cells) {
            if let Some(cell) = cell {
                lines.push_str(&line(table, sources, row, column, cell));
            }
        }
    }
    if lines.is_empty() {
        out.push_str("No runs yet.\n\n");
        return out;
    }
    out.push_str(&head(table, sources));
    out.push_str(&lines);
    out.push_str(&agreements(table, sources));
    out
}

fn head(table: &TableResult<'_>, sources: &[Source<'_, '_>]) -> String {
    let keys = table.table.rows.iter().chain(&table.table.columns);
    let mut parts: Vec<&str> = keys.map(|key| axis_name(key)).collect();
    let keys = parts.len();
    parts.extend(table.table.reference.is_some().then_some("published"));
    parts.extend(sources.iter().map(|(id, _)| backend_title(id)));
    parts.extend(pair(sources).map(|_| "in Linux − simulated"));
    let rules = (0..parts.len()).map(|i| if i < keys { "---" } else { "---:" });
    format!("| {} |\n|{}|\n", parts.join(" | "), rules.collect::<Vec<_>>().join("|"))
}

/// The line of one value with all sources; empty if none has a run.
fn line(
    table: &TableResult<'_>,
    sources: &[Source<'_, '_>],
    row: &Row,
    column: &Point,
    cell: &Cell,
) -> String {
    let cells: Vec<Option<&Cell>> = sources.iter().map(|(_, t)| find(t, cell)).collect();
    if cells.iter().flatten().all(|c| c.runs() == 0) {
        return String::new();
    }
    let labels = row.labels.iter().chain(column);
    let names = table.names();
    let word = |(key, label): &(String, String)| match key.as_str() {
        METRIC_KEY => cell.shown.title().to_owned(),
        _ => label_text(names, key, label),
    };
    let mut parts: Vec<String> = labels.map(word).collect();
    parts.extend(table.table.reference.as_ref().map(|_| published(cell)));
    parts.extend(cells.iter().map(|c| c.map_or_else(|| "–".to_owned(), |c| c.ours_text("± "))));
    if let Some((real, simulated)) = pair(sources) {
        let found = find(real, cell).zip(find(simulated, cell));
        let apart = found.and_then(|(real, simulated)| difference_text(real, simulated));
        parts.push(apart.map_or_else(|| "–".to_owned(), |(text, _)| text));
    }
    format!("| {} |\n", parts.join(" | "))
}

/// Our protocol code in Linux and in simulation, if both have runs.
fn pair<'t, 'a>(sources: &[Source<'t, 'a>]) -> Option<(&'t TableResult<'a>, &'t TableResult<'a>)> {
    let of = |id| sources.iter().find(|(found, _)| *found == id).map(|(_, table)| *table);
    of(OURS).zip(of(SIM))
}

/// A source's result for the place of a cell.
fn find<'t>(table: &'t TableResult<'_>, cell: &Cell) -> Option<&'t Cell> {
    table.cells().find(|c| c.labels == cell.labels)
}

/// The difference as printed, and in percent.
fn difference_text(real_cell: &Cell, simulated: &Cell) -> Option<(String, f64)> {
    let (real, other) = (real_cell.ours.mean.ok()?, simulated.ours.mean.ok()?);
    // Values that print the same are equal: percentages of nearly zero are meaningless.
    let is_same = real_cell.shown.print(real) == simulated.shown.print(other);
    let percent = if is_same { 0.0 } else { 100.0 * (real - other) / other.abs() };
    let text = match simulated.shown.unit.is_empty() || !percent.is_finite() {
        true => signed(real - other, simulated.shown.digits),
        false => format!("{} %", signed(percent, 1)),
    };
    Some((text, percent.abs()))
}

/// How often each source agrees with the table's reference, and our code in Linux with the
/// simulator.
fn agreements(table: &TableResult<'_>, sources: &[Source<'_, '_>]) -> String {
    let parts: Vec<String> = sources
        .iter()
        .filter_map(|(id, table)| {
            let compared = table.cells().filter(|c| c.is_compared()).count();
            let close = table.cells().filter(|c| c.agreement == Agreement::Close).count();
            let early = table.cells().filter(|c| c.agreement == Agreement::Unjudged);
            let basis = early.map(|c| c.basis).reduce(Basis::weaker);
            let judged = (compared > 0).then(|| format!("{close} of {compared}"));
            let early = basis.map(|b| format!("not judged yet ({})", b.text()));
            let parts: Vec<String> = judged.into_iter().chain(early).collect();
            (!parts.is_empty()).then(|| format!("{} {}", backend_title(id), parts.join(", ")))
        })
        .collect();
    let mut out = String::from("\n");
    if !parts.is_empty() {
        let _ = writeln!(out, "Agree with {}: {}.", measure(table.table), parts.join("; "));
    }
    if let Some((real, simulated)) = pair(sources) {
        let both = real.cells().filter_map(|cell| difference_text(cell, find(simulated, cell)?));
        let percents: Vec<f64> = both.map(|(_, percent)| percent).collect();
        let near = percents.iter().filter(|percent| **percent <= NEAR_PERCENT).count();
        let n = counted(percents.len(), "value");
        let _ = writeln!(
            out,
            "Ours in Linux is within {NEAR_PERCENT} % of ours simulated in {near} of {n}."
        );
    }
    out.push('\n');
    out
}
