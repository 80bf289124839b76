//! The source of the weights of a normalised metric.

use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{Node, Reader};

use super::super::context::{Context, View};
use super::super::grid::{Grid, Point};

/// Runs in which each protocol is among flows of its own kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The case with these runs.
    pub case: String,
    /// The axis of that case that selects the protocol.
    pub axis: String,
    /// Factor from the measured to the expected rate: 1, unless a study's numbers suggest more.
    pub times: f64,
    /// Axes on which the reference runs are at a fixed value, not at that of the weighted point.
    pub at: Point,
    /// Whether the rates of the weighted point are averaged over its runs before they are
    /// compared, which gives one value instead of one for each run.
    pub averaged: bool,
}

impl Weights {
    pub(super) fn read(node: &Node, context: &Context<'_>, view: &View) -> Option<Self> {
        let mut reader = Reader::new(node, "weights", context.errors)?;
        let case: Option<String> = reader.need("case");
        let axis: Option<String> = reader.need("axis");
        let times: f64 = reader.or("times", 1.0);
        let averaged: bool = reader.or("averaged", false);
        let fixed = reader.raw("at");
        reader.finish();
        let (case, axis) = (case?, axis?);
        if times <= 0.0 {
            let at = node.get("times").map_or(&node.span, |n| &n.span);
            context.errors.push(Diagnostic::at(at, "`times` must be above 0"));
            return None;
        }
        let at = node.get("case").map_or(&node.span, |n| &n.span);
        let part = context.case_named(&case, at)?;
        let Some(_) = part.grid.axis(&axis) else {
            let at = node.get("axis").map_or(&node.span, |n| &n.span);
            let error = format!("case \"{case}\" has no axis `{axis}`");
            let hint = suggestion(&axis, "it has", &part.grid.names());
            context.errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        };
        let at = fixed.map_or(Some(Point::new()), |n| read_at(n, &part.grid, &axis, context))?;
        let is_fixed = |name: &str| at.iter().any(|(key, _)| key == name);
        // Every other axis of the self-runs must be determined by the point to be weighted.
        for other in part.grid.axes.iter().filter(|a| a.name != axis && !is_fixed(&a.name)) {
            if other.values.len() > 1 && view.grid.axis(&other.name).is_none() {
                let error = format!(
                    "case \"{case}\" has weights for each `{}`, which is not an axis here",
                    other.name
                );
                context.errors.push(Diagnostic::at(&node.span, error));
                return None;
            }
        }
        Some(Self { case, axis, times, at, averaged })
    }

    /// Whether the reference runs at `own` belong to the point to be weighted.
    pub(crate) fn is_at(&self, own: &Point, point: &Point) -> bool {
        own.iter().filter(|(key, _)| *key != self.axis).all(|(key, label)| {
            let value = |of: &Point| of.iter().find(|(k, _)| k == key).map(|(_, l)| l == label);
            value(&self.at).or_else(|| value(point)).unwrap_or(true)
        })
    }
}

/// Reads `at = { rtt = "25 ms" }`: other axes of the case, each with one of its values.
fn read_at(node: &Node, grid: &Grid, axis: &str, context: &Context<'_>) -> Option<Point> {
    let mut at = Point::new();
    for entry in node.entries() {
        let others = || grid.axes.iter().filter(|a| a.name != axis);
        let Some(found) = others().find(|a| a.name == entry.key) else {
            let names: Vec<&str> = others().map(|a| a.name.as_str()).collect();
            let error = format!("`at` cannot fix `{}`", entry.key);
            let hint = suggestion(&entry.key, "axes it can fix", &names);
            context.errors.push(Diagnostic::at(&entry.node.span, error).hint(hint));
            return None;
        };
        let labels = found.labels();
        let label = entry.node.label();
        if !labels.contains(&label) {
            let labels: Vec<&str> = labels.iter().map(String::as_str).collect();
            let error = format!("axis `{}` has no value \"{label}\"", found.name);
            let hint = suggestion(&label, "values", &labels);
            context.errors.push(Diagnostic::at(&entry.node.span, error).hint(hint));
            return None;
        }
        at.push((found.name.clone(), label));
    }
    Some(at)
}
