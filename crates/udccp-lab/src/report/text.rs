//! The tables and verdicts of an experiment as plain text, for a terminal.

use core::fmt::Write as _;

use super::html::signed;
use crate::analysis::{Agreement, Analysis, Cell, Judgement, Row, TableResult};

/// Width of the first column.
const NAME_WIDTH: usize = 26;
/// Width of the others.
const CELL_WIDTH: usize = 15;

/// Tables, claims, and what is open.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let mut out = String::new();
    for table in &analysis.tables {
        out.push_str(&table_text(table));
        out.push('\n');
    }
    for judged in &analysis.claims {
        let (ours, theirs) = (word(&judged.ours), word(&judged.published));
        let _ = writeln!(out, "claim: {}", judged.claim.says);
        let _ = writeln!(out, "  ours {ours} ({})", judged.ours.evidence);
        let _ = writeln!(out, "  paper's own numbers {theirs} ({})", judged.published.evidence);
    }
    let off = || analysis.cells().filter(|c| c.needs_reason());
    let explained = off().filter(|c| c.is_explained()).count();
    if off().next().is_some() {
        let _ = writeln!(
            out,
            "\n{} cells differ from the published value; a run explains {explained} of them (the \
             report says how), the others are unexplained",
            off().count()
        );
    }
    out
}

fn word(judgement: &Judgement) -> &'static str {
    match judgement.holds {
        Some(true) => "holds",
        Some(false) => "FAILS",
        None => "cannot be judged",
    }
}

fn table_text(result: &TableResult<'_>) -> String {
    let metric = result.table.metric;
    let unit = if metric.unit().is_empty() { "" } else { " in " };
    let mut out = format!("{} ({}{unit}{})\n", result.table.title, metric.title(), metric.unit());
    let _ = write!(out, "{:NAME_WIDTH$}", "");
    for column in &result.columns {
        let _ = write!(out, "{column:>CELL_WIDTH$}");
    }
    out.push('\n');
    for row in &result.rows {
        out.push_str(&row_text(result, row));
    }
    out
}

fn row_text(result: &TableResult<'_>, row: &Row) -> String {
    let digits = result.table.metric.digits();
    let pair = row.flow.as_ref().map_or_else(String::new, |_| format!(" / {}", short(&row.label)));
    let name = format!("{}{pair}", row.title());
    let mut out = line(&name, row, |c| ours(c, digits));
    if row.cells.iter().any(|c| c.published.is_some()) {
        out.push_str(&line("  published", row, |c| {
            c.published.map_or_else(String::new, |p| p.value.to_string())
        }));
        out.push_str(&line("  difference", row, |c| difference(c, digits)));
    }
    out
}

/// A protocol's short name, or the label itself.
fn short(label: &str) -> &str {
    crate::protocol::find(label).map_or(label, |p| p.short)
}

fn line(name: &str, row: &Row, cell: impl Fn(&Cell) -> String) -> String {
    let mut out = format!("{name:NAME_WIDTH$}");
    for c in &row.cells {
        let _ = write!(out, "{:>CELL_WIDTH$}", cell(c));
    }
    out.push('\n');
    out
}

fn ours(cell: &Cell, digits: usize) -> String {
    let Ok(mean) = cell.ours.mean else { return "–".to_owned() };
    match cell.ours.ci95 {
        Ok(half) => format!("{mean:.digits$} ±{half:.digits$}"),
        Err(_) => format!("{mean:.digits$}"),
    }
}

fn difference(cell: &Cell, digits: usize) -> String {
    let Some(difference) = cell.difference() else { return String::new() };
    let mark = match cell.agreement {
        Agreement::Close => "ok",
        Agreement::InInterval => "~ ",
        _ => "! ",
    };
    format!("{} {mark}", signed(difference, digits))
}
