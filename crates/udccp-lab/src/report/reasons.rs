//! Explains the cells that differ: grouped by reason, then the unexplained ones.

use core::fmt::Write as _;

use udccp_scenario::{SIM, backend_title};

use super::cell_text::{as_published, measure};
use super::html::escape;
use crate::analysis::{Cell, Reason, Support, TableResult};

/// The section that explains a table's differing cells.
pub(super) fn reasons(result: &TableResult<'_>, number: usize, notes: &[&Cell]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let title = match &result.table.against {
        None => "Where our numbers differ from the published ones".to_owned(),
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
    out.push_str(&explained_by_backend(result, number, notes, &mut placed));
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

/// The cells that another backend, which agrees with the whole table, explains.
fn explained_by_backend(
    result: &TableResult<'_>,
    number: usize,
    notes: &[&Cell],
    placed: &mut Vec<usize>,
) -> String {
    let Some(agreeing_backend) = notes.iter().find_map(|c| c.agreeing_backend.as_deref()) else {
        return String::new();
    };
    let mut out = format!(
        "<p>{} agrees with every published value of this table, with the same set-up, so the \
         difference comes from our simulation.</p>\n<ol class=\"why\">\n",
        escape(agreeing_backend)
    );
    for i in (0..notes.len()).filter(|i| notes[*i].agreeing_backend.is_some()) {
        out.push_str(&item(result, number, notes, i, "", placed));
    }
    out.push_str("</ol>\n");
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
        "<p>{} <span class=\"runs\">(variant <a href=\"#variant-{id}\">{id}</a>)</span></p>\n\
         <ol class=\"why\">\n",
        escape(&reason.says),
        id = escape(&reason.variant)
    );
    for (i, reason) in all.iter().filter(|(_, r)| counts(r)) {
        let found = format!(", with the variant {}", value(reason, notes[*i]));
        out.push_str(&item(result, number, notes, *i, &found, placed));
    }
    out.push_str("</ol>\n");
    let listed = |support: Support| {
        let chosen = all.iter().filter(|(_, r)| r.support.unwrap_or(Support::No) == support);
        let text = chosen
            .map(|(i, r)| format!("{} ({})", escape(&notes[*i].title()), value(r, notes[*i])));
        text.collect::<Vec<_>>().join("; ")
    };
    let (here, no) = (listed(Support::Here), listed(Support::No));
    if !here.is_empty() {
        let why = match reason.broken {
            0 => {
                "because other values of the point still differ, or another set-up explains more \
                 of the table"
            }
            _ => "because points that agreed no longer do",
        };
        let _ = writeln!(
            out,
            "<p class=\"runs\">Close to the value, but not an explanation, {why}: {here}.</p>"
        );
    }
    if !no.is_empty() {
        let _ = writeln!(out, "<p class=\"runs\">Tested, but not the reason for: {no}.</p>");
    }
    out
}

/// The result of a variant's runs.
fn value(reason: &Reason, cell: &Cell) -> String {
    match reason.found.mean {
        Ok(mean) => reason.spread.beside(mean, &cell.printed(), "± "),
        Err(_) => "not run yet".to_owned(),
    }
}

/// A list entry for a cell, with the number that the table shows.
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
    // A cell with two reasons is listed twice; the link goes to the first.
    let id =
        if placed.contains(&index) { String::new() } else { format!(" id=\"why-{number}-{n}\"") };
    placed.push(index);
    let ours = cell.ours.mean.map_or("no value".to_owned(), |m| cell.print(m));
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
