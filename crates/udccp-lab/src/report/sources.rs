//! Tables with several backends: their values are stacked in each row, published ones first.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::cell_text::{
    class_and_sign, class_of, joined, measure, needs_reason, note_link, ours, published, severity,
};
use super::html::{counted, escape, signed};
use super::table_header::{blocks, head_with, row_heads};
use crate::analysis::{Agreement, Cell, Row, TableResult};

/// The source of a line's numbers.
#[derive(Clone, Copy)]
struct Source<'t, 'a> {
    title: &'t str,
    kind: SourceKind<'t, 'a>,
}

#[derive(Clone, Copy)]
enum SourceKind<'t, 'a> {
    /// A paper.
    Paper,
    /// The simulator, whose differences are explained.
    Sim,
    /// Another backend.
    Other(&'t TableResult<'a>),
}

/// The body of a table. Adds the cells that need a reason to `notes`.
pub(super) fn body<'t>(
    result: &'t TableResult<'_>,
    others: &[(&'t str, &'t TableResult<'_>)],
    number: usize,
    notes: &mut Vec<&'t Cell>,
) -> String {
    let sources = sources(result, others);
    let mut out = String::new();
    for block in blocks(result) {
        let class = class_of(block.len());
        let _ = writeln!(out, "<div class=\"scroll\"><table class=\"{class} sources\">");
        out.push_str(&head_with(result, &block, Some("of")));
        out.push_str("<tbody>\n");
        for (i, row) in result.rows.iter().enumerate() {
            for (line, source) in sources.iter().enumerate() {
                let first = line == 0;
                out.push_str(if first { "<tr class=\"first\">" } else { "<tr>" });
                if first {
                    out.push_str(&row_heads(result, i, sources.len()));
                }
                let _ = write!(out, "<th scope=\"row\" class=\"of\">{}</th>", escape(source.title));
                for group in &block {
                    let row = source.row(row);
                    let found = row.map(|r| group.clone().filter_map(|c| r.cells[c].as_ref()));
                    let cells: Vec<&Cell> = found.map(Iterator::collect).unwrap_or_default();
                    out.push_str(&source.cell(result, &cells, number, notes));
                }
                out.push_str("</tr>\n");
            }
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str(&agreements(result, others));
    out
}

/// Paper, simulator and others, with the table's reference first.
fn sources<'t, 'a>(
    result: &TableResult<'_>,
    others: &[(&'t str, &'t TableResult<'a>)],
) -> Vec<Source<'t, 'a>> {
    let mut sources = Vec::new();
    if result.table.reference.is_some() {
        sources.push(Source { title: "published", kind: SourceKind::Paper });
    }
    sources.push(Source { title: backend_title(SIM), kind: SourceKind::Sim });
    sources.extend(
        others.iter().map(|&(title, table)| Source { title, kind: SourceKind::Other(table) }),
    );
    let measure = result.table.against.as_deref().map(backend_title);
    sources.sort_by_key(|source| Some(source.title) != measure);
    sources
}

impl<'t> Source<'t, '_> {
    /// This source's row with the labels of the given row.
    fn row<'r>(&self, row: &'r Row) -> Option<&'r Row>
    where
        't: 'r,
    {
        match self.kind {
            SourceKind::Paper | SourceKind::Sim => Some(row),
            SourceKind::Other(table) => table.rows.iter().find(|r| r.labels == row.labels),
        }
    }

    fn cell<'c>(
        &self,
        result: &TableResult<'_>,
        cells: &[&'c Cell],
        number: usize,
        notes: &mut Vec<&'c Cell>,
    ) -> String {
        let Some(first) = cells.first() else { return "<td class=\"none\"></td>".to_owned() };
        if matches!(self.kind, SourceKind::Paper) {
            let values = cells.iter().map(|c| published(c));
            return format!("<td class=\"paper\">{}</td>", joined(values, result.table.tuple));
        }
        let worst = cells.iter().map(|c| c.agreement).max_by_key(|a| severity(*a));
        let (class, _) = class_and_sign(worst.unwrap_or(first.agreement));
        let mut out = format!("<td class=\"{class}\">{}", ours(cells));
        if cells.iter().any(|c| c.has_both()) {
            let mut text = Vec::new();
            for cell in cells {
                let (_, sign) = class_and_sign(cell.agreement);
                let mut link = String::new();
                if matches!(self.kind, SourceKind::Sim) && needs_reason(result, cell) {
                    notes.push(cell);
                    link = note_link(number, notes.len());
                }
                text.push(
                    format!("{sign} {}{link}", difference_text(cell)).trim_start().to_owned(),
                );
            }
            let _ = write!(out, " <span class=\"apart\">{}</span>", text.join(", "));
        }
        out.push_str("</td>");
        out
    }
}

/// The distance of a value from its reference, in the printed unit or in percent.
fn difference_text(cell: &Cell) -> String {
    match (cell.difference(), cell.published.and_then(|p| p.value)) {
        (Some(d), Some(value)) if !cell.shown.unit.is_empty() && value.abs() > 0.0 => {
            format!("{} %", signed(100.0 * d / value, 1))
        }
        (Some(d), _) => signed(d, cell.digits()),
        _ => String::new(),
    }
}

/// How often each backend agrees, if there is a reference.
fn agreements(result: &TableResult<'_>, others: &[(&str, &TableResult<'_>)]) -> String {
    let all = core::iter::once((backend_title(SIM), result)).chain(others.iter().copied());
    let text: Vec<String> = all
        .filter_map(|(title, table)| {
            let compared = table.cells().filter(|c| c.is_compared()).count();
            let close = table.cells().filter(|c| c.agreement == Agreement::Close).count();
            (compared > 0).then(|| format!("{title} {close} of {}", counted(compared, "value")))
        })
        .collect();
    if text.is_empty() {
        return String::new();
    }
    let with = measure(result.table);
    format!("<p class=\"runs\">Agree with {}: {}.</p>\n", escape(with), escape(&text.join("; ")))
}
