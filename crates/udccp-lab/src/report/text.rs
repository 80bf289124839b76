//! The tables and verdicts of an experiment as plain text, for a terminal.

use core::fmt::Write as _;

use super::cell_text::as_published;
use super::html::{counted, signed};
use super::tally::Tally;
use crate::analysis::{
    Agreement, Analysis, Basis, Cell, JudgedClaim, Judgement, Row, TableResult, label_text,
};
use crate::schema::MetricSpec;

/// Width of the first column.
const NAME_WIDTH: usize = 26;
/// Minimum width of the other columns.
const CELL_WIDTH: usize = 15;

/// Tables, claims, and open points.
pub(super) fn text(analysis: &Analysis<'_>) -> String {
    let mut out = String::new();
    let tables = analysis.tables.iter().enumerate();
    for (i, table) in tables.filter(|(_, t)| t.table.is_printed) {
        out.push_str(&table_text(table, &analysis.others_of(i)));
        out.push('\n');
    }
    for (i, judged) in analysis.claims.iter().enumerate() {
        let _ = writeln!(out, "claim: {}", judged.claim.says);
        let _ = writeln!(out, "  {} {}", analysis.ours(), verdict(&judged.ours));
        for other in &analysis.others {
            if let Some(JudgedClaim { ours, .. }) = other.claims.get(i)
                && (ours.holds.is_some() || ours.early.is_some())
            {
                let _ = writeln!(out, "  {} {}", other.title, verdict(ours));
            }
        }
        if judged.published.holds.is_some() {
            let _ = writeln!(out, "  paper's own numbers {}", verdict(&judged.published));
        }
    }
    out.push_str(&super::score::text(analysis));
    for other in analysis.others.iter().filter(|other| !other.results.kept.is_empty()) {
        let kept = counted(other.results.kept.len(), "run");
        let _ = writeln!(out, "{kept} of {} came with the experiment's file", other.title);
    }
    let tally = Tally::of(analysis);
    if let Some(early) = tally.unjudged_text() {
        let id = &analysis.experiment.id;
        let _ = writeln!(out, "\n{early}: `udccp lab run {id}` does all runs of the file");
    }
    let Tally { off, explained, measure, .. } = tally;
    if off > 0 {
        let _ = writeln!(
            out,
            "\n{off} cells differ from {measure}; a run explains {explained} of them \
             (the report says how), the others are unexplained"
        );
    }
    out
}

fn verdict(judgement: &Judgement) -> String {
    let word = match judgement.holds {
        Some(true) => "holds",
        Some(false) => "FAILS",
        None if judgement.early.is_some() => return judgement.evidence.clone(),
        None => "cannot be judged",
    };
    format!("{word} ({})", judgement.evidence)
}

fn table_text(result: &TableResult<'_>, others: &[(&str, &TableResult<'_>)]) -> String {
    let metrics: Vec<String> = result.table.shown.iter().map(MetricSpec::title_and_unit).collect();
    let early = result.cells().filter(|c| c.is_early()).map(|c| c.basis).reduce(Basis::weaker);
    let early = early.map_or_else(String::new, |b| format!(" [not judged yet: {}]", b.text()));
    let mut out = format!("{} ({}){early}\n", result.table.title, metrics.join("; "));
    let longest = result.rows.iter().map(|r| r.title().chars().count()).max().unwrap_or(0);
    let width = NAME_WIDTH.max(longest + 2);
    let widths = widths(result, others);
    for level in 0..result.table.columns.len() {
        let _ = write!(out, "{:width$}", "");
        for (column, cell_width) in result.columns.iter().zip(&widths) {
            let (key, label) = &column[level];
            let label = label_text(result.names(), key, label);
            let _ = write!(out, "{label:>cell_width$}");
        }
        out.push('\n');
    }
    for row in &result.rows {
        out.push_str(&line(&format!("{:width$}", row.title()), &widths, row, ours));
        let is_compared = row.filled().any(|c| c.published.is_some());
        if is_compared {
            if result.table.against.is_none() {
                out.push_str(&line(&format!("{:width$}", "  published"), &widths, row, published));
            }
            out.push_str(&line(&format!("{:width$}", "  difference"), &widths, row, difference));
        }
        for (title, other) in others {
            let Some(row) = other.rows.iter().find(|r| r.labels == row.labels) else { continue };
            let title = format!("  {title}");
            out.push_str(&line(&format!("{title:width$}"), &widths, row, ours));
            if row.filled().any(Cell::has_both) {
                let name = format!("{:width$}", "  difference");
                out.push_str(&line(&name, &widths, row, difference));
            }
        }
    }
    out
}

/// The width of each column: that of its longest cell.
fn widths(result: &TableResult<'_>, others: &[(&str, &TableResult<'_>)]) -> Vec<usize> {
    let of = |i: usize| {
        let all = core::iter::once(result).chain(others.iter().map(|(_, other)| *other));
        let cells = all.flat_map(|t| &t.rows).filter_map(|r| r.cells.get(i)?.as_ref());
        let texts = cells.flat_map(|c| [ours(c), published(c), difference(c)]);
        let names = result.names();
        let labels = result.columns[i].iter().map(|(key, label)| label_text(names, key, label));
        texts.chain(labels).map(|t| t.chars().count() + 2).max().unwrap_or(0).max(CELL_WIDTH)
    };
    (0..result.columns.len()).map(of).collect()
}

fn line(name: &str, widths: &[usize], row: &Row, cell: impl Fn(&Cell) -> String) -> String {
    let mut out = name.to_owned();
    for (c, width) in row.cells.iter().zip(widths) {
        let _ = write!(out, "{:>width$}", c.as_ref().map_or_else(String::new, &cell));
    }
    out.push('\n');
    out
}

fn ours(cell: &Cell) -> String {
    cell.ours_text("±")
}

fn published(cell: &Cell) -> String {
    let Some(published) = cell.published else { return String::new() };
    published.value.map_or_else(|| "–".to_owned(), |v| as_published(v, &cell.shown))
}

fn difference(cell: &Cell) -> String {
    let mark = match cell.agreement {
        Agreement::Close => "ok",
        // These agree, but are not scored.
        Agreement::LinkLimited | Agreement::Neither => "= ",
        Agreement::InInterval => "~ ",
        Agreement::Differs => "! ",
        Agreement::Unjudged => "  ",
        Agreement::Missing | Agreement::Alone => return String::new(),
    };
    let difference = cell.difference().map_or_else(String::new, |d| signed(d, cell.digits()));
    format!("{difference} {mark}")
}
