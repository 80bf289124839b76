//! Published numbers: a CSV file, and the meaning of its columns.

use core::num::NonZeroU64;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use udccp_base::{DataRate, Duration};
use udccp_scenario::diagnostic::{Diagnostic, Span, suggestion};
use udccp_scenario::document::{DiagnosticSink, Entry, Node, Reader, Value};
use udccp_scenario::library;

use super::Percent;
use super::close::Published;
use super::context::Context;
use super::grid::Point;
use super::quantity::number;
use super::table::{FLOW_KEY, METRIC_KEY, Table};
use super::unit::{unit_factor, unit_of_header};

/// A CSV with its mapping.
#[derive(Clone, Debug)]
pub struct Reference {
    /// The file's name in the experiment.
    pub file: String,
    /// The column of each key: an axis, `flow`, `metric` or `case`.
    matches: Vec<(String, usize, String)>,
    /// The CSV's names for labels.
    names: Vec<(String, String)>,
    /// The columns of values.
    values: Vec<ValueColumn>,
    /// Number of the study's runs behind each value with a spread.
    runs: Option<NonZeroU64>,
    /// Number of runs of another backend that are enough to judge.
    witness_runs: Option<NonZeroU64>,
    rows: Vec<Vec<String>>,
}

/// A column of values, with its flow or metric.
#[derive(Clone, Debug)]
struct ValueColumn {
    labels: Vec<String>,
    column: usize,
    factor: f64,
    spread: Option<(usize, Spread)>,
}

/// The published measure of spread over the study's runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Spread {
    /// A standard deviation.
    Deviation,
    /// A coefficient of variation.
    Relative,
}

impl Reference {
    /// How many runs of another backend at each point are enough for a witness: as many as the
    /// study made. `None` means as many as the file asks for.
    pub fn witness_runs(&self) -> Option<usize> {
        self.witness_runs.and_then(|runs| usize::try_from(runs.get()).ok())
    }

    /// The published value of a cell, by its labels: values of axes, and `flow`, `metric` and
    /// `case` if the table has them.
    pub fn lookup(&self, labels: &[(String, String)]) -> Option<Published> {
        let row = self.rows.iter().find(|row| self.is_at(row, labels))?;
        let is_of = |v: &&ValueColumn| v.labels.iter().all(|l| labels.iter().any(|(_, o)| o == l));
        let of = self.values.iter().find(is_of)?;
        let cell = row.get(of.column)?;
        let number = |cell: &String| cell.parse::<f64>().ok();
        let value = number(cell).map(|v| decimal(v * of.factor));
        if value.is_none() && !is_dash(cell) {
            return None;
        }
        let spread = of.spread.and_then(|(column, kind)| Some((number(row.get(column)?)?, kind)));
        let stddev = spread.and_then(|(s, kind)| match kind {
            Spread::Deviation => Some(decimal(s * of.factor)),
            Spread::Relative => value.map(|v| (s * v).abs()),
        });
        let runs = self.runs.filter(|_| stddev.is_some());
        Some(Published { value, stddev, runs })
    }

    fn is_at(&self, row: &[String], labels: &[(String, String)]) -> bool {
        self.matches.iter().all(|(key, column, header)| {
            let label = labels.iter().find(|(name, _)| name == key).map(|(_, label)| label);
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

    /// The CSV's name for a label.
    fn name_of<'a>(&'a self, label: &'a str) -> &'a str {
        let mapped = self.names.iter().find(|(ours, _)| ours == label);
        mapped.map_or(label, |(_, theirs)| theirs)
    }

    pub(super) fn read(node: &Node, context: &Context<'_>, table: &Table) -> Option<Self> {
        let errors = context.errors;
        let mut reader = Reader::new(node, "table.reference", errors)?;
        let file: Option<String> = reader.need("file");
        let matches = reader.raw("match");
        let names = reader.raw("names");
        let value = reader.raw("value");
        let spreads = [reader.raw("stddev"), reader.raw("cv")];
        let runs = read_runs(&mut reader, node, spreads.iter().any(Option::is_some), errors);
        let witness_runs: Option<u64> = reader.want("witness_runs");
        if witness_runs == Some(0) {
            let at = node.get("witness_runs").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(at, "`witness_runs` is at least 1"));
        }
        reader.finish();
        let (file, file_span) = (file?, &node.get("file")?.span);
        let csv = Csv::load(&context.base.join(&file), &file, file_span, errors)?;
        let (Some(matches), Some(value)) = (matches, value) else {
            errors.push(Diagnostic::at(file_span, "a reference must assign columns").hint(
                "for example match = { rtt = \"rtt_ms\" }, value = \"jfi\", stddev = \"stddev\"",
            ));
            return None;
        };
        let read_match = |e: &Entry| {
            check_key(context, table, e);
            csv.column(&e.node, errors).map(|(i, header)| (e.key.clone(), i, header))
        };
        let matches: Vec<_> = matches.entries().iter().map(read_match).collect();
        let names = names.map(Node::entries).unwrap_or_default();
        let mut reference = Self {
            file,
            matches: matches.into_iter().collect::<Option<_>>()?,
            names: names.iter().map(|e| (e.key.clone(), e.node.label())).collect(),
            values: Vec::new(),
            runs,
            witness_runs: witness_runs.and_then(NonZeroU64::new),
            rows: Vec::new(),
        };
        let mut columns = Columns { csv: &csv, context, table, found: Vec::new() };
        columns.read(value, &[])?;
        reference.values = columns.found;
        reference.check_values(value, context, table)?;
        for (node, kind) in spreads.into_iter().zip([Spread::Deviation, Spread::Relative]) {
            let Some(node) = node else { continue };
            let mut columns = Columns { csv: &csv, context, table, found: Vec::new() };
            columns.read(node, &[])?;
            for value in &mut reference.values {
                let of = columns.found.iter().find(|c| c.labels == value.labels);
                value.spread = of.map(|c| (c.column, kind)).or(value.spread);
            }
        }
        reference.check_numbers(&csv, file_span, errors)?;
        reference.check_doubles(&csv, file_span, errors)?;
        reference.rows = csv.rows;
        reference.check_names(context, table, file_span);
        reference.check_mapping(context, table, names);
        Some(reference)
    }

    /// Reports flows or metrics that neither `match` nor `value` distinguishes: they would get the
    /// same number.
    fn check_values(&self, node: &Node, context: &Context<'_>, table: &Table) -> Option<()> {
        let keys = [(FLOW_KEY, table.is_per_flow()), (METRIC_KEY, table.shown.len() > 1)];
        for (key, is_there) in keys {
            let labels = table.labels(key);
            let told = self.matches.iter().any(|(k, _, _)| k == key)
                || self.values.iter().all(|v| v.labels.iter().any(|l| labels.contains(l)));
            if !is_there || told || labels.len() < 2 {
                continue;
            }
            let (error, first) = match key {
                FLOW_KEY => ("this metric has a value for each flow", table.view.flows.first()),
                _ => ("this table has several metrics", labels.first()),
            };
            let first = first.map_or("first", String::as_str);
            let hint = format!("write value = {{ {first} = \"column\" }}");
            context.errors.push(Diagnostic::at(&node.span, error).hint(hint));
            return None;
        }
        Some(())
    }

    /// Reports fields that are neither a number nor a "no value" mark, instead of silently ignoring
    /// them.
    fn check_numbers(&self, csv: &Csv, span: &Span, errors: &DiagnosticSink) -> Option<()> {
        let of = |v: &ValueColumn| [Some(v.column), v.spread.map(|(column, _)| column)];
        let columns = || self.values.iter().flat_map(of).flatten();
        let mut is_fine = true;
        for (row, line) in csv.rows.iter().zip(&csv.lines) {
            for (cell, column) in columns().map(|c| (&row[c], &csv.headers[c])) {
                let is_number = cell.parse::<f64>().is_ok_and(f64::is_finite);
                if cell.is_empty() || is_number || is_dash(cell) {
                    continue;
                }
                let error = format!(
                    "{}:{line}: column `{column}` has \"{cell}\", which is not a number",
                    csv.name
                );
                let hint = "write \"-\" or \"–\" for a published \"no value\", and leave the \
                            field empty if nothing was published";
                errors.push(Diagnostic::at(span, error).hint(hint));
                is_fine = false;
            }
        }
        is_fine.then_some(())
    }

    /// Reports two lines for one cell: only the first would be used.
    fn check_doubles(&self, csv: &Csv, span: &Span, errors: &DiagnosticSink) -> Option<()> {
        let key = |row: &[String]| {
            self.matches.iter().map(|(_, column, _)| row[*column].clone()).collect::<Vec<_>>()
        };
        let mut seen = BTreeMap::new();
        let mut is_fine = true;
        for (row, &line) in csv.rows.iter().zip(&csv.lines) {
            let key = key(row);
            let what = key.join(", ");
            if let Some(first) = seen.insert(key, line) {
                let error = format!("{}:{line} is for the same cell as line {first}", csv.name);
                let hint = format!("remove one of them ({what}), or distinguish them in `match`");
                errors.push(Diagnostic::at(span, error).hint(hint));
                is_fine = false;
            }
        }
        is_fine.then_some(())
    }

    /// Reports values of an axis that the CSV never mentions: probably a mistake, not a missing
    /// number.
    fn check_names(&self, context: &Context<'_>, table: &Table, span: &Span) {
        for (key, column, header) in &self.matches {
            let labels = table.labels(key);
            let cells: Vec<&str> = self.rows.iter().map(|r| r[*column].as_str()).collect();
            let is_told = |label: &String| cells.iter().any(|cell| self.same(label, cell, header));
            for label in labels.iter().filter(|label| !is_told(label)) {
                // For a numeric axis, a study may have published a part of the values, but not none
                // of them.
                if in_unit_of(label, header).is_some() && labels.iter().any(is_told) {
                    continue;
                }
                let mut known: Vec<&str> = Vec::new();
                for cell in &cells {
                    if !known.contains(cell) {
                        known.push(cell);
                    }
                }
                let name = self.name_of(label);
                let error = format!("column `{header}` of {} has no \"{name}\"", self.file);
                let hint = format!(
                    "{}; `names` maps an axis value to the file's word for it; a value that was \
                     not published needs a line with an empty field",
                    suggestion(name, "it has", &known)
                );
                context.errors.push(Diagnostic::at(span, error).hint(hint));
            }
        }
    }

    /// Reports keys of `names` that are not labels of a matched key: they have no effect.
    fn check_mapping(&self, context: &Context<'_>, table: &Table, names: &[Entry]) {
        let keys = self.matches.iter().map(|(key, _, _)| key);
        let labels: Vec<String> = keys.flat_map(|key| table.all_labels(key)).collect();
        for entry in names {
            context.check_name(&entry.key, "value", &labels, &entry.key_span);
        }
    }

    /// The point's labels in the CSV's words, for messages.
    pub fn describe(&self, point: &Point) -> String {
        let labels: Vec<&str> = point.iter().map(|(_, l)| self.name_of(l)).collect();
        labels.join(", ")
    }
}

/// Number of the study's runs behind each value. Only used to divide a deviation.
fn read_runs(
    reader: &mut Reader<'_>,
    node: &Node,
    has_spread: bool,
    errors: &DiagnosticSink,
) -> Option<NonZeroU64> {
    let runs: u64 = reader.want("runs")?;
    let (error, hint) = match NonZeroU64::new(runs) {
        None => ("a mean needs at least one run", "write how many runs the study made"),
        Some(_) if !has_spread => (
            "`runs` needs the published standard deviations",
            "name their column: stddev = \"stddev\", or cv = \"cv\"",
        ),
        found => return found,
    };
    let at = node.get("runs").map_or(&node.span, |n| &n.span);
    errors.push(Diagnostic::at(at, error).hint(hint));
    None
}

/// Reports a key of `match` that the table does not have.
fn check_key(context: &Context<'_>, table: &Table, entry: &Entry) {
    let extra = [(FLOW_KEY, table.is_per_flow()), (METRIC_KEY, table.shown.len() > 1)];
    if !extra.iter().any(|(key, is_there)| *is_there && entry.key == *key) {
        context.check_axis(&table.view, &entry.key, &entry.key_span);
    }
}

/// Whether a field is a published "no value". An empty field is a number that was not published.
fn is_dash(cell: &str) -> bool {
    matches!(cell, "-" | "\u{2013}" | "\u{2014}")
}

/// An axis value as a number in the unit at the end of a column's header (`rtt_ms`), which may be
/// the column of an export (`queue_bdp`).
fn in_unit_of(label: &str, header: &str) -> Option<f64> {
    if let Some((unit, exported)) = number(label)
        && header.strip_suffix(unit).is_some_and(|axis| axis.ends_with('_'))
    {
        return Some(exported);
    }
    match unit_of_header(header)? {
        "ms" => label.parse::<Duration>().ok().map(Duration::as_millis_f64),
        "s" => label.parse::<Duration>().ok().map(Duration::as_secs_f64),
        "%" => label.parse::<Percent>().ok().map(|p| p.0),
        unit => {
            let rate = label.parse::<DataRate>().ok()?.as_mbps();
            Some(rate * unit_factor("Mbit/s", unit)?)
        }
    }
}

/// Reads `"column"`, `{ flow = "column" }`, `{ metric = "column" }` or a nested form.
struct Columns<'a> {
    csv: &'a Csv,
    context: &'a Context<'a>,
    table: &'a Table,
    found: Vec<ValueColumn>,
}

impl Columns<'_> {
    fn read(&mut self, node: &Node, labels: &[String]) -> Option<()> {
        let errors = self.context.errors;
        if let Value::Table(entries) = &node.value {
            for entry in entries {
                self.check_label(entry)?;
                let mut labels = labels.to_vec();
                labels.push(entry.key.clone());
                self.read(&entry.node, &labels)?;
            }
            return Some(());
        }
        let (column, header) = self.csv.column(node, errors)?;
        let factor = self.factor(&header, labels, &node.span)?;
        let labels = labels.to_vec();
        self.found.push(ValueColumn { labels, column, factor, spread: None });
        Some(())
    }

    fn check_label(&self, entry: &Entry) -> Option<()> {
        let metrics = self.table.shown.iter().map(|s| s.name.clone());
        let flows = self.table.is_per_flow().then_some(&self.table.view.flows);
        let known: Vec<String> = flows.into_iter().flatten().cloned().chain(metrics).collect();
        let what = if self.table.shown.len() > 1 { "flow or metric" } else { "flow" };
        self.context.check_name(&entry.key, what, &known, &entry.key_span);
        known.contains(&entry.key).then_some(())
    }

    /// The factor from a column's unit, if its header has one, to the table's unit.
    fn factor(&self, header: &str, labels: &[String], span: &Span) -> Option<f64> {
        let of = |s: &&super::MetricSpec| labels.contains(&s.name);
        let shown = self.table.shown.iter().find(of).or_else(|| self.table.shown.first())?;
        let Some(unit) = unit_of_header(header) else { return Some(1.0) };
        let factor = unit_factor(unit, &shown.unit);
        if factor.is_none() {
            let error = format!("column `{header}` is in {unit}");
            let hint = match shown.unit.as_str() {
                "" => "this metric has no unit".to_owned(),
                unit => format!("this metric is shown in {unit}"),
            };
            self.context.errors.push(Diagnostic::at(span, error).hint(hint));
        }
        factor
    }
}

/// A converted number as it would be written: 6850 kbit/s are 6.85 Mbit/s, although the product of
/// the binary numbers is 6.8500000000000005.
fn decimal(converted: f64) -> f64 {
    format!("{converted:.13e}").parse().unwrap_or(converted)
}

/// A CSV file with a header line. Fields may be in quotes, but not contain commas.
struct Csv {
    name: String,
    headers: Vec<String>,
    rows: Vec<Vec<String>>,
    /// The line number of each row, from 1.
    lines: Vec<usize>,
}

impl Csv {
    fn load(path: &Path, name: &str, span: &Span, errors: &DiagnosticSink) -> Option<Self> {
        let text = library::read(path).map_err(|e| {
            let error = Diagnostic::at(span, format!("cannot read {}: {e}", path.display()));
            errors.push(match e.kind() {
                ErrorKind::NotFound => error.hint(nearest_file(path)),
                ErrorKind::InvalidData => error.hint("save it as CSV in UTF-8"),
                _ => error,
            });
        });
        let text = text.ok()?;
        let fields = |l: &str| l.split(',').map(field).collect::<Vec<_>>();
        let mut lines = text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty());
        let headers = lines.next().map(|(_, l)| fields(l)).unwrap_or_default();
        if let Some(separators) = other_separator(&headers) {
            let error = format!("{name} has one column: {separators} separate its fields");
            let hint = "separate fields with commas, and write decimal points";
            errors.push(Diagnostic::at(span, error).hint(hint));
            return None;
        }
        let (mut rows, mut numbers) = (Vec::new(), Vec::new());
        for (i, line) in lines {
            let row = fields(line);
            if row.len() != headers.len() {
                let error = format!(
                    "{name}:{} has {} fields, its header has {}",
                    i + 1,
                    row.len(),
                    headers.len()
                );
                let hint = "commas separate fields even inside quotes";
                errors.push(Diagnostic::at(span, error).hint(hint));
                return None;
            }
            rows.push(row);
            numbers.push(i + 1);
        }
        Some(Self { name: name.to_owned(), headers, rows, lines: numbers })
    }

    /// The index of the column named by `node`.
    fn column(&self, node: &Node, errors: &DiagnosticSink) -> Option<(usize, String)> {
        let name = node.as_text().unwrap_or_default();
        let found = self.headers.iter().position(|h| h == name);
        if found.is_none() {
            let names: Vec<&str> = self.headers.iter().map(String::as_str).collect();
            let error = format!("{} has no column `{}`", self.name, node.label());
            let hint = suggestion(name, "columns", &names);
            errors.push(Diagnostic::at(&node.span, error).hint(hint));
        }
        found.map(|i| (i, name.to_owned()))
    }
}

/// A field, without the quotes that spreadsheets and R put around it.
fn field(text: &str) -> String {
    let text = text.trim();
    let inner = text.strip_prefix('"').and_then(|t| t.strip_suffix('"'));
    inner.unwrap_or(text).to_owned()
}

/// What separates the fields of a file that has no commas, as spreadsheets write it in countries
/// with decimal commas.
fn other_separator(headers: &[String]) -> Option<&'static str> {
    let [only] = headers else { return None };
    [(';', "semicolons"), ('\t', "tabs")]
        .into_iter()
        .find_map(|(c, name)| only.contains(c).then_some(name))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_exports_are_headers_of_references() {
        for (label, header, number) in [
            ("25 ms", "rtt_ms", Some(25.0)),
            ("25 ms", "rtt_s", Some(0.025)),
            ("10 Mbit/s", "rate_kbps", Some(10_000.0)),
            ("10 Mbit/s", "rate_bit_per_s", Some(1e7)),
            ("0.5 bdp", "queue_bdp", Some(0.5)),
            ("20 packets", "queue_packets", Some(20.0)),
            ("64 kB", "queue_bytes", Some(64_000.0)),
            ("2 %", "loss_percent", Some(2.0)),
            ("32", "flows_number", Some(32.0)),
            ("0.5 bdp", "queue", None),
            ("20 packets", "queue_bdp", None),
            ("dccp/ccid2", "flow2", None),
        ] {
            assert_eq!(in_unit_of(label, header), number, "{label} in {header}");
        }
    }
}
