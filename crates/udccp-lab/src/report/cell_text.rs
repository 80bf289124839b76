//! The values of a table's cells as HTML, and how they are marked.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::html::{counted, escape};
use crate::analysis::{Agreement, Basis, Cell, TableResult, fixed};
use crate::schema::{MetricSpec, Table};

/// Tables with many columns get smaller cells.
pub(super) fn class_of(columns: usize) -> &'static str {
    if columns > 6 { "results wide" } else { "results" }
}

/// A link to the reason of a cell's difference.
pub(super) fn note_link(number: usize, note: usize) -> String {
    format!("<a class=\"note\" href=\"#why-{number}-{note}\">{note}</a>")
}

/// Joins values; a tuple is put in brackets.
pub(super) fn joined(values: impl Iterator<Item = String>, is_tuple: bool) -> String {
    let values: Vec<String> = values.collect();
    if is_tuple { format!("⟨{}⟩", values.join(", ")) } else { values.join(", ") }
}

pub(super) fn ours(cells: &[&Cell]) -> String {
    if let [cell] = cells
        && cell.ours.mean.is_err()
    {
        let why = cell.undefined.as_deref().unwrap_or("not run yet");
        return format!("<b>–</b><small>{}</small>", escape(why));
    }
    if let [cell] = cells
        && cell.idle
    {
        return "<b>–</b><small>does not run</small>".to_owned();
    }
    let means = cells.iter().map(|c| c.mean().map_or("–".to_owned(), |m| c.print(m)));
    let is_tuple = cells.len() > 1;
    let early = cells.iter().filter(|c| c.is_early()).map(|c| c.basis).reduce(Basis::weaker);
    let interval = if let Some(parts) = spreads(cells) {
        format!(" <i>{parts}</i>")
    } else if cells.iter().all(|c| c.runs() == 0) {
        " <i>not run yet</i>".to_owned()
    } else if early.is_none() && cells.iter().any(|c| c.ours.n == 1) {
        " <i>one run</i>".to_owned()
    } else {
        String::new()
    };
    let mut out = format!("<b>{}</b>{interval}", joined(means, is_tuple));
    if let Some(basis) = early {
        let _ = write!(out, "<small>{}</small>", basis.text());
    }
    for cell in cells.iter().filter(|c| c.without > 0 && c.ours.n > 0) {
        let why = cell.undefined.as_deref().unwrap_or_default();
        let _ = write!(
            out,
            "<small>{} of {} without a value: {}</small>",
            cell.without,
            counted(cell.runs(), "run"),
            escape(why)
        );
    }
    out
}

/// The spreads of the runs, printed after their means; `None` if no cell has more than one run.
fn spreads(cells: &[&Cell]) -> Option<String> {
    let none = || "–".to_owned();
    // If all values have intervals, they share one plus-minus sign.
    if cells.iter().all(|c| c.ours.n == 0 || c.spread.half().is_some()) {
        let halves = cells.iter().map(|c| c.spread.half().map_or_else(none, |h| c.print(h)));
        let halves: Vec<String> = halves.collect();
        let is_any = cells.iter().any(|c| c.spread.half().is_some());
        return is_any.then(|| format!("± {}", halves.join(", ")));
    }
    let parts = cells.iter().map(|c| match c.is_early() {
        true => c.spread.extent(&c.printed(), "± "),
        false => c.spread.text(&c.printed(), "± "),
    });
    let parts: Vec<Option<String>> = parts.collect();
    let is_any = parts.iter().any(Option::is_some);
    let parts: Vec<String> = parts.into_iter().map(|w| w.unwrap_or_else(none)).collect();
    is_any.then(|| parts.join("; "))
}

pub(super) fn published(cell: &Cell) -> String {
    let Some(published) = cell.published else { return "–".to_owned() };
    let Some(value) = published.value else { return "–".to_owned() };
    let stddev =
        published.stddev.map_or_else(String::new, |s| format!(", sd {}", cell.shown.print(s)));
    format!("{}{stddev}", as_published(value, &cell.shown))
}

/// No paper prints more decimals than this after zeros.
const MOST_DECIMALS: usize = 9;

/// As many digits as were published: 45 stays 45, 0.0024 stays 0.0024, an index has two. Values
/// with more digits were computed, by a conversion or by a backend.
pub(super) fn as_published(value: f64, shown: &MetricSpec) -> String {
    let text = value.to_string();
    let decimals = text.split_once('.').map_or("", |(_, digits)| digits);
    let digits = decimals.len();
    if decimals.trim_start_matches('0').len() > MOST_DECIMALS {
        shown.print(value)
    } else if value == 0.0 || value.fract() == 0.0 && value.abs() >= 1.0 {
        text.replace('-', "\u{2212}")
    } else {
        fixed(value, digits.max(shown.digits.min(2)))
    }
}

pub(super) fn severity(agreement: Agreement) -> u8 {
    match agreement {
        Agreement::Alone => 0,
        Agreement::Close | Agreement::LinkLimited | Agreement::Neither => 1,
        Agreement::Missing | Agreement::Unjudged => 2,
        Agreement::InInterval => 3,
        Agreement::Differs => 4,
    }
}

pub(super) fn class_and_sign(agreement: Agreement) -> (&'static str, &'static str) {
    match agreement {
        Agreement::Close => ("close", "✓"),
        Agreement::InInterval => ("inside", "≈"),
        Agreement::Differs => ("differs", "✗"),
        Agreement::LinkLimited | Agreement::Neither => ("alone", "="),
        Agreement::Alone => ("alone", ""),
        Agreement::Missing => ("missing", ""),
        Agreement::Unjudged => ("early", ""),
    }
}

/// A variant's table asks "what if", so its differences need no reason.
pub(super) fn needs_reason(result: &TableResult<'_>, cell: &Cell) -> bool {
    let table = result.table;
    table.variant.is_none() && cell.needs_reason()
}

/// The reference of a table's values.
pub(super) fn measure(table: &Table) -> &str {
    match table.against.as_deref() {
        None => "the published value",
        Some(SIM) => "the simulation",
        Some("emu") => "the emulation",
        Some(id) => backend_title(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Metric;

    #[test]
    fn published_values_keep_their_digits_and_computed_ones_have_those_of_the_metric() {
        let print = |value| as_published(value, &MetricSpec::plain(Metric::Throughput));
        assert_eq!(
            ["45", "0.0024", "0.30994046"].map(|t| print(t.parse().unwrap())),
            ["45", "0.0024", "0.30994046"]
        );
        // 100 s in minutes, and another backend's mean.
        assert_eq!([100.0 / 60.0, -47.123_456_789_012].map(print), ["1.7", "\u{2212}47.1"]);
    }
}
