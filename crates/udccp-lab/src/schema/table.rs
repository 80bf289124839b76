//! Tables: metrics arranged over axes, next to the published values.

use udccp_scenario::BACKENDS;
use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, Node, Reader, Value};

use super::choice::choose;
use super::context::{CASE_AXIS, Context, View};
use super::grid::{Filter, Point};
use super::metric_spec::MetricSpec;
use super::reference::Reference;

/// The key of rows and columns that distinguishes flows.
pub const FLOW_KEY: &str = "flow";
/// The key of rows and columns that distinguishes the metrics of a table.
pub const METRIC_KEY: &str = "metric";

/// A table. Its keys are the axes of its cases, and `flow`, `metric` and `case` if there are
/// several. Each key is in rows, in columns, or fixed by `where`.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name in claims and figures.
    pub id: String,
    /// Its heading.
    pub title: String,
    /// Its cases, with their axes and flows.
    pub view: View,
    /// The metrics that it shows.
    pub shown: Vec<MetricSpec>,
    /// The keys of rows, outermost first.
    pub rows: Vec<String>,
    /// The keys of columns, outermost first. For a tuple, the last one is `metric`.
    pub columns: Vec<String>,
    /// Whether the metrics of a point share one cell: ⟨a, b, c⟩.
    pub tuple: bool,
    /// The selected points.
    pub filter: Filter,
    /// The published values.
    pub reference: Option<Reference>,
    /// The backend that is the reference instead of published values.
    pub against: Option<String>,
    /// The variant whose runs it shows. Such a table asks "what if", so its differences need no
    /// reason. `None` is the experiment without variants.
    pub variant: Option<String>,
    /// What the reader should notice.
    pub says: Option<String>,
    /// Whether it is printed; otherwise it is only used by figures and claims.
    pub is_printed: bool,
}

impl Table {
    /// The labels of a key: values of an axis, flows, or metrics.
    pub fn labels(&self, key: &str) -> Vec<String> {
        let meant = |label: &String| self.filter.allows(key, label);
        self.all_labels(key).into_iter().filter(meant).collect()
    }

    /// The labels of a key, including those excluded by `where`.
    pub(super) fn all_labels(&self, key: &str) -> Vec<String> {
        match key {
            METRIC_KEY => self.shown.iter().map(|s| s.name.clone()).collect(),
            _ => match self.view.grid.axis(key) {
                Some(axis) => axis.labels(),
                None if key == FLOW_KEY => self.view.flows.clone(),
                None => Vec::new(),
            },
        }
    }

    /// Every combination of the labels of some keys; the last key changes fastest.
    pub fn combinations(&self, keys: &[String]) -> Vec<Point> {
        let mut all = vec![Point::new()];
        for key in keys {
            let labels = self.labels(key);
            let longer = |p: &Point| {
                let with = |l: &String| {
                    let mut p = p.clone();
                    p.push((key.clone(), l.clone()));
                    p
                };
                labels.iter().map(with).collect::<Vec<_>>()
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    /// The metric of a cell.
    pub fn shown_at(&self, labels: &[(String, String)]) -> Option<&MetricSpec> {
        match labels.iter().find(|(key, _)| key == METRIC_KEY) {
            Some((_, name)) => self.shown.iter().find(|s| s.name == *name),
            None => self.shown.first(),
        }
    }

    /// Reads a selection of its cells: `{ axis = ["value"], flow = "name", metric = "name" }`.
    pub(super) fn filter_of(&self, node: &Node, errors: &DiagnosticSink) -> Filter {
        let names: Vec<String> = self.shown.iter().map(|s| s.name.clone()).collect();
        let flows: &[String] = if self.is_per_flow() { &self.view.flows } else { &[] };
        Filter::read_with(node, &self.view.grid, flows, &names, errors)
    }

    /// The same from a key; all cells if the key is absent.
    pub(super) fn filter_of_key(&self, reader: &mut Reader<'_>, key: &'static str) -> Filter {
        let errors = reader.errors();
        reader.raw(key).map(|n| self.filter_of(n, errors)).unwrap_or_default()
    }

    /// Whether its values belong to flows.
    pub fn is_per_flow(&self) -> bool {
        self.shown.iter().any(|s| s.metric.is_per_flow())
    }

    pub(super) fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let label = node.get("id").map(Node::label).unwrap_or_default();
        let errors = context.errors;
        let mut reader = Reader::new(node, format!("[[table]] \"{label}\""), errors)?;
        let id: Option<String> = reader.need("id");
        let title = reader.want("title");
        let view = context.view(&mut reader, true);
        let place = view.clone().unwrap_or_default();
        let shown = MetricSpec::read_all(&mut reader, node, context, &place);
        let rows = read_keys(&mut reader, "rows");
        let columns = read_keys(&mut reader, "columns");
        let tuple = reader.or("tuple", false);
        let filter = reader.raw("where");
        let variant: Option<String> = reader.want("variant");
        let says = reader.want("says");
        let is_printed = reader.or("print", true);
        let reference = reader.raw("reference");
        let against = reader.raw("against").map(|n| (read_against(n, errors), n));
        reader.finish();
        if let (Some((_, at)), Some(_)) = (&against, reference) {
            let error = "a table is compared with published values or with a backend, not with \
                         both";
            errors.push(Diagnostic::at(&at.span, error).hint("keep one of the two"));
        }
        let (view, shown) = (view?, shown?);
        let title = title.unwrap_or_else(|| shown[0].metric.title().to_owned());
        let mut table = Self {
            id: id?,
            title,
            view,
            shown,
            rows,
            columns,
            tuple,
            filter: Filter::default(),
            reference: None,
            against: against.and_then(|(id, _)| id),
            variant,
            says,
            is_printed,
        };
        table.filter = filter.map(|n| table.filter_of(n, errors)).unwrap_or_default();
        table.place_keys(node, context)?;
        if let (Some(name), Some(at)) = (&table.variant, node.get("variant")) {
            context.check_variant(name, &table.view, &at.span);
        }
        if let Some(node) = reference {
            table.reference = Some(Reference::read(node, context, &table)?);
        }
        Some(table)
    }

    /// Checks the keys of rows and columns, and adds the implied ones.
    fn place_keys(&mut self, node: &Node, context: &Context<'_>) -> Option<()> {
        let many = |keys: &[String], key: &str| keys.iter().any(|k| k == key);
        let several = self.labels(METRIC_KEY).len() > 1;
        self.check_keys(node, context)?;
        if self.tuple
            && (!several || many(&self.rows, METRIC_KEY) || many(&self.columns, METRIC_KEY))
        {
            let at = node.get("tuple").map_or(&node.span, |n| &n.span);
            let error = "a tuple puts several metrics of a point in one cell";
            let hint =
                "write metrics = [...] with two or more, and no \"metric\" in rows or columns";
            context.errors.push(Diagnostic::at(at, error).hint(hint));
            return None;
        }
        let placed = |table: &Self, key: &str| many(&table.rows, key) || many(&table.columns, key);
        if self.is_per_flow() && self.labels(FLOW_KEY).len() > 1 && !placed(self, FLOW_KEY) {
            self.rows.push(FLOW_KEY.to_owned());
        }
        if several && !placed(self, METRIC_KEY) {
            self.columns.push(METRIC_KEY.to_owned());
        }
        for axis in &self.view.grid.axes {
            let n = self.labels(&axis.name).len();
            if n > 1 && !placed(self, &axis.name) {
                let error =
                    format!("axis `{}` has {n} values here, but a cell shows one", axis.name);
                let hint = format!(
                    "name it in rows or columns, or choose: where = {{ {} = [\"{}\"] }}",
                    axis.name,
                    axis.labels()[0]
                );
                let at = super::context::first_line(&node.span);
                context.errors.push(Diagnostic::at(&at, error).hint(hint));
                return None;
            }
        }
        Some(())
    }

    fn check_keys(&self, node: &Node, context: &Context<'_>) -> Option<()> {
        let mut known = self.view.grid.names();
        if self.is_per_flow() {
            known.push(FLOW_KEY);
        }
        if self.shown.len() > 1 {
            known.push(METRIC_KEY);
        }
        let mut seen: Vec<&str> = Vec::new();
        let mut is_fine = true;
        for (place, keys) in [("rows", &self.rows), ("columns", &self.columns)] {
            let at = node.get(place).map_or(&node.span, |n| &n.span);
            for key in keys {
                let error = if !known.contains(&key.as_str()) {
                    let hint = match key.as_str() {
                        FLOW_KEY => "this metric is for the whole network, not for \
                                     flows"
                            .to_owned(),
                        METRIC_KEY => "write metrics = [...] to show several".to_owned(),
                        CASE_AXIS => "write case = [\"one\", \"other\"] to join cases".to_owned(),
                        _ => suggestion(key, "choose from", &known),
                    };
                    Some((format!("there is no grid axis `{key}`"), hint))
                } else if seen.contains(&key.as_str()) {
                    Some((format!("`{key}` appears twice"), "leave one of the two out".to_owned()))
                } else {
                    None
                };
                seen.push(key);
                if let Some((error, hint)) = error {
                    context.errors.push(Diagnostic::at(at, error).hint(hint));
                    is_fine = false;
                }
            }
        }
        is_fine.then_some(())
    }
}

/// Reads `against = "linux"`.
fn read_against(node: &Node, errors: &DiagnosticSink) -> Option<String> {
    let ids = BACKENDS.map(|(id, _)| (id, id));
    choose(node, errors, "backend", &ids).map(str::to_owned)
}

/// Reads `rows = "key"` or `rows = ["outer", "inner"]`; empty if absent.
fn read_keys(reader: &mut Reader<'_>, key: &'static str) -> Vec<String> {
    let errors = reader.errors();
    let Some(node) = reader.raw(key) else { return Vec::new() };
    match &node.value {
        Value::Text(one) => vec![one.clone()],
        _ => udccp_scenario::document::FromNode::from_node(node, errors).unwrap_or_default(),
    }
}
