//! The file around a table, figure, claim or variant that is being read.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use udccp_scenario::diagnostic::{Diagnostic, Span, suggestion};
use udccp_scenario::document::{DiagnosticSink, Node, Reader, Value};

use super::case::Case;
use super::experiment::Variant;
use super::grid::{Axis, Filter, Grid};
use super::table::Table;

/// The axis that distinguishes cases in a table of several.
pub const CASE_AXIS: &str = "case";

/// The file around what is being read.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) parts: &'a [Case],
    pub(super) case_names: &'a [String],
    pub(super) variant_names: &'a [String],
    pub(super) variants: &'a [Variant],
    pub(super) table_names: &'a [String],
    pub(super) tables: &'a [Table],
    pub(super) base: &'a Path,
    pub(super) names: &'a Names,
    pub(super) errors: &'a DiagnosticSink,
}

/// The names of flows, cases and other labels in tables and figures: `[names]`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(Arc<BTreeMap<String, String>>);

impl Names {
    /// The name of a label in the file; `None` if it has none.
    pub fn of(&self, label: &str) -> Option<&str> {
        self.0.get(label).map(String::as_str)
    }

    /// The same names, with another one for one label.
    pub(crate) fn with(&self, label: &str, name: &str) -> Self {
        let mut names = (*self.0).clone();
        names.insert(label.to_owned(), name.to_owned());
        Self(Arc::new(names))
    }

    /// Reads `[names]`. Every key must be an existing label.
    pub(super) fn read(node: Option<&Node>, parts: &[Case], errors: &DiagnosticSink) -> Self {
        let Some(node) = node else { return Self::default() };
        let Value::Table(entries) = &node.value else {
            let error = Diagnostic::at(&node.span, "[names] is a table");
            errors.push(error.hint("write [names] and, below it, tcp_sack = \"TCP\""));
            return Self::default();
        };
        let mut known: Vec<String> = Vec::new();
        for part in parts {
            known.extend(part.id.clone());
            known.extend(part.flows.iter().cloned());
            known.extend(part.grid.axes.iter().flat_map(Axis::labels));
        }
        let mut names = BTreeMap::new();
        for entry in entries {
            let (label, known_labels) = (&entry.key, known.iter().map(String::as_str));
            let known_labels: Vec<&str> = known_labels.collect();
            if !known_labels.contains(&label.as_str()) {
                let error = format!("there is no flow, case or value \"{label}\"");
                let hint = suggestion(label, "choose from", &known_labels);
                errors.push(Diagnostic::at(&entry.key_span, error).hint(hint));
            }
            if let Some(name) = udccp_scenario::document::FromNode::from_node(&entry.node, errors) {
                names.insert(label.clone(), name);
            }
        }
        Self(Arc::new(names))
    }
}

/// The axes and flows that a table, claim or variant may refer to: those of its cases.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// The cases; `None` is the file without its cases.
    pub cases: Vec<Option<String>>,
    /// Their combined axes; also the axis `case` if there are several.
    pub grid: Grid,
    /// Their combined flows.
    pub flows: Vec<String>,
    /// Names of their labels.
    pub names: Names,
}

impl Context<'_> {
    /// Reads `case = "id"` (or several ids, if `many`) and combines their axes and flows.
    pub(super) fn view(&self, reader: &mut Reader<'_>, many: bool) -> Option<View> {
        let Some(node) = reader.raw("case") else {
            return self.view_of(&[None], reader.span());
        };
        let nodes: Vec<&Node> = match &node.value {
            Value::List(items) if many => items.iter().collect(),
            _ => vec![node],
        };
        let mut cases = Vec::new();
        for node in nodes {
            let id: String = udccp_scenario::document::FromNode::from_node(node, self.errors)?;
            self.case_named(&id, &node.span)?;
            cases.push(Some(id));
        }
        self.view_of(&cases, &node.span)
    }

    /// The case of this name. An error if there is none.
    pub(super) fn case_named(&self, id: &str, span: &Span) -> Option<&Case> {
        let found = self.parts.iter().find(|p| p.id.as_deref() == Some(id));
        if found.is_some() {
            return found;
        }
        // A case with errors is known by name; its errors are reported at its place.
        if !self.case_names.iter().any(|name| name == id) {
            let names: Vec<&str> = self.case_names.iter().map(String::as_str).collect();
            let error = Diagnostic::at(span, format!("there is no case \"{id}\""));
            let hint = match names.is_empty() {
                true => "this file has no [[case]]".to_owned(),
                false => suggestion(id, "cases", &names),
            };
            self.errors.push(error.hint(hint));
        }
        None
    }

    fn view_of(&self, cases: &[Option<String>], span: &Span) -> Option<View> {
        let names = self.names.clone();
        let mut view = View { cases: cases.to_vec(), names, ..View::default() };
        for case in cases {
            let Some(part) = self.parts.iter().find(|p| p.id == *case) else {
                let names: Vec<&str> = self.parts.iter().filter_map(|p| p.id.as_deref()).collect();
                let error = "this file has only cases: name one";
                let error = Diagnostic::at(&first_line(span), error);
                self.errors.push(error.hint(format!("case = one of: {}", names.join(", "))));
                return None;
            };
            view.add(part);
        }
        if cases.len() > 1 {
            let values = cases.iter().flatten();
            let node = |id: &String| Node { span: span.clone(), value: Value::Text(id.clone()) };
            let axis = Axis { name: CASE_AXIS.to_owned(), values: values.map(node).collect() };
            view.grid.axes.insert(0, axis);
        }
        Some(view)
    }

    /// Reads `table = "name"` and checks that it exists; `None` also where that table has errors.
    pub(super) fn table(&self, reader: &mut Reader<'_>) -> Option<&Table> {
        let name: String = reader.need("table")?;
        let span = reader.raw("table").map_or(reader.span(), |n| &n.span);
        self.table_named(&name, span)
    }

    /// The table of this name. An error if there is none.
    pub(super) fn table_named(&self, name: &str, span: &Span) -> Option<&Table> {
        self.check_name(name, "table", self.table_names, span);
        self.tables.iter().find(|t| t.id == name)
    }

    /// Reads `variant = "name"`, which has to be a variant of one of the view's cases.
    pub(super) fn check_variant(&self, name: &str, view: &View, span: &Span) {
        self.check_name(name, "variant", self.variant_names, span);
        let Some(variant) = self.variants.iter().find(|v| v.id == name) else { return };
        if !view.cases.contains(&variant.case) {
            let of = |case: &Option<String>| match case {
                Some(id) => format!("case \"{id}\""),
                None => "the file itself".to_owned(),
            };
            let meant: Vec<String> = view.cases.iter().map(of).collect();
            let error = format!("variant \"{name}\" changes {}", of(&variant.case));
            let hint = format!("this place shows {}", meant.join(", "));
            self.errors.push(Diagnostic::at(span, error).hint(hint));
        }
    }

    /// Reports a name that is not in the list.
    pub(super) fn check_name(&self, name: &str, what: &str, known: &[String], span: &Span) {
        if !known.iter().any(|k| k == name) {
            let names: Vec<&str> = known.iter().map(String::as_str).collect();
            let error = Diagnostic::at(span, format!("there is no {what} \"{name}\""));
            self.errors.push(error.hint(suggestion(name, &format!("{what}s"), &names)));
        }
    }

    /// Reports an axis that does not exist.
    pub(super) fn check_axis(&self, view: &View, name: &str, span: &Span) {
        if view.grid.axis(name).is_none() {
            let hint = suggestion(name, view.axes_are(), &view.grid.names());
            let error = Diagnostic::at(span, format!("there is no grid axis `{name}`"));
            self.errors.push(error.hint(hint));
        }
    }

    /// Reads the filter of `key`, empty if there is none.
    pub(super) fn filter(&self, reader: &mut Reader<'_>, view: &View, key: &'static str) -> Filter {
        let read = |n| Filter::read(n, &view.grid, &view.flows, self.errors);
        reader.raw(key).map(read).unwrap_or_default()
    }
}

impl View {
    fn add(&mut self, part: &Case) {
        for axis in &part.grid.axes {
            match self.grid.axes.iter_mut().find(|a| a.name == axis.name) {
                None => self.grid.axes.push(axis.clone()),
                Some(ours) => {
                    for value in &axis.values {
                        if !ours.values.iter().any(|v| v.label() == value.label()) {
                            ours.values.push(value.clone());
                        }
                    }
                }
            }
        }
        self.add_flows(part);
    }

    fn add_flows(&mut self, part: &Case) {
        for flow in &part.flows {
            if !self.flows.contains(flow) {
                self.flows.push(flow.clone());
            }
        }
    }

    /// Takes the flows of its cases anew, which a command line may have changed.
    pub(crate) fn renew_flows(&mut self, parts: &[Case]) {
        self.flows.clear();
        let of = |case: &Option<String>| parts.iter().find(|part| part.id == *case);
        let cases: Vec<&Case> = self.cases.iter().filter_map(of).collect();
        cases.into_iter().for_each(|part| self.add_flows(part));
    }

    fn axes_are(&self) -> &'static str {
        if self.cases == [None] { "axes of [grid]" } else { "axes of the case" }
    }
}

/// The first line of a table, which is enough to find it.
pub(super) fn first_line(span: &Span) -> Span {
    let text = &span.source.text[span.range.clone()];
    let end = span.range.start + text.find('\n').unwrap_or(text.len());
    Span { range: span.range.start..end, ..span.clone() }
}
