//! Headers of a table: one row of labels per column key, one column per row key, with equal
//! neighbours merged.

use core::fmt::Write as _;
use core::ops::Range;

use udccp_scenario::protocol;

use super::html::escape;
use super::style::style_of;
use crate::analysis::{TableResult, label_text, own_name};
use crate::schema::{FLOW_KEY, METRIC_KEY};

/// Most values side by side that fit on a page without scrolling.
const PAGE_COLUMNS: usize = 8;

/// The name of a key in a header.
pub(super) fn axis_name(axis: &str) -> &str {
    if axis == "rtt" { "RTT" } else { axis }
}

/// Splits the columns into blocks that fit on a page. Each block is a list of cells; a tuple's
/// columns form one cell.
pub(super) fn blocks(result: &TableResult<'_>) -> Vec<Vec<Range<usize>>> {
    let cells = cells(result);
    let levels = result.table.columns.len();
    // A block ends where the outermost label changes, so groups stay together.
    let outer = |c: &Range<usize>| result.columns[c.start].first().map(|(_, l)| l.clone());
    let groups: Vec<&[Range<usize>]> = if levels > usize::from(result.table.tuple) + 1 {
        cells.chunk_by(|a, b| outer(a) == outer(b)).collect()
    } else {
        cells.chunks(1).collect()
    };
    let mut blocks: Vec<Vec<Range<usize>>> = Vec::new();
    let limit = if result.table.tuple { PAGE_COLUMNS / 2 } else { PAGE_COLUMNS };
    for group in groups {
        match blocks.last_mut() {
            Some(block) if block.len() + group.len() <= limit => block.extend_from_slice(group),
            _ => blocks.push(group.to_vec()),
        }
    }
    blocks
}

/// The columns of each cell: one column, or those of a tuple.
fn cells(result: &TableResult<'_>) -> Vec<Range<usize>> {
    let n = result.columns.len();
    if !result.table.tuple {
        return (0..n).map(|i| i..i + 1).collect();
    }
    let place = |i: usize| {
        let told = |(key, _): &&(String, String)| key != METRIC_KEY;
        result.columns[i].iter().filter(told).cloned().collect::<Vec<_>>()
    };
    let mut cells: Vec<Range<usize>> = Vec::new();
    for i in 0..n {
        match cells.last_mut() {
            Some(cell) if place(cell.start) == place(i) => cell.end = i + 1,
            _ => cells.push(i..i + 1),
        }
    }
    cells
}

/// The `<thead>` of a block.
pub(super) fn head(result: &TableResult<'_>, block: &[Range<usize>]) -> String {
    head_with(result, block, None)
}

/// The same, with a column of this class between the row labels and the cells.
pub(super) fn head_with(
    result: &TableResult<'_>,
    block: &[Range<usize>],
    between: Option<&str>,
) -> String {
    let table = result.table;
    let keys: Vec<&String> =
        table.columns.iter().filter(|k| !(table.tuple && *k == METRIC_KEY)).collect();
    let named: Vec<bool> = keys.iter().map(|k| needs_name(result, k)).collect();
    let height = (keys.len() + named.iter().filter(|n| **n).count()).max(1);
    let mut out = String::from("<thead>\n<tr>");
    for key in &table.rows {
        let name = if table.labels(key).iter().all(|l| protocol::find(l).is_some()) {
            ""
        } else {
            axis_name(key)
        };
        let _ = write!(out, "<th scope=\"col\" rowspan=\"{height}\">{}</th>", escape(name));
    }
    if table.rows.is_empty() {
        // Rows without labels still have an empty header cell.
        let _ = write!(out, "<td rowspan=\"{height}\"></td>");
    }
    if let Some(class) = between {
        let _ = write!(out, "<td class=\"{class}\" rowspan=\"{height}\"></td>");
    }
    if keys.is_empty() {
        let _ = write!(out, "<th scope=\"col\">{}</th>", escape(table.shown[0].title()));
    }
    let mut is_first = true;
    for (level, key) in keys.iter().enumerate() {
        if named[level] {
            let next = if is_first { "" } else { "</tr>\n<tr>" };
            let (span, name) = (block.len(), escape(axis_name(key)));
            let _ = write!(out, "{next}<th class=\"axis\" colspan=\"{span}\">{name}</th>");
            is_first = false;
        }
        if !is_first {
            out.push_str("</tr>\n<tr>");
        }
        is_first = false;
        let labels = |c: &Range<usize>| &result.columns[c.start][..=level];
        for same in block.chunk_by(|a, b| labels(a) == labels(b)) {
            let label = &result.columns[same[0].start][level];
            let span = same.len();
            let _ = write!(
                out,
                "<th scope=\"col\" colspan=\"{span}\">{}</th>",
                escape(&column_label(result, label))
            );
        }
    }
    out.push_str("</tr>\n</thead>\n");
    out
}

/// Whether the labels of a key are unclear without the key's name.
fn needs_name(result: &TableResult<'_>, key: &str) -> bool {
    let says = |label: &String| protocol::find(label).is_some();
    ![FLOW_KEY, METRIC_KEY].contains(&key) && !result.table.labels(key).iter().all(says)
}

fn column_label(result: &TableResult<'_>, (key, label): &(String, String)) -> String {
    if key == METRIC_KEY
        && let Some(shown) = result.table.shown.iter().find(|s| s.name == *label)
    {
        return shown.title_and_unit();
    }
    label_text(result.names(), key, label)
}

/// The `<th>` elements of a row that spans `height` lines. A label that continues from the row
/// above is not repeated.
pub(super) fn row_heads(result: &TableResult<'_>, index: usize, height: usize) -> String {
    let row = &result.rows[index];
    let last = row.labels.len().saturating_sub(1);
    let mut out = String::new();
    for (level, (key, label)) in row.labels.iter().enumerate() {
        let labels = |i: usize| result.rows.get(i).map(|r| &r.labels[..=level]);
        if index > 0 && labels(index - 1) == labels(index) && level < last {
            continue;
        }
        let goes_on = |i: &usize| labels(*i) == labels(index);
        let goes_on = (index..result.rows.len()).take_while(goes_on).count();
        let spanned = if level < last { goes_on } else { 1 };
        let span = height * spanned;
        let look = if level == last { row.protocol } else { protocol::find(label) };
        let dot = look.map_or_else(String::new, |p| {
            format!("<span class=\"dot\" style=\"background:{}\"></span>", style_of(p).colour)
        });
        let names = result.names();
        let name = label_text(names, key, label);
        let same = result.rows[index..].iter().take(spanned).all(|r| r.protocol == row.protocol);
        let text = match (key.as_str(), row.protocol.filter(|_| same)) {
            (FLOW_KEY, Some(p)) => match own_name(names, label, p.title) {
                Some(_) => format!("{}<small>{}</small>", escape(p.title), escape(&name)),
                None => escape(p.title),
            },
            (METRIC_KEY, _) => escape(&column_label(result, &(key.clone(), label.clone()))),
            _ => escape(&name),
        };
        let _ = write!(out, "<th scope=\"row\" rowspan=\"{span}\">{dot}{text}</th>");
    }
    if row.labels.is_empty() {
        let _ = write!(out, "<th scope=\"row\" rowspan=\"{height}\"></th>");
    }
    out
}
