//! The grid of an experiment: axes, points, and filters over them.

use std::str::FromStr;

use udccp_base::{DataRate, Duration};
use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, Entry, FromNode, Node, Reader, Value};
use udccp_scenario::schema::{Limit, Percent};

/// One axis.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Its name, used as `$name` in the file.
    pub name: String,
    /// Its values, which replace `$name`.
    pub values: Vec<Node>,
}

/// Axes, and how often each point is run.
#[derive(Clone, Debug)]
pub struct Grid {
    /// The axes in the order of the file.
    pub axes: Vec<Axis>,
    /// Runs of each point, each with a different seed.
    pub runs: u64,
    /// Runs of each point with `--quick`; 0 omits the point.
    pub quick_runs: u64,
    /// The seed from which all runs' seeds are derived.
    pub seed: u64,
}

/// One point of the grid: a value (as its label) for each axis, in the order of the axes.
pub type Point = Vec<(String, String)>;

/// Keys of `[grid]` that are not axes.
const SETTINGS: [&str; 3] = ["runs", "quick_runs", "seed"];

/// Most runs of a point, as for `--runs`.
const MAX_RUNS_OF_A_POINT: u64 = 100_000;

/// Most runs of a case: all their scenarios are in memory at once.
const MAX_RUNS: u64 = 1_000_000;

impl Axis {
    /// The labels of the values.
    pub fn labels(&self) -> Vec<String> {
        self.values.iter().map(Node::label).collect()
    }
}

impl Default for Grid {
    fn default() -> Self {
        Self { axes: Vec::new(), runs: 1, quick_runs: 1, seed: 1 }
    }
}

impl Grid {
    /// All points; the last axis changes fastest. Without axes there is one empty point.
    pub fn points(&self) -> Vec<Point> {
        let mut points = vec![Point::new()];
        for axis in &self.axes {
            let labels = axis.labels();
            let extend = |p: &Point| {
                labels
                    .iter()
                    .map(|l| {
                        let mut longer = p.clone();
                        longer.push((axis.name.clone(), l.clone()));
                        longer
                    })
                    .collect::<Vec<_>>()
            };
            points = points.iter().flat_map(extend).collect();
        }
        points
    }

    /// Reports a grid that is too large to plan: one zero or axis too many made even `lab status`
    /// exhaust the memory.
    pub(super) fn check_size(&self, node: &Node, errors: &DiagnosticSink) -> Option<()> {
        let values = self.axes.iter().map(|axis| axis.values.len() as u64);
        let points = values.fold(1, u64::saturating_mul);
        if points.saturating_mul(self.runs) <= MAX_RUNS {
            return Some(());
        }
        let error =
            format!("{points} points with {} runs each are more than {MAX_RUNS} runs", self.runs);
        let hint = "remove values or axes, or lower `runs`";
        errors.push(Diagnostic::at(&super::context::first_line(&node.span), error).hint(hint));
        None
    }

    /// The axis of this name.
    pub fn axis(&self, name: &str) -> Option<&Axis> {
        self.axes.iter().find(|a| a.name == name)
    }

    /// The axis values of a point, as nodes.
    pub fn values<'a>(&'a self, point: &'a [(String, String)]) -> Vec<(&'a str, &'a Node)> {
        point
            .iter()
            .filter_map(|(name, label)| {
                let axis = self.axis(name)?;
                let value = axis.values.iter().find(|v| v.label() == *label)?;
                Some((name.as_str(), value))
            })
            .collect()
    }

    /// The labels that belong to axes.
    pub fn on_axes(&self, labels: &[(String, String)]) -> Point {
        labels.iter().filter(|(name, _)| self.axis(name).is_some()).cloned().collect()
    }

    /// Names of the axes.
    pub fn names(&self) -> Vec<&str> {
        self.axes.iter().map(|a| a.name.as_str()).collect()
    }
}

impl FromNode for Grid {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[grid]", errors)?;
        let runs = read_runs(&mut reader, node).unwrap_or(1);
        let quick_runs = reader.or("quick_runs", runs.min(2));
        let seed = reader.or("seed", 1);
        let axes = node.entries().iter().filter(|e| !SETTINGS.contains(&e.key.as_str()));
        let axes: Vec<Option<Axis>> = axes.map(|e| read_axis(e, errors)).collect();
        Some(Self { axes: axes.into_iter().collect::<Option<_>>()?, runs, quick_runs, seed })
    }
}

/// Reads `runs`, which must be at least one and small enough to plan.
pub(super) fn read_runs(reader: &mut Reader<'_>, node: &Node) -> Option<u64> {
    let runs = reader.want("runs");
    if let (Some(0), Some(at)) = (runs, node.get("runs")) {
        reader.errors().push(Diagnostic::at(&at.span, "`runs` is at least 1"));
    }
    if let (Some(_), Some(at)) = (runs.filter(|&n| n > MAX_RUNS_OF_A_POINT), node.get("runs")) {
        let error = format!("`runs` is at most {MAX_RUNS_OF_A_POINT}");
        reader.errors().push(Diagnostic::at(&at.span, error));
        return Some(1);
    }
    runs
}

impl Grid {
    /// Reads the axes of a case, whose runs and seed are given next to its grid.
    pub(super) fn read_axes(node: &Node, errors: &DiagnosticSink) -> Option<Vec<Axis>> {
        Reader::new(node, "case.grid", errors)?;
        let mut axes = Vec::new();
        for entry in node.entries() {
            if SETTINGS.contains(&entry.key.as_str()) {
                let error = format!("`{}` of a case does not belong in its grid", entry.key);
                let hint = format!("write `{}` in [[case]], above [case.grid]", entry.key);
                errors.push(Diagnostic::at(&entry.key_span, error).hint(hint));
                continue;
            }
            axes.push(read_axis(entry, errors)?);
        }
        Some(axes)
    }
}

/// Whether two values are one point: the same text, or one quantity in two units.
fn is_same(a: &str, b: &str) -> bool {
    fn alike<T: FromStr + PartialEq>(a: &str, b: &str) -> bool {
        a.parse::<T>().is_ok_and(|a| b.parse().is_ok_and(|b: T| a == b))
    }
    a == b
        || alike::<Duration>(a, b)
        || alike::<DataRate>(a, b)
        || alike::<Percent>(a, b)
        || alike::<Limit>(a, b)
}

fn read_axis(entry: &Entry, errors: &DiagnosticSink) -> Option<Axis> {
    let name = &entry.key;
    let Value::List(values) = &entry.node.value else {
        let error = format!("axis `{name}` must be a list of values, found {}", entry.node.kind());
        let hint = suggestion(name, "keys of [grid] that are no axes", &SETTINGS);
        errors.push(Diagnostic::at(&entry.key_span, error).hint(hint));
        return None;
    };
    if values.is_empty() {
        errors.push(Diagnostic::at(&entry.node.span, format!("axis `{name}` has no values")));
    }
    for (i, value) in values.iter().enumerate() {
        if let Some(same) = values[..i].iter().find(|v| is_same(&v.label(), &value.label())) {
            let (first, second) = (same.label(), value.label());
            let error = match first == second {
                true => format!("axis `{name}` has \"{second}\" twice"),
                false => format!("axis `{name}` has \"{second}\", which is \"{first}\" again"),
            };
            errors.push(Diagnostic::at(&value.span, error));
        }
    }
    Some(Axis { name: name.clone(), values: values.clone() })
}

/// A selection of points: the selected values of each named axis. Empty selects all.
#[derive(Clone, Debug, Default)]
pub struct Filter(pub Vec<(String, Vec<String>)>);

impl Filter {
    /// Whether it selects a point (or any list of keys and values).
    pub fn matches(&self, point: &[(String, String)]) -> bool {
        self.0.iter().all(|(axis, values)| {
            point.iter().any(|(name, label)| name == axis && values.contains(label))
        })
    }

    /// Whether it selects a label of a key. Keys that it does not name are not restricted.
    pub fn allows(&self, key: &str, label: &String) -> bool {
        self.0.iter().all(|(axis, values)| axis != key || values.contains(label))
    }

    /// Whether it selects all of these labels; keys that are absent do not matter.
    pub fn allows_all(&self, labels: &[(String, String)]) -> bool {
        labels.iter().all(|(key, label)| self.allows(key, label))
    }

    /// The part that restricts these keys.
    pub fn of_keys(&self, keys: &[&str]) -> Self {
        Self(self.0.iter().filter(|(k, _)| keys.contains(&k.as_str())).cloned().collect())
    }

    /// Reads `{ axis = ["value"], ... }` and checks every axis and value. `flows` are the allowed
    /// values of the key `flow`.
    pub fn read(node: &Node, grid: &Grid, flows: &[String], errors: &DiagnosticSink) -> Self {
        Self::read_with(node, grid, flows, &[], errors)
    }

    /// The same, with the allowed values of the key `metric`.
    pub fn read_with(
        node: &Node,
        grid: &Grid,
        flows: &[String],
        metrics: &[String],
        errors: &DiagnosticSink,
    ) -> Self {
        if !matches!(node.value, Value::Table(_)) {
            let error = format!("a selection must be a table, found {}", node.kind());
            errors.push(Diagnostic::at(&node.span, error).hint("write { axis = [\"value\"] }"));
        }
        let mut parts = Vec::new();
        for entry in node.entries() {
            let known = match grid.axis(&entry.key) {
                Some(axis) => axis.labels(),
                None if entry.key == "flow" && !flows.is_empty() => flows.to_vec(),
                None if entry.key == "metric" && metrics.len() > 1 => metrics.to_vec(),
                None => {
                    let mut names = grid.names();
                    if !flows.is_empty() {
                        names.push("flow");
                    }
                    if metrics.len() > 1 {
                        names.push("metric");
                    }
                    let error = format!("there is no grid axis `{}`", entry.key);
                    let hint = suggestion(&entry.key, "choose from", &names);
                    errors.push(Diagnostic::at(&entry.key_span, error).hint(hint));
                    continue;
                }
            };
            let values = match &entry.node.value {
                Value::List(values) => values.iter().collect(),
                _ => vec![&entry.node],
            };
            for value in &values {
                check_value(value, &entry.key, &known, errors);
            }
            parts.push((entry.key.clone(), values.iter().map(|v| v.label()).collect()));
        }
        Self(parts)
    }
}

fn check_value(value: &Node, axis: &str, known: &[String], errors: &DiagnosticSink) {
    let label = value.label();
    // An axis without values is reported at the axis itself.
    if !known.is_empty() && !known.contains(&label) {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let error = format!("`{axis}` has no value \"{label}\"");
        let hint = suggestion(&label, "values", &names);
        errors.push(Diagnostic::at(&value.span, error).hint(hint));
    }
}
