//! Tables of a page: our values with intervals, published values, differences, reasons.

use core::fmt::Write as _;

use super::cell_text::{
    class_and_sign, class_of, joined, measure, needs_reason, note_link, ours, published, severity,
};
use super::csv;
use super::html::{counted, escape, heading, signed};
use super::reasons::reasons;
use super::sources;
use super::table_header::{blocks, head, row_heads};
use crate::analysis::{Agreement, Basis, Cell, TableResult};
use crate::schema::{MetricSpec, Published};

/// A table with a legend and an explanation of its differences. `others` has the same table from
/// other backends.
pub(super) fn table(
    result: &TableResult<'_>,
    others: &[(&str, &TableResult<'_>)],
    number: usize,
) -> String {
    let definition = result.table;
    let mut out = format!(
        "<section class=\"table\" data-csv=\"{}\">\n{}<p class=\"what\">{}</p>\n",
        escape(&definition.id),
        heading(&definition.id, &definition.title),
        escape(&what(result, !others.is_empty())),
    );
    if let Some(says) = &definition.says {
        let _ = writeln!(out, "<p>{}</p>", escape(says));
    }
    let mut notes: Vec<&Cell> = Vec::new();
    if !others.is_empty() {
        out.push_str(&sources::body(result, others, number, &mut notes));
    }
    let alone = if others.is_empty() { blocks(result) } else { Vec::new() };
    for block in alone {
        let _ = writeln!(out, "<div class=\"scroll\"><table class=\"{}\">", class_of(block.len()));
        out.push_str(&head(result, &block));
        out.push_str("<tbody>\n");
        for (i, row) in result.rows.iter().enumerate() {
            let _ = write!(out, "<tr>{}", row_heads(result, i, 1));
            for group in &block {
                let cells: Vec<&Cell> =
                    group.clone().filter_map(|c| row.cells[c].as_ref()).collect();
                let first = notes.len();
                notes.extend(cells.iter().filter(|c| needs_reason(result, c)));
                out.push_str(&cell_html(result, &cells, number, first));
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div>\n");
    }
    out.push_str(&key(result));
    out.push_str(&reasons(result, number, &notes));
    out.push_str(&csv::hidden(&csv::table(result, others)));
    out.push_str("</section>\n");
    out
}

/// Describes the content of the cells.
fn what(result: &TableResult<'_>, is_several: bool) -> String {
    let table = result.table;
    let metrics: Vec<String> = table.shown.iter().map(MetricSpec::title_and_unit).collect();
    let metrics =
        if table.tuple { format!("⟨{}⟩", metrics.join("; ")) } else { metrics.join("; ") };
    if is_several {
        let compared = match (&table.against, &table.reference) {
            (Some(_), _) => format!(", and the difference from {}", measure(table)),
            (None, Some(_)) => ", and the difference from the published value".to_owned(),
            (None, None) => String::new(),
        };
        return format!("{metrics}: mean ± half the 95 % interval{compared}.");
    }
    let compared =
        if table.reference.is_some() { ", the published value, and the difference" } else { "" };
    format!("{metrics}: our mean ± half the 95 % interval{compared}.")
}

/// One cell; for a tuple, with the values of its metrics.
fn cell_html(result: &TableResult<'_>, cells: &[&Cell], number: usize, notes: usize) -> String {
    let Some(first) = cells.first() else { return "<td class=\"none\"></td>".to_owned() };
    let worst = cells.iter().map(|c| c.agreement).max_by_key(|a| severity(*a));
    let (class, _) = class_and_sign(worst.unwrap_or(first.agreement));
    let mut out = format!("<td class=\"{class}\">{}", ours(cells));
    if cells.iter().any(|c| c.published.is_some()) {
        let values = cells.iter().map(|c| published(c));
        let _ = write!(out, "<small>published {}</small>", joined(values, result.table.tuple));
    }
    if cells.iter().any(|c| c.has_both()) {
        let mut note = notes;
        let differences = cells.iter().map(|cell| {
            note += usize::from(needs_reason(result, cell));
            let link = match needs_reason(result, cell) {
                true => note_link(number, note),
                false => String::new(),
            };
            let (_, sign) = class_and_sign(cell.agreement);
            format!("{sign} {}{link}", difference(cell)).trim_start().to_owned()
        });
        let differences: Vec<String> = differences.collect();
        let _ = write!(out, "<span class=\"diff\">{}</span>", differences.join(", "));
    }
    out.push_str("</td>");
    out
}

fn difference(cell: &Cell) -> String {
    match (cell.difference(), cell.agreement) {
        (Some(d), _) => signed(d, cell.digits()),
        (None, Agreement::Neither) => "neither".to_owned(),
        (None, Agreement::Differs) if cell.ours.mean.is_ok() => "ours has a value".to_owned(),
        (None, Agreement::Differs) => "ours has none".to_owned(),
        _ => String::new(),
    }
}

/// The legend of colours and signs, with how often each occurs.
fn key(result: &TableResult<'_>) -> String {
    let distances = tolerances(result);
    let measure = measure(result.table);
    let further = match &result.table.variant {
        None => "further away: explained below by a run, or unexplained",
        Some(_) => "further away",
    };
    let meanings = [
        (Agreement::Close, format!("near {measure}: within {distances}")),
        (Agreement::InInterval, format!("further away, with {measure} inside our 95 % interval")),
        (Agreement::Differs, further.to_owned()),
        (
            Agreement::LinkLimited,
            format!("near {measure}, where one flow fills its link: does not count"),
        ),
        (Agreement::Neither, "neither has a value: does not count".to_owned()),
        (Agreement::Unjudged, unjudged_text(result)),
        (Agreement::Missing, "not run yet".to_owned()),
    ];
    let count = |a| result.cells().filter(|c| c.agreement == a).count();
    let mut out = String::from("<ul class=\"key\">");
    for (agreement, meaning) in meanings {
        let n = count(agreement);
        if n > 0 {
            let (class, sign) = class_and_sign(agreement);
            let _ = write!(
                out,
                "<li><span class=\"swatch {class}\">{sign}</span>{}: {}</li>",
                escape(meaning.trim()),
                counted(n, "value")
            );
        }
    }
    let alone = count(Agreement::Alone);
    if result.table.reference.is_none() && result.cells().any(Cell::is_early) {
        let parts = unjudged_text(result);
        let _ = write!(out, "<li><span class=\"swatch early\"></span>{parts}</li>");
    }
    if alone > 0 && result.table.reference.is_some() {
        let _ = write!(
            out,
            "<li><span class=\"swatch alone\"></span>nothing was published: {}</li>",
            counted(alone, "value")
        );
    }
    out.push_str("</ul>\n");
    out
}

/// Why cells are not judged yet.
fn unjudged_text(result: &TableResult<'_>) -> String {
    let early = result.cells().filter(|c| c.is_early()).map(|c| c.basis);
    let parts = early.reduce(Basis::weaker).map_or_else(String::new, Basis::text);
    format!("not judged yet ({parts})")
}

/// The tolerance of each metric that has its own.
fn tolerances(result: &TableResult<'_>) -> String {
    let published = || result.cells().filter_map(|c| c.published);
    let is_sure = |p: &Published| p.value.is_none() || p.two_standard_errors().is_some();
    if published().any(|p| p.two_standard_errors().is_some()) {
        let rest = match published().all(|p| is_sure(&p)) {
            true => String::new(),
            false => {
                format!(
                    ", or {} where no deviation was published",
                    stated_tolerances(&result.table.shown)
                )
            }
        };
        return format!("two standard errors of the published mean{rest}");
    }
    stated_tolerances(&result.table.shown)
}

/// The tolerance in the file of each metric that has its own.
fn stated_tolerances(shown: &[MetricSpec]) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for shown in shown {
        let parts = shown.close.text(&shown.unit);
        match groups.iter_mut().find(|(known, _)| *known == parts) {
            Some((_, titles)) => titles.push(shown.title()),
            None => groups.push((parts, vec![shown.title()])),
        }
    }
    if let [(parts, _)] = groups.as_slice() {
        return parts.clone();
    }
    let group = |(parts, titles): &(String, Vec<&str>)| format!("{parts} ({})", titles.join(", "));
    groups.iter().map(group).collect::<Vec<_>>().join(", ")
}
