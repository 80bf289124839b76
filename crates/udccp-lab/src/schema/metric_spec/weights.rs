//! The source of the weights of a normalised metric.

use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{Node, Reader};

use super::super::context::{Context, View};

/// Runs in which each protocol is among flows of its own kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    /// The case with these runs.
    pub case: String,
    /// The axis of that case that selects the protocol.
    pub axis: String,
    /// Factor from the measured to the expected rate: 1, unless a study's numbers suggest more.
    pub times: f64,
}

impl Weights {
    pub(super) fn read(node: &Node, context: &Context<'_>, view: &View) -> Option<Self> {
        let mut reader = Reader::new(node, "weights", context.errors)?;
        let case: Option<String> = reader.need("case");
        let axis: Option<String> = reader.need("axis");
        let times: f64 = reader.or("times", 1.0);
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
        // Every other axis of the self-runs must be determined by the point to be weighted.
        for other in part.grid.axes.iter().filter(|a| a.name != axis) {
            if other.values.len() > 1 && view.grid.axis(&other.name).is_none() {
                let error = format!(
                    "case \"{case}\" has weights for each `{}`, which is not an axis here",
                    other.name
                );
                context.errors.push(Diagnostic::at(&node.span, error));
                return None;
            }
        }
        Some(Self { case, axis, times })
    }
}
