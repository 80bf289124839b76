//! Published numbers: a CSV file, and which of its columns mean what.

use std::path::Path;

use udccp_base::{DataRate, Duration};

use super::context::{Context, View};
use super::grid::Point;
use super::metric::Metric;
use crate::diagnostic::{Diagnostic, Span, suggestion};
use crate::document::{Faults, Node, Reader};

/// One published value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Published {
    /// The value.
    pub value: f64,
    /// Its standard deviation over the study's runs, where published.
    pub stddev: Option<f64>,
}

/// A CSV with its mapping.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The file as the experiment names it.
    pub file: String,
    /// Which column holds each axis.
    matches: Vec<(String, usize, String)>,
    /// What the file calls a value of an axis.
    names: Vec<(String, String)>,
    /// The column of the value; one for each flow where the metric is a flow's.
    values: Vec<(Option<String>, usize)>,
    /// The column of the standard deviation.
    stddev: Option<usize>,
    rows: Vec<Vec<String>>,
}

impl Reference {
    /// The published value at a grid point (of a flow, where the metric is a flow's).
    pub fn lookup(&self, point: &[(String, String)], flow: Option<&str>) -> Option<Published> {
        let row = self.rows.iter().find(|row| self.is_at(row, point))?;
        let column = self.values.iter().find(|(f, _)| f.as_deref() == flow)?.1;
        let value = row.get(column)?.parse().ok()?;
        let stddev = self.stddev.and_then(|c| row.get(c)?.parse().ok());
        Some(Published { value, stddev })
    }

    fn is_at(&self, row: &[String], point: &[(String, String)]) -> bool {
        self.matches.iter().all(|(axis, column, header)| {
            let label = point.iter().find(|(name, _)| name == axis).map(|(_, label)| label);
            let cell = row.get(*column);
            label.zip(cell).is_some_and(|(label, cell)| self.same(label, cell, header))
        })
    }

    fn same(&self, label: &str, cell: &str, header: &str) -> bool {
        if let Some(number) = in_unit_of(label, header) {
            return cell.parse::<f64>().is_ok_and(|c| (c - number).abs() < 1e-9);
        }
        self.name_of(label) == cell
    }

    /// What the file calls an axis value.
    fn name_of<'a>(&'a self, label: &'a str) -> &'a str {
        let mapped = self.names.iter().find(|(ours, _)| ours == label);
        mapped.map_or(label, |(_, theirs)| theirs)
    }

    pub(super) fn read(
        node: &Node,
        context: &Context<'_>,
        view: &View,
        metric: Option<Metric>,
    ) -> Option<Self> {
        let faults = context.faults;
        let mut reader = Reader::new(node, "table.reference", faults)?;
        let file: Option<String> = reader.need("file");
        let matches = reader.raw("match");
        let names = reader.raw("names");
        let value = reader.raw("value");
        let stddev = reader.raw("stddev");
        reader.finish();
        let (file, file_span) = (file?, &node.get("file")?.span);
        let csv = Csv::load(&context.base.join(&file), &file, file_span, faults)?;
        let (Some(matches), Some(value)) = (matches, value) else {
            faults.push(Diagnostic::at(file_span, "a reference says what the columns mean").hint(
                "for example match = { rtt = \"rtt_ms\" }, value = \"jfi\", stddev = \"stddev\"",
            ));
            return None;
        };
        let read_match = |e: &crate::document::Entry| {
            context.check_axis(view, &e.key, &e.key_span);
            csv.column(&e.node, faults).map(|(i, header)| (e.key.clone(), i, header))
        };
        let matches: Vec<_> = matches.entries().iter().map(read_match).collect();
        let names = names.map(Node::entries).unwrap_or_default();
        let reference = Self {
            file,
            matches: matches.into_iter().collect::<Option<_>>()?,
            names: names.iter().map(|e| (e.key.clone(), e.node.label())).collect(),
            values: read_values(value, &csv, context, view, metric)?,
            stddev: stddev.and_then(|n| csv.column(n, faults)).map(|(i, _)| i),
            rows: csv.rows,
        };
        reference.check_names(context, view, file_span);
        Some(reference)
    }

    /// A value of a named axis that the file never mentions is a slip, not a missing number.
    fn check_names(&self, context: &Context<'_>, view: &View, span: &Span) {
        for (axis, column, header) in &self.matches {
            let Some(axis) = view.grid.axis(axis) else { continue };
            for label in axis.labels() {
                if in_unit_of(&label, header).is_some() {
                    continue;
                }
                let name = self.name_of(&label);
                let cells: Vec<&str> = self.rows.iter().map(|r| r[*column].as_str()).collect();
                if cells.contains(&name) {
                    continue;
                }
                let mut known = cells.clone();
                known.dedup();
                let fault = format!("column `{header}` of {} has no \"{name}\"", self.file);
                let hint = format!(
                    "{}; `names` maps an axis value to the file's word for it",
                    suggestion(name, "it has", &known)
                );
                context.faults.push(Diagnostic::at(span, fault).hint(hint));
            }
        }
    }

    /// The point's labels as the file would say them, for messages.
    pub fn describe(&self, point: &Point) -> String {
        let labels: Vec<&str> = point.iter().map(|(_, l)| self.name_of(l)).collect();
        labels.join(", ")
    }
}

/// An axis value as a number in the unit that a column's header ends with (`rtt_ms`).
fn in_unit_of(label: &str, header: &str) -> Option<f64> {
    let (_, unit) = header.rsplit_once('_')?;
    match unit {
        "ms" => label.parse::<Duration>().ok().map(Duration::as_millis_f64),
        "s" => label.parse::<Duration>().ok().map(Duration::as_secs_f64),
        "mbps" => label.parse::<DataRate>().ok().map(DataRate::as_mbps),
        _ => None,
    }
}

fn read_values(
    node: &Node,
    csv: &Csv,
    context: &Context<'_>,
    view: &View,
    metric: Option<Metric>,
) -> Option<Vec<(Option<String>, usize)>> {
    let faults = context.faults;
    if !metric?.is_per_flow() {
        return csv.column(node, faults).map(|(i, _)| vec![(None, i)]);
    }
    if node.entries().is_empty() {
        let fault = Diagnostic::at(&node.span, "this metric has a value for each flow");
        let flow = view.flows.first().map_or("first", String::as_str);
        faults.push(fault.hint(format!("write value = {{ {flow} = \"column\" }}")));
        return None;
    }
    let read = |e: &crate::document::Entry| {
        context.check_name(&e.key, "flow", &view.flows, &e.key_span);
        csv.column(&e.node, faults).map(|(i, _)| (Some(e.key.clone()), i))
    };
    let values: Vec<_> = node.entries().iter().map(read).collect();
    values.into_iter().collect()
}

/// A CSV file: a header line and rows, fields without quotes.
struct Csv {
    name: String,
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Csv {
    fn load(path: &Path, name: &str, span: &Span, faults: &Faults) -> Option<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| {
            let fault = Diagnostic::at(span, format!("cannot read {}: {e}", path.display()));
            faults.push(fault.hint(nearest_file(path)));
        });
        let text = text.ok()?;
        let fields = |l: &str| l.split(',').map(|f| f.trim().to_owned()).collect::<Vec<_>>();
        let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
        let headers = lines.next().map(|(_, l)| fields(l)).unwrap_or_default();
        let mut rows = Vec::new();
        for (i, line) in lines {
            let row = fields(line);
            if row.len() != headers.len() {
                let fault = format!(
                    "{name}:{} has {} fields, its header has {}",
                    i + 1,
                    row.len(),
                    headers.len()
                );
                faults.push(Diagnostic::at(span, fault));
                return None;
            }
            rows.push(row);
        }
        Some(Self { name: name.to_owned(), headers, rows })
    }

    /// The index of the column that `node` names.
    fn column(&self, node: &Node, faults: &Faults) -> Option<(usize, String)> {
        let name = node.as_text().unwrap_or_default();
        let found = self.headers.iter().position(|h| h == name);
        if found.is_none() {
            let names: Vec<&str> = self.headers.iter().map(String::as_str).collect();
            let fault = format!("{} has no column `{}`", self.name, node.label());
            let hint = suggestion(name, "columns", &names);
            faults.push(Diagnostic::at(&node.span, fault).hint(hint));
        }
        found.map(|i| (i, name.to_owned()))
    }
}

fn nearest_file(path: &Path) -> String {
    let Some(folder) = path.parent() else { return "there is no such folder".to_owned() };
    let Ok(entries) = std::fs::read_dir(folder) else {
        return format!("there is no folder {}", folder.display());
    };
    let mut names: Vec<String> =
        entries.flatten().map(|e| e.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    let near = names
        .iter()
        .min_by_key(|n| strsim::damerau_levenshtein(&wanted, n))
        .map(|n| format!("the nearest name there is `{n}`"));
    near.unwrap_or_else(|| format!("{} is empty", folder.display()))
}
