//! The parts of an experiment with a grid of their own: the file without its cases, and each
//! `[[case]]`.

use udccp_scenario::diagnostic::{Diagnostic, Diagnostics, suggestion};
use udccp_scenario::document::{self, DiagnosticSink, Node, Override, Reader, Value};
use udccp_scenario::schema::ignorable_options;

use super::Scenario;
use super::experiment::Variant;
use super::flow_names;
use super::grid::{Axis, Grid, Point, read_runs};
use super::metric_spec::group_of;

/// The tables that make up a run; a case can replace each.
pub(crate) const PARTS: [&str; 3] = ["topology", "time", "flow"];

/// A part: a scenario as a template, with the axes that complete it.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its name; `None` for the file without its cases.
    pub id: Option<String>,
    /// What it is, in words.
    pub says: String,
    /// Axes and runs.
    pub grid: Grid,
    /// The names of its flows.
    pub flows: Vec<String>,
    /// What `--quick` changes to shorten a run.
    pub quick: Vec<Override>,
    template: Node,
}

impl Case {
    /// The file without its cases.
    pub(super) fn base(root: &Node, grid: &Grid, quick: &[Override]) -> Self {
        Self {
            id: None,
            says: String::new(),
            grid: grid.clone(),
            flows: Vec::new(),
            quick: quick.to_vec(),
            template: root.clone(),
        }
        .with_flows()
    }

    /// Reads one `[[case]]` of a file.
    pub(super) fn read(
        node: &Node,
        root: &Node,
        file: &Grid,
        quick: &[Override],
        errors: &DiagnosticSink,
    ) -> Option<Self> {
        let label = node.get("id").map(Node::label).unwrap_or_default();
        let mut reader = Reader::new(node, format!("[[case]] \"{label}\""), errors)?;
        let id: Option<String> = reader.need("id");
        let says = reader.or("says", String::new());
        let runs = read_runs(&mut reader, node);
        let quick_runs: Option<u64> = reader.want("quick_runs");
        let seed = reader.or("seed", file.seed);
        let axes = reader.raw("grid").map(|n| Grid::read_axes(n, errors));
        let set = read_changes(&mut reader, "set", errors);
        let mut all_quick = quick.to_vec();
        all_quick.extend(read_changes(&mut reader, "quick_set", errors));
        let without: Vec<String> = reader.or("without", Vec::new());
        for part in PARTS {
            reader.raw(part);
        }
        reader.finish();
        check_id(id.as_deref(), node, errors);
        let runs_now = runs.unwrap_or(file.runs);
        let quick_now = quick_runs.unwrap_or_else(|| file.quick_runs.min(runs_now));
        let axes = axes.unwrap_or_else(|| Some(file.axes.clone()))?;
        let grid = Grid { axes, runs: runs_now, quick_runs: quick_now, seed };
        let mut template = with_parts(root, node);
        remove_flows(&mut template, node, &without, errors)?;
        for change in &set {
            if let Err(found) = document::set(&mut template, change) {
                found.0.into_iter().for_each(|f| errors.push(f));
                return None;
            }
        }
        let case = Self { id, says, grid, flows: Vec::new(), quick: all_quick, template };
        Some(case.with_flows())
    }

    fn with_flows(mut self) -> Self {
        self.find_flows();
        self
    }

    /// Notes the names of the flows of all points, those of a group side by side or, if no point is
    /// valid, as written in the file.
    fn find_flows(&mut self) {
        self.flows.clear();
        for point in self.points_of_flows() {
            let Ok(scenario) = self.scenario(&point, &[]) else { continue };
            for name in scenario.flows.into_iter().map(|f| f.name) {
                if !self.flows.contains(&name) {
                    let of_group = |known: &String| group_of(known) == group_of(&name);
                    let at = self.flows.iter().rposition(of_group);
                    self.flows.insert(at.map_or(self.flows.len(), |i| i + 1), name);
                }
            }
        }
        if self.flows.is_empty() {
            self.flows = self.template.get("flow").map(flow_names).unwrap_or_default();
        }
    }

    /// The points that may differ in their flows: each axis at its first value, except those that
    /// name or count flows.
    fn points_of_flows(&self) -> Vec<Point> {
        let flows = match self.template.get("flow").map(|node| &node.value) {
            Some(Value::List(flows)) => &flows[..],
            _ => &[],
        };
        let told = || flows.iter().flat_map(|flow| [flow.get("name"), flow.get("count")]).flatten();
        let tells = |axis: &Axis| told().any(|node| mentions(node, &format!("${}", axis.name)));
        let mut grid = self.grid.clone();
        for axis in &mut grid.axes {
            if !tells(axis) {
                axis.values.truncate(1);
            }
        }
        grid.points()
    }

    /// The scenario at a grid point, with changes.
    ///
    /// # Errors
    /// The errors in it, with lines; also a change from outside the file to an option that the
    /// flow's protocol does not use.
    pub fn scenario(&self, point: &Point, changes: &[Override]) -> Result<Scenario, Diagnostics> {
        changes.iter().try_for_each(|change| check_change(change, self.grid.names()))?;
        let tree = self.with(point, changes.iter())?;
        let scenario = Scenario::read(&tree)?;
        let file = &self.template.span;
        let mut new =
            ignorable_options(&tree).into_iter().filter(|(span, _)| !span.is_in_file_of(file));
        new.find_map(|(_, unused)| unused).map_or(Ok(scenario), |error| Err(error.into()))
    }

    /// The tree from which the scenario at a grid point is read: with values of axes and the
    /// changes of the variant, and shortened if `quick`. The changes of a variant apply last, also
    /// to its short runs.
    ///
    /// # Errors
    /// A change or an axis is invalid; the error has the line.
    pub(crate) fn tree(
        &self,
        point: &Point,
        variant: Option<&Variant>,
        quick: bool,
    ) -> Result<Node, Diagnostics> {
        let set = variant.into_iter().flat_map(|v| &v.changes);
        let own = variant.into_iter().flat_map(|v| &v.quick);
        let shorten = self.quick.iter().chain(own).filter(|_| quick);
        self.with(point, set.chain(shorten))
    }

    fn with<'c>(
        &self,
        point: &Point,
        changes: impl Iterator<Item = &'c Override>,
    ) -> Result<Node, Diagnostics> {
        let mut root = self.template.clone();
        for change in changes {
            document::set(&mut root, change)?;
        }
        let axes = self.grid.values(point);
        let whose = match &self.id {
            Some(id) => format!("axes of case \"{id}\" (its [case.grid] replaces [grid])"),
            None => "axes of [grid]".to_owned(),
        };
        if let Value::Table(entries) = &mut root.value {
            for entry in entries.iter_mut().filter(|e| PARTS.contains(&e.key.as_str())) {
                document::substitute(&mut entry.node, &axes, &whose)?;
            }
        }
        Ok(root)
    }

    /// The tree of a run, before the values of axes are inserted.
    pub(crate) fn template(&self) -> &Node {
        &self.template
    }

    /// Changes a key of every run, including short ones.
    ///
    /// # Errors
    /// The path goes through a value that is not a table.
    pub(crate) fn change(&mut self, change: &Override) -> Result<(), Diagnostics> {
        self.quick.retain(|quick| quick.path != change.path);
        document::set(&mut self.template, change)?;
        self.find_flows();
        Ok(())
    }

    /// The axes that neither the scenario nor one of these changes uses.
    pub(super) fn unused_axes(&self, changes: &[Override]) -> Vec<&Axis> {
        let used = |axis: &Axis| {
            let name = format!("${}", axis.name);
            let parts = PARTS.iter().filter_map(|p| self.template.get(p));
            parts.chain(changes.iter().map(|c| &c.node)).any(|n| mentions(n, &name))
        };
        self.grid.axes.iter().filter(|a| !used(a)).collect()
    }
}

/// A change of anything else than a run would have no effect, without notice.
///
/// # Errors
/// The path does not begin with a part of a run; the error has the most similar one or axis.
pub(crate) fn check_change<'a>(
    change: &Override,
    axes: impl IntoIterator<Item = &'a str>,
) -> Result<(), Diagnostic> {
    let head = change.path.split('.').next().unwrap_or_default();
    if PARTS.contains(&head) {
        return Ok(());
    }
    let mut known: Vec<&str> = PARTS.into_iter().chain(axes).collect();
    known.sort_unstable();
    known.dedup();
    let error = format!("`{}` is neither an axis nor a key of a run", change.path);
    let hint = suggestion(head, "axes and beginnings of keys", &known);
    let hint = match head {
        "seed" => format!("`udccp sim --seed` sets the seed of one run; {hint}"),
        _ => hint,
    };
    Err(Diagnostic::at(&change.span, error).hint(hint))
}

/// Reads `{ "path.to.key" = value }`. Only keys of a run can be changed.
pub(super) fn read_changes(
    reader: &mut Reader<'_>,
    key: &'static str,
    errors: &DiagnosticSink,
) -> Vec<Override> {
    let Some(node) = reader.raw(key) else { return Vec::new() };
    let mut changes = Vec::new();
    for entry in node.entries() {
        let head = entry.key.split('.').next().unwrap_or_default();
        if !PARTS.contains(&head) {
            let error = format!("`{key}` can change only keys of a run, and `{head}` is not one");
            let hint = suggestion(head, "a path begins with", &PARTS);
            errors.push(Diagnostic::at(&entry.key_span, error).hint(hint));
            continue;
        }
        changes.push(Override {
            path: entry.key.clone(),
            span: entry.key_span.clone(),
            node: entry.node.clone(),
        });
    }
    if node.entries().is_empty() {
        let error = format!("`{key}` changes nothing");
        let hint = format!("write {key} = {{ \"topology.bottleneck.loss\" = \"1 %\" }}");
        errors.push(Diagnostic::at(&node.span, error).hint(hint));
    }
    changes
}

/// A case's name is used in file names, in links and on the command line.
fn check_id(id: Option<&str>, node: &Node, errors: &DiagnosticSink) {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if id.is_some_and(|n| n.is_empty() || !n.chars().all(fine)) {
        let span = node.get("id").map_or(&node.span, |n| &n.span);
        let error = "a case's id is made of letters, digits, '-', '_' and '.'";
        errors.push(Diagnostic::at(span, error));
    }
}

/// The file with the parts that the case replaces.
fn with_parts(root: &Node, case: &Node) -> Node {
    let mut template = root.clone();
    let Value::Table(entries) = &mut template.value else { return template };
    for own in case.entries().iter().filter(|e| PARTS.contains(&e.key.as_str())) {
        match entries.iter_mut().find(|e| e.key == own.key) {
            Some(entry) => entry.node = own.node.clone(),
            None => entries.push(own.clone()),
        }
    }
    template
}

fn remove_flows(
    template: &mut Node,
    case: &Node,
    without: &[String],
    errors: &DiagnosticSink,
) -> Option<()> {
    let Some(at) = case.get("without") else { return Some(()) };
    if case.get("flow").is_some() {
        let error = "`without` removes flows of the file, but this case has its own flows";
        errors.push(Diagnostic::at(&at.span, error).hint("leave one of the two out"));
        return None;
    }
    let known = template.get("flow").map(flow_names).unwrap_or_default();
    for name in without.iter().filter(|n| !known.contains(n)) {
        let names: Vec<&str> = known.iter().map(String::as_str).collect();
        let error = Diagnostic::at(&at.span, format!("there is no flow \"{name}\""));
        errors.push(error.hint(suggestion(name, "flows", &names)));
    }
    let Value::Table(entries) = &mut template.value else { return Some(()) };
    for entry in entries.iter_mut().filter(|e| e.key == "flow") {
        if let Value::List(flows) = &mut entry.node.value {
            flows.retain(|f| f.get("name").is_none_or(|n| !without.contains(&n.label())));
        }
    }
    Some(())
}

fn mentions(node: &Node, text: &str) -> bool {
    match &node.value {
        Value::Text(t) => t == text,
        Value::List(items) => items.iter().any(|i| mentions(i, text)),
        Value::Table(entries) => entries.iter().any(|e| mentions(&e.node, text)),
        _ => false,
    }
}
