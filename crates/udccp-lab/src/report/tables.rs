//! Tables of a page: ours with its interval, the published value, the difference, the reasons.

use core::fmt::Write as _;

use super::figures::name_of;
use super::html::{counted, escape, signed};
use crate::analysis::{Agreement, Cell, Reason, Row, Support, TableResult};

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
    out.push_str("<div class=\"scroll\"><table class=\"results\">\n<thead><tr>");
    let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&definition.rows));
    for column in &result.columns {
        let _ = write!(
            out,
            "<th scope=\"col\">{} {}</th>",
            escape(&definition.columns),
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
    let flow = row.flow.as_ref();
    let flow = flow.map_or_else(String::new, |f| format!("<small>{} flow</small>", escape(f)));
    let look = crate::protocol::find(&row.label);
    let colour = look.map_or("transparent", |p| p.colour);
    let mut out = format!(
        "<tr><th scope=\"row\"><span class=\"dot\" style=\"background:{colour}\"></span>{}{flow}</th>",
        escape(&name_of(&row.label))
    );
    for cell in &row.cells {
        if cell.needs_reason() {
            notes.push(cell);
        }
        let note = cell.needs_reason().then(|| notes.len());
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
    // As many digits as were published: 45 stays 45.
    format!("<small>published {value}{stddev}</small>")
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

/// What the colours mean, with how often each occurs.
fn key(result: &TableResult<'_>) -> String {
    let close = result.table.close;
    let unit = result.table.metric.unit();
    let meanings = [
        (Agreement::Close, format!("within {close} {unit} of the published value")),
        (
            Agreement::InInterval,
            "further away, with the published value inside our 95 % interval".to_owned(),
        ),
        (
            Agreement::Differs,
            "further away: explained below by a run, or said to be unexplained".to_owned(),
        ),
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

/// Why each cell that is off is off.
fn reasons(result: &TableResult<'_>, number: usize, notes: &[&Cell]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let mut out =
        String::from("<h4>Where ours and the published differ</h4>\n<ol class=\"why\">\n");
    let digits = result.table.metric.digits();
    for (i, cell) in notes.iter().enumerate() {
        let labels: Vec<String> = cell.labels.iter().map(|(_, l)| name_of(l)).collect();
        let _ =
            write!(out, "<li id=\"why-{number}-{}\"><b>{}</b>", i + 1, escape(&labels.join(", ")));
        let difference = cell.difference().unwrap_or_default();
        let _ = write!(out, " ({}): ", signed(difference, digits));
        if !cell.is_explained() {
            out.push_str("<strong class=\"open\">unexplained</strong>. ");
        }
        for reason in &cell.reasons {
            out.push_str(&reason_html(reason, cell, digits));
        }
        out.push_str("</li>\n");
    }
    out.push_str("</ol>\n");
    out
}

fn reason_html(reason: &Reason, cell: &Cell, digits: usize) -> String {
    let Ok(mean) = reason.found.mean else {
        return format!(
            "The variant <code>{}</code> that would test this has not been run: {} ",
            escape(&reason.variant),
            escape(&reason.says)
        );
    };
    let half = reason.found.ci95.map_or_else(|_| String::new(), |h| format!(" ± {h:.digits$}"));
    let published = cell.published.map_or(0.0, |p| p.value);
    let numbers = format!(
        "<span class=\"runs\">Variant <code>{}</code>, {}: {mean:.digits$}{half}, published \
         {published}.</span>",
        escape(&reason.variant),
        counted(reason.found.n, "run"),
    );
    let says = escape(&reason.says);
    match reason.support {
        Some(Support::Full) => format!("{says} {numbers} "),
        Some(Support::Part) => format!("In part: {says} {numbers} "),
        _ => format!("Tested and not the reason: {says} {numbers} "),
    }
}
