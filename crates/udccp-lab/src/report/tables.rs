//! Tables of a page: ours with its interval, the published value, the difference, the reasons.

use core::fmt::Write as _;

use super::figures::axis_name;
use super::html::{counted, escape, signed};
use crate::analysis::{Agreement, Analysis, Cell, Reason, Row, Support, TableResult, tabulate};
use crate::protocol::title_of;

/// A table with its colours explained and its differences accounted for.
pub(super) fn table(result: &TableResult<'_>, number: usize) -> String {
    let definition = result.table;
    let unit = definition.metric.unit();
    let unit = if unit.is_empty() { String::new() } else { format!(", {unit}") };
    let mut out = format!(
        "<section class=\"table\" id=\"{}\">\n<h3>{}</h3>\n\
         <p class=\"what\">{}{unit}: our mean ± half the 95 % interval, the published value, and \
         the difference.</p>\n",
        definition.id,
        escape(&definition.title),
        definition.metric.title(),
    );
    if let Some(says) = &definition.says {
        let _ = writeln!(out, "<p>{}</p>", escape(says));
    }
    out.push_str("<div class=\"scroll\"><table class=\"results\">\n<thead><tr>");
    let _ = write!(out, "<th scope=\"col\">{}</th>", escape(axis_name(&definition.rows)));
    for column in &result.columns {
        let _ = write!(
            out,
            "<th scope=\"col\">{} {}</th>",
            escape(axis_name(&definition.columns)),
            escape(column)
        );
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let mut notes = Vec::new();
    for row in &result.rows {
        out.push_str(&row_html(result, row, number, &mut notes));
    }
    out.push_str("</tbody></table></div>\n");
    out.push_str(&key(result));
    out.push_str(&reasons(result, number, &notes));
    out.push_str("</section>\n");
    out
}

fn row_html<'r>(
    result: &TableResult<'_>,
    row: &'r Row,
    number: usize,
    notes: &mut Vec<&'r Cell>,
) -> String {
    let colour = row.protocol.map_or("transparent", |p| p.colour);
    let small = |text: String| format!("<small>{}</small>", escape(&text));
    let flow = row.flow.as_ref().map_or_else(String::new, |f| {
        small(format!("{f} flow, pair with {}", title_of(&row.label)))
    });
    let mut out = format!(
        "<tr><th scope=\"row\"><span class=\"dot\" style=\"background:{colour}\"></span>\
         {}{flow}</th>",
        escape(&row.title())
    );
    for cell in &row.cells {
        if needs_reason(result, cell) {
            notes.push(cell);
        }
        let note = needs_reason(result, cell).then_some(notes.len());
        out.push_str(&cell_html(result, cell, number, note));
    }
    out.push_str("</tr>\n");
    out
}

fn cell_html(result: &TableResult<'_>, cell: &Cell, number: usize, note: Option<usize>) -> String {
    let digits = result.table.metric.digits();
    let (class, sign) = look(cell.agreement);
    let Ok(mean) = cell.ours.mean else {
        let why = cell.undefined.as_deref().unwrap_or("not run yet");
        let published = published(cell, digits);
        return format!(
            "<td class=\"{class}\"><b>–</b><small>{}</small>{published}</td>",
            escape(why)
        );
    };
    let interval = cell
        .ours
        .ci95
        .map_or_else(|_| "<i>one run</i>".to_owned(), |half| format!("<i>± {half:.digits$}</i>"));
    let difference = cell.difference().map_or_else(String::new, |d| {
        let link = note.map_or_else(String::new, |n| {
            format!("<a class=\"note\" href=\"#why-{number}-{n}\">{n}</a>")
        });
        format!("<span class=\"diff\">{sign} {}{link}</span>", signed(d, digits))
    });
    let published = published(cell, digits);
    format!("<td class=\"{class}\"><b>{mean:.digits$}</b> {interval}{published}{difference}</td>")
}

fn published(cell: &Cell, digits: usize) -> String {
    let Some(published) = cell.published else { return String::new() };
    let value = published.value;
    let stddev = published.stddev.map_or_else(String::new, |s| format!(", sd {s:.digits$}"));
    format!("<small>published {}{stddev}</small>", as_published(value, digits))
}

/// As many digits as were published: 45 stays 45, an index has two.
fn as_published(value: f64, digits: usize) -> String {
    if value.fract() == 0.0 { value.to_string() } else { format!("{value:.digits$}") }
}

fn look(agreement: Agreement) -> (&'static str, &'static str) {
    match agreement {
        Agreement::Close => ("close", "✓"),
        Agreement::InInterval => ("inside", "≈"),
        Agreement::Differs => ("differs", "✗"),
        Agreement::Alone => ("alone", ""),
        Agreement::Missing => ("missing", ""),
    }
}

/// A table of a variant asks "what if": its differences are its point.
fn needs_reason(result: &TableResult<'_>, cell: &Cell) -> bool {
    result.table.variant.is_none() && cell.needs_reason()
}

/// What the colours mean, with how often each occurs.
fn key(result: &TableResult<'_>) -> String {
    let close = result.table.close;
    let unit = result.table.metric.unit();
    let further = match result.table.variant {
        None => "further away: explained below by a run, or said to be unexplained",
        Some(_) => "further away",
    };
    let meanings = [
        (Agreement::Close, format!("within {close} {unit} of the published value")),
        (
            Agreement::InInterval,
            "further away, with the published value inside our 95 % interval".to_owned(),
        ),
        (Agreement::Differs, further.to_owned()),
        (Agreement::Missing, "not run yet, or no value".to_owned()),
        (Agreement::Alone, "nothing was published".to_owned()),
    ];
    let mut out = String::from("<ul class=\"key\">");
    for (agreement, meaning) in meanings {
        let n = result.cells().filter(|c| c.agreement == agreement).count();
        if n > 0 {
            let (class, sign) = look(agreement);
            let _ = write!(
                out,
                "<li><span class=\"swatch {class}\">{sign}</span>{}: {}</li>",
                escape(meaning.trim()),
                counted(n, "cell")
            );
        }
    }
    out.push_str("</ul>\n");
    out
}

/// Why each cell that is off is off: by reason, then what no run explains.
fn reasons(result: &TableResult<'_>, number: usize, notes: &[&Cell]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let mut out = String::from("<h4>Where ours and the published differ</h4>\n");
    let mut given: Vec<&Reason> = Vec::new();
    for reason in notes.iter().flat_map(|c| &c.reasons) {
        if !given.iter().any(|r| same(r, reason)) {
            given.push(reason);
        }
    }
    let mut placed = Vec::new();
    for reason in given {
        out.push_str(&group(result, number, notes, reason, &mut placed));
    }
    let open: Vec<usize> = (0..notes.len()).filter(|i| !notes[*i].is_explained()).collect();
    if !open.is_empty() {
        out.push_str("<p><strong class=\"open\">Unexplained</strong></p>\n<ol class=\"why\">\n");
        for i in open {
            out.push_str(&item(result, number, notes, i, "", &mut placed));
        }
        out.push_str("</ol>\n");
    }
    out
}

fn same(a: &Reason, b: &Reason) -> bool {
    a.variant == b.variant && a.says == b.says
}

fn find<'c>(cell: &'c Cell, reason: &Reason) -> Option<&'c Reason> {
    cell.reasons.iter().find(|r| same(r, reason))
}

/// One reason with the cells that its runs explain, and those that they do not.
fn group(
    result: &TableResult<'_>,
    number: usize,
    notes: &[&Cell],
    reason: &Reason,
    placed: &mut Vec<usize>,
) -> String {
    let digits = result.table.metric.digits();
    let with = |i: &usize| find(notes[*i], reason).map(|r| (*i, r));
    let all: Vec<(usize, &Reason)> = (0..notes.len()).filter_map(|i| with(&i)).collect();
    let counts = |r: &Reason| r.support.is_some_and(Support::counts);
    let mut out = format!(
        "<p>{} <span class=\"runs\">(variant <code>{}</code>)</span></p>\n<ol class=\"why\">\n",
        escape(&reason.says),
        escape(&reason.variant)
    );
    for (i, reason) in all.iter().filter(|(_, r)| counts(r)) {
        let part = if reason.support == Some(Support::Part) { ", in part" } else { "" };
        let found = format!(", with the variant {}{part}", value(reason, digits));
        out.push_str(&item(result, number, notes, *i, &found, placed));
    }
    out.push_str("</ol>\n");
    let others: Vec<String> = all
        .iter()
        .filter(|(_, r)| !counts(r))
        .map(|(i, r)| format!("{} ({})", escape(&words(notes[*i])), value(r, digits)))
        .collect();
    if !others.is_empty() {
        let _ = writeln!(
            out,
            "<p class=\"runs\">Tested and not the reason for: {}.</p>",
            others.join("; ")
        );
    }
    out
}

/// What a variant's runs found.
fn value(reason: &Reason, digits: usize) -> String {
    match (reason.found.mean, reason.found.ci95) {
        (Ok(mean), Ok(half)) => format!("{mean:.digits$} ± {half:.digits$}"),
        (Ok(mean), Err(_)) => format!("{mean:.digits$}"),
        _ => "not run yet".to_owned(),
    }
}

/// A cell in words.
fn words(cell: &Cell) -> String {
    let labels: Vec<&str> = cell.labels.iter().map(|(_, l)| title_of(l)).collect();
    labels.join(", ")
}

/// One cell of a list, under the number that its table gives it.
fn item(
    result: &TableResult<'_>,
    number: usize,
    notes: &[&Cell],
    index: usize,
    found: &str,
    placed: &mut Vec<usize>,
) -> String {
    let cell = notes[index];
    let digits = result.table.metric.digits();
    let n = index + 1;
    // A cell with two reasons is listed twice; the link leads to the first.
    let id =
        if placed.contains(&index) { String::new() } else { format!(" id=\"why-{number}-{n}\"") };
    placed.push(index);
    let ours = cell.ours.mean.unwrap_or_default();
    let published = cell.published.map(|p| p.value).unwrap_or_default();
    format!(
        "<li value=\"{n}\"{id}><b>{}</b>: published {}, ours {ours:.digits$}{found}</li>\n",
        escape(&words(cell)),
        as_published(published, digits)
    )
}

/// The first table that is compared with published values, under every variant: a reason that helps
/// in one cell and hurts in another can be seen to.
pub(super) fn under_variants(analysis: &Analysis<'_>) -> String {
    let main = |t: &&TableResult<'_>| t.table.variant.is_none() && t.table.reference.is_some();
    let Some(plain) = analysis.tables.iter().find(main) else { return String::new() };
    let mut out = format!(
        "<h3>{} under each variant</h3>\n<div class=\"scroll\"><table class=\"results slim\">\n\
         <thead><tr><th scope=\"col\">{}</th>",
        escape(&plain.table.title),
        escape(axis_name(&plain.table.rows))
    );
    for column in &plain.columns {
        let axis = axis_name(&plain.table.columns);
        let _ = write!(out, "<th scope=\"col\">{} {}</th>", escape(axis), escape(column));
    }
    out.push_str("</tr></thead>\n<tbody>\n");
    let variants: Vec<(&str, TableResult<'_>)> = analysis
        .experiment
        .variants
        .iter()
        .map(|v| {
            let id = v.id.as_str();
            (id, tabulate(analysis.experiment, plain.table, &analysis.results, Some(id)))
        })
        .collect();
    for (i, row) in plain.rows.iter().enumerate() {
        out.push_str(&slim_row(plain, row, "as it stands"));
        for (id, table) in &variants {
            let found = table.rows.get(i).filter(|r| r.cells.iter().any(|c| c.ours.n > 0));
            out.push_str(&found.map_or_else(String::new, |r| slim_row(plain, r, id)));
        }
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn slim_row(result: &TableResult<'_>, row: &Row, variant: &str) -> String {
    let digits = result.table.metric.digits();
    let mut out = format!(
        "<tr><th scope=\"row\">{} <small class=\"inline\">{}</small></th>",
        escape(&row.title()),
        escape(variant)
    );
    for cell in &row.cells {
        let (class, sign) = look(cell.agreement);
        let value = match (cell.ours.mean, cell.ours.ci95) {
            (Ok(mean), Ok(half)) => format!("{sign} {mean:.digits$} ± {half:.digits$}"),
            (Ok(mean), Err(_)) => format!("{sign} {mean:.digits$}"),
            _ => "–".to_owned(),
        };
        let _ = write!(out, "<td class=\"{class}\">{value}</td>");
    }
    out.push_str("</tr>\n");
    out
}
