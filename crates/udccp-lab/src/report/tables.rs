//! Tables of a page: ours with its interval, the published value, the difference, the reasons.

use core::fmt::Write as _;

use super::head::{axis_name, blocks, head, row_heads};
use super::html::{counted, escape, signed};
use super::sources;
use crate::analysis::{Agreement, Analysis, Cell, Reason, Row, Support, TableResult, tabulate};
use crate::backend::{SIM, backend_title};
use crate::schema::{Shown, Table};

/// A table with its colours explained and its differences accounted for; `others` are the same of
/// other backends.
pub(super) fn table(
    result: &TableResult<'_>,
    others: &[(&str, &TableResult<'_>)],
    number: usize,
) -> String {
    let definition = result.table;
    let mut out = format!(
        "<section class=\"table\" id=\"{}\">\n<h3>{}</h3>\n<p class=\"what\">{}</p>\n",
        escape(&definition.id),
        escape(&definition.title),
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
    out.push_str("</section>\n");
    out
}

/// Many columns get smaller cells.
pub(super) fn class_of(columns: usize) -> &'static str {
    if columns > 6 { "results wide" } else { "results" }
}

/// What the cells hold.
fn what(result: &TableResult<'_>, is_several: bool) -> String {
    let table = result.table;
    let metrics: Vec<String> = table.shown.iter().map(Shown::title_and_unit).collect();
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

/// One cell; of a tuple the values of its metrics.
fn cell_html(result: &TableResult<'_>, cells: &[&Cell], number: usize, notes: usize) -> String {
    let Some(first) = cells.first() else { return "<td class=\"none\"></td>".to_owned() };
    let worst = cells.iter().map(|c| c.agreement).max_by_key(|a| severity(*a));
    let (class, _) = look(worst.unwrap_or(first.agreement));
    let mut out = format!("<td class=\"{class}\">{}", ours(cells));
    if cells.iter().any(|c| c.published.is_some()) {
        let values = cells.iter().map(|c| published(c));
        let _ = write!(out, "<small>published {}</small>", joined(values, result.table.tuple));
    }
    if cells.iter().any(|c| c.is_compared()) {
        let mut note = notes;
        let differences = cells.iter().map(|cell| {
            note += usize::from(needs_reason(result, cell));
            let link = match needs_reason(result, cell) {
                true => note_link(number, note),
                false => String::new(),
            };
            let (_, sign) = look(cell.agreement);
            format!("{sign} {}{link}", difference(cell))
        });
        let differences: Vec<String> = differences.collect();
        let _ = write!(out, "<span class=\"diff\">{}</span>", differences.join(", "));
    }
    out.push_str("</td>");
    out
}

/// A link to why a cell is off.
pub(super) fn note_link(number: usize, note: usize) -> String {
    format!("<a class=\"note\" href=\"#why-{number}-{note}\">{note}</a>")
}

/// Values one after the other; a tuple in its brackets.
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
    let means = cells.iter().map(|c| c.ours.mean.map_or("–".to_owned(), |m| c.shown.print(m)));
    let is_tuple = cells.len() > 1;
    let interval = if let Some(words) = spreads(cells) {
        format!("<i>{words}</i>")
    } else if cells.iter().any(|c| c.ours.n == 1) {
        "<i>one run</i>".to_owned()
    } else {
        "<i>not run yet</i>".to_owned()
    };
    let mut out = format!("<b>{}</b> {interval}", joined(means, is_tuple));
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

/// How far the runs lie apart, behind their means; `None` where no cell has more than one.
fn spreads(cells: &[&Cell]) -> Option<String> {
    let none = || "–".to_owned();
    // Values with intervals share one sign.
    if cells.iter().all(|c| c.ours.n == 0 || c.spread.half().is_some()) {
        let halves = cells.iter().map(|c| c.spread.half().map_or_else(none, |h| c.shown.print(h)));
        let halves: Vec<String> = halves.collect();
        let is_any = cells.iter().any(|c| c.spread.half().is_some());
        return is_any.then(|| format!("± {}", halves.join(", ")));
    }
    let words = cells.iter().map(|c| c.spread.words(&c.shown, "± "));
    let words: Vec<Option<String>> = words.collect();
    let is_any = words.iter().any(Option::is_some);
    let words: Vec<String> = words.into_iter().map(|w| w.unwrap_or_else(none)).collect();
    is_any.then(|| words.join("; "))
}

pub(super) fn published(cell: &Cell) -> String {
    let Some(published) = cell.published else { return "–".to_owned() };
    let Some(value) = published.value else { return "–".to_owned() };
    let stddev =
        published.stddev.map_or_else(String::new, |s| format!(", sd {}", cell.shown.print(s)));
    format!("{}{stddev}", as_published(value, &cell.shown))
}

/// As many digits as were published: 45 stays 45, an index has two.
fn as_published(value: f64, shown: &Shown) -> String {
    if value.fract() == 0.0 && value.abs() >= 1.0 {
        format!("{value}").replace('-', "\u{2212}")
    } else {
        shown.print(value)
    }
}

fn difference(cell: &Cell) -> String {
    match (cell.difference(), cell.agreement) {
        (Some(d), _) => signed(d, cell.shown.digits),
        (None, Agreement::Close) => "neither".to_owned(),
        (None, Agreement::Differs) if cell.ours.mean.is_ok() => "ours has a value".to_owned(),
        (None, Agreement::Differs) => "ours has none".to_owned(),
        _ => String::new(),
    }
}

pub(super) fn severity(agreement: Agreement) -> u8 {
    match agreement {
        Agreement::Alone => 0,
        Agreement::Close => 1,
        Agreement::Missing => 2,
        Agreement::InInterval => 3,
        Agreement::Differs => 4,
    }
}

pub(super) fn look(agreement: Agreement) -> (&'static str, &'static str) {
    match agreement {
        Agreement::Close => ("close", "✓"),
        Agreement::InInterval => ("inside", "≈"),
        Agreement::Differs => ("differs", "✗"),
        Agreement::Alone => ("alone", ""),
        Agreement::Missing => ("missing", ""),
    }
}

/// A table of a variant asks "what if": its differences are its point.
pub(super) fn needs_reason(result: &TableResult<'_>, cell: &Cell) -> bool {
    let table = result.table;
    table.variant.is_none() && cell.needs_reason()
}

/// What the values of a table are compared with.
pub(super) fn measure(table: &Table) -> &str {
    match table.against.as_deref() {
        None => "the published value",
        Some(SIM) => "the simulation",
        Some("emu") => "the emulation",
        Some(id) => backend_title(id),
    }
}

/// What the colours and signs mean, with how often each occurs.
fn key(result: &TableResult<'_>) -> String {
    let mut distances: Vec<String> = Vec::new();
    for shown in &result.table.shown {
        let words = shown.close.words(&shown.unit);
        if !distances.contains(&words) {
            distances.push(words);
        }
    }
    let measure = measure(result.table);
    let further = match &result.table.variant {
        None => "further away: explained below by a run, or said to be unexplained",
        Some(_) => "further away",
    };
    let meanings = [
        (Agreement::Close, format!("within {} of {measure}", distances.join(" or "))),
        (Agreement::InInterval, format!("further away, with {measure} inside our 95 % interval")),
        (Agreement::Differs, further.to_owned()),
        (Agreement::Missing, "not run yet".to_owned()),
    ];
    let count = |a| result.cells().filter(|c| c.agreement == a).count();
    let mut out = String::from("<ul class=\"key\">");
    for (agreement, meaning) in meanings {
        let n = count(agreement);
        if n > 0 {
            let (class, sign) = look(agreement);
            let _ = write!(
                out,
                "<li><span class=\"swatch {class}\">{sign}</span>{}: {}</li>",
                escape(meaning.trim()),
                counted(n, "value")
            );
        }
    }
    let alone = count(Agreement::Alone);
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

/// Why each cell that is off is off: by reason, then what no run explains.
fn reasons(result: &TableResult<'_>, number: usize, notes: &[&Cell]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let title = match &result.table.against {
        None => "Where ours and the published differ".to_owned(),
        Some(_) => format!("Where the simulation and {} differ", measure(result.table)),
    };
    let mut out = format!("<h4>{}</h4>\n", escape(&title));
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
        let found = format!(", with the variant {}{part}", value(reason, &notes[*i].shown));
        out.push_str(&item(result, number, notes, *i, &found, placed));
    }
    out.push_str("</ol>\n");
    let others: Vec<String> = all
        .iter()
        .filter(|(_, r)| !counts(r))
        .map(|(i, r)| format!("{} ({})", escape(&notes[*i].title()), value(r, &notes[*i].shown)))
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
fn value(reason: &Reason, shown: &Shown) -> String {
    match reason.found.mean {
        Ok(mean) => reason.spread.beside(mean, shown, "± "),
        Err(_) => "not run yet".to_owned(),
    }
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
    let n = index + 1;
    // A cell with two reasons is listed twice; the link leads to the first.
    let id =
        if placed.contains(&index) { String::new() } else { format!(" id=\"why-{number}-{n}\"") };
    placed.push(index);
    let ours = cell.ours.mean.map_or("no value".to_owned(), |m| cell.shown.print(m));
    let published = cell.published.and_then(|p| p.value);
    let published = published.map_or("no value".to_owned(), |v| as_published(v, &cell.shown));
    let [theirs, mine] = match result.table.against.as_deref() {
        None => ["published", "ours"],
        Some(id) => [backend_title(id), backend_title(SIM)],
    };
    format!(
        "<li value=\"{n}\"{id}><b>{}</b>: {theirs} {published}, {mine} {ours}{found}</li>\n",
        escape(&cell.title()),
    )
}

/// The first table that is compared with published values, under every variant of its case: a
/// reason that helps in one cell and hurts in another can be seen to.
pub(super) fn under_variants(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let variants = |t: &TableResult<'_>| {
        let cases = t.table.view.cases.clone();
        experiment.variants.iter().filter(move |v| cases.contains(&v.case))
    };
    let main = |t: &&TableResult<'_>| {
        t.table.variant.is_none() && t.table.reference.is_some() && variants(t).next().is_some()
    };
    let Some(plain) = analysis.tables.iter().find(main) else { return String::new() };
    let mut out = format!("<h3>{} under each variant</h3>\n", escape(&plain.table.title));
    let tables: Vec<(&str, TableResult<'_>)> = variants(plain)
        .map(|v| {
            let id = v.id.as_str();
            (id, tabulate(experiment, plain.table, &analysis.results, Some(id)))
        })
        .collect();
    for block in blocks(plain) {
        let columns: Vec<usize> = block.iter().flat_map(Clone::clone).collect();
        let class = class_of(columns.len());
        let _ = write!(out, "<div class=\"scroll\"><table class=\"{class} slim\">\n<thead><tr>");
        let keys: Vec<&str> = plain.table.rows.iter().map(|k| axis_name(k)).collect();
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&keys.join(", ")));
        for column in &columns {
            let words: Vec<&str> = plain.columns[*column].iter().map(|(_, l)| l.as_str()).collect();
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&words.join(", ")));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &plain.rows {
            out.push_str(&slim_row(row, "as it stands", &columns));
            for (id, table) in &tables {
                let found = table.rows.iter().find(|r| r.labels == row.labels);
                let found = found.filter(|r| r.filled().any(|c| c.ours.n > 0));
                out.push_str(&found.map_or_else(String::new, |r| slim_row(r, id, &columns)));
            }
        }
        out.push_str("</tbody></table></div>\n");
    }
    out
}

fn slim_row(row: &Row, variant: &str, columns: &[usize]) -> String {
    let mut out = format!(
        "<tr><th scope=\"row\">{} <small class=\"inline\">{}</small></th>",
        escape(&row.title()),
        escape(variant)
    );
    for cell in columns.iter().map(|c| row.cells.get(*c).and_then(Option::as_ref)) {
        let Some(cell) = cell else {
            out.push_str("<td class=\"none\"></td>");
            continue;
        };
        let (class, sign) = look(cell.agreement);
        let value = match cell.ours.mean {
            Ok(_) => format!("{sign} {}", cell.ours_in_words("± ")),
            Err(_) => "–".to_owned(),
        };
        let _ = write!(out, "<td class=\"{class}\">{value}</td>");
    }
    out.push_str("</tr>\n");
    out
}
