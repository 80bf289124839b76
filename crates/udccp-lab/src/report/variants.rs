//! Variants: the experiment with one change.

use core::fmt::Write as _;

use super::cell_text::{class_and_sign, class_of};
use super::html::{counted, escape, heading};
use super::table_header::{axis_name, blocks};
use crate::analysis::{Analysis, Row, TableResult, label_text, tabulate};

/// The variants, and the first table under each of them.
pub(super) fn variants(analysis: &Analysis<'_>) -> String {
    let variants = &analysis.experiment.variants;
    if variants.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<h2 id=\"variants\">Variants</h2>\n<p class=\"what\">The same experiment with one thing \
         changed, run to test reasons for differences.</p>\n<dl class=\"variants\">\n",
    );
    for variant in variants {
        let runs =
            analysis.results.runs.iter().filter(|(t, _)| t.variant.as_ref() == Some(&variant.id));
        let _ = writeln!(
            out,
            "<dt id=\"variant-{id}\"><code>{id}</code></dt><dd>{} <small>{}</small></dd>",
            escape(&variant.says),
            counted(runs.count(), "run"),
            id = escape(&variant.id)
        );
    }
    out.push_str("</dl>\n");
    out.push_str(&under_variants(analysis));
    out
}

/// The first table with published values, under every variant of its case. It shows whether a
/// reason improves one cell and worsens another.
fn under_variants(analysis: &Analysis<'_>) -> String {
    let experiment = analysis.experiment;
    let variants = |t: &TableResult<'_>| {
        let cases = t.table.view.cases.clone();
        experiment.variants.iter().filter(move |v| cases.contains(&v.case))
    };
    let main = |t: &&TableResult<'_>| {
        t.table.variant.is_none() && t.table.reference.is_some() && variants(t).next().is_some()
    };
    let Some(plain) = analysis.tables.iter().find(main) else { return String::new() };
    let title = format!("{} under each variant", plain.table.title);
    let mut out = heading("under-variants", &title);
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
            let names = plain.names();
            let text = plain.columns[*column].iter().map(|(key, l)| label_text(names, key, l));
            let text: Vec<String> = text.collect();
            let _ = write!(out, "<th scope=\"col\">{}</th>", escape(&text.join(", ")));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &plain.rows {
            out.push_str(&slim_row(row, "unchanged", &columns));
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
        let (class, sign) = class_and_sign(cell.agreement);
        let value = match cell.ours.mean {
            Ok(_) => format!("{sign} {}", cell.ours_text("± ")),
            Err(_) => "–".to_owned(),
        };
        let _ = write!(out, "<td class=\"{class}\">{value}</td>");
    }
    out.push_str("</tr>\n");
    out
}
