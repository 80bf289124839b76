//! A whole file: the scenario as a template, and everything around it.

use std::path::{Path, PathBuf};

use super::claim::{Claim, Explanation};
use super::grid::{Axis, Filter, Grid, Point};
use super::scenario::{SCHEMA, Scenario};
use super::table::{Context, Figure, Table};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{self, Faults, FromNode, Node, Override, Reader, Value};

/// One experiment (or a bare scenario, whose grid is one point).
#[derive(Debug)]
pub struct Experiment {
    /// Its name.
    pub id: String,
    /// The question that it asks.
    pub asks: String,
    /// The file that it was read from.
    pub path: PathBuf,
    /// The study that it regenerates.
    pub study: Option<Study>,
    /// Axes and runs.
    pub grid: Grid,
    /// The same experiment with something changed.
    pub variants: Vec<Variant>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// Explanations of differences.
    pub explanations: Vec<Explanation>,
    /// What the study leaves open.
    pub assumptions: Vec<Assumption>,
    template: Node,
}

/// A published study.
#[derive(Clone, Debug)]
pub struct Study {
    /// Its title.
    pub title: String,
    /// Its authors.
    pub authors: String,
    /// Where and when it appeared.
    pub published: String,
}

/// A choice where the study leaves something open.
#[derive(Clone, Debug)]
pub struct Assumption {
    /// What is left open.
    pub about: String,
    /// What was chosen.
    pub choice: String,
    /// Why.
    pub reason: String,
}

/// The experiment with some keys changed, run at some of its points.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub id: String,
    /// What it changes, in words.
    pub says: String,
    /// At which points.
    pub filter: Filter,
    /// What it changes.
    pub changes: Vec<Override>,
}

impl Experiment {
    /// Reads a file and checks all of it: every grid point, variant and reference.
    ///
    /// # Errors
    /// Everything that is wrong, with the lines.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        Self::from_node(document::load(path)?, path)
    }

    /// Reads a tree; relative paths in it are relative to the folder above that of `path`, as
    /// `experiments/x.toml` names `reference/x.csv` beside its folder, or else to its folder.
    ///
    /// # Errors
    /// Everything that is wrong, with the lines.
    pub fn from_node(root: Node, path: &Path) -> Result<Self, Diagnostics> {
        let faults = Faults::default();
        let experiment = Self::read(root, path, &faults);
        if let Some(experiment) = &experiment {
            experiment.check_points(&faults);
        }
        faults.finish(experiment)
    }

    fn read(root: Node, path: &Path, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(&root, "the file", faults)?;
        check_schema(&mut reader, &root, faults);
        let id: Option<String> = reader.need("id");
        let asks = reader.or("asks", String::new());
        for part in ["topology", "time", "flow"] {
            reader.raw(part);
        }
        let study = reader.want::<Study>("study");
        let grid = reader.or("grid", Grid::default());
        let flows: Vec<String> = root.get("flow").map(flow_names).unwrap_or_default();
        let base = base_folder(path);
        let [tables, variants] = ["table", "variant"].map(|key| ids(&root, key));
        let context = Context {
            grid: &grid,
            flows: &flows,
            tables: &tables,
            variants: &variants,
            base: &base,
            faults,
        };
        let variants = all(reader.tables("variant"), |n| Variant::read(n, &context));
        let tables = all(reader.tables("table"), |n| Table::read(n, &context));
        let figures = all(reader.tables("figure"), |n| Figure::read(n, &context));
        let claims = all(reader.tables("claim"), |n| Claim::read(n, &context));
        let explanations = all(reader.tables("explanation"), |n| Explanation::read(n, &context));
        let assumptions = all(reader.tables("assumption"), |n| Assumption::from_node(n, faults));
        reader.finish();
        let (id, path) = (id?, path.to_owned());
        let template = root.clone();
        Some(Self {
            id,
            asks,
            path,
            study,
            grid,
            variants,
            tables,
            figures,
            claims,
            explanations,
            assumptions,
            template,
        })
    }

    /// Every point and variant is read once, so that no run of a campaign meets a wrong key.
    fn check_points(&self, faults: &Faults) {
        let collect = |result: Result<Scenario, Diagnostics>| {
            if let Err(found) = result {
                found.0.into_iter().for_each(|f| faults.push(f));
            }
        };
        for point in self.grid.points() {
            collect(self.scenario(&point, None));
            for variant in self.variants.iter().filter(|v| v.filter.matches(&point)) {
                collect(self.scenario(&point, Some(variant)));
            }
        }
        let text = self.text();
        let unused = |axis: &&Axis| !text.contains(&format!("\"${}\"", axis.name));
        for axis in self.grid.axes.iter().filter(unused) {
            let Some(first) = axis.values.first() else { continue };
            let fault = format!("axis `{}` is never used", axis.name);
            let hint = format!("write \"${}\" where its value belongs", axis.name);
            faults.push(Diagnostic::at(&first.span, fault).hint(hint));
        }
    }

    /// The scenario at a grid point, with the changes of a variant.
    ///
    /// # Errors
    /// What is wrong with it, with the lines.
    pub fn scenario(
        &self,
        point: &Point,
        variant: Option<&Variant>,
    ) -> Result<Scenario, Diagnostics> {
        let changes = variant.map(|v| v.changes.as_slice()).unwrap_or_default();
        self.scenario_with(point, changes)
    }

    /// The scenario at a grid point, with changes.
    ///
    /// # Errors
    /// What is wrong with it, with the lines.
    pub fn scenario_with(
        &self,
        point: &Point,
        changes: &[Override],
    ) -> Result<Scenario, Diagnostics> {
        let mut root = self.template.clone();
        for change in changes {
            document::set(&mut root, change)?;
        }
        let axes = self.grid.values(point);
        if let Value::Table(entries) = &mut root.value {
            for entry in entries.iter_mut() {
                if ["topology", "time", "flow"].contains(&entry.key.as_str()) {
                    document::substitute(&mut entry.node, &axes)?;
                }
            }
        }
        Scenario::read(&root)
    }

    /// The names of the flows.
    pub fn flows(&self) -> Vec<String> {
        self.template.get("flow").map(flow_names).unwrap_or_default()
    }

    /// The table of this name.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.id == id)
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.template.span.source.text
    }
}

fn all<T>(nodes: Vec<&Node>, read: impl Fn(&Node) -> Option<T>) -> Vec<T> {
    nodes.into_iter().filter_map(read).collect()
}

fn check_schema(reader: &mut Reader<'_>, root: &Node, faults: &Faults) {
    if let Some(schema) = reader.need::<u64>("schema")
        && schema != SCHEMA
        && let Some(node) = root.get("schema")
    {
        let fault = format!("schema {schema} is not known to this program");
        faults.push(Diagnostic::at(&node.span, fault).hint(format!("it reads schema {SCHEMA}")));
    }
}

/// The `id` of every `[[key]]`, whether or not the rest of it can be read.
fn ids(root: &Node, key: &str) -> Vec<String> {
    let Some(Value::List(items)) = root.get(key).map(|n| &n.value) else { return Vec::new() };
    items.iter().filter_map(|n| n.get("id")).map(Node::label).collect()
}

fn flow_names(flows: &Node) -> Vec<String> {
    let Value::List(flows) = &flows.value else { return Vec::new() };
    flows.iter().filter_map(|f| f.get("name")).map(Node::label).collect()
}

fn base_folder(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let above = match folder.parent() {
        Some(above) if folder.ends_with("experiments") => above,
        _ => folder,
    };
    if above.as_os_str().is_empty() { PathBuf::from(".") } else { above.to_owned() }
}

impl FromNode for Study {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "[study]", faults)?;
        let (title, authors) = (reader.need("title"), reader.need("authors"));
        let published = reader.need("published");
        reader.finish();
        Some(Self { title: title?, authors: authors?, published: published? })
    }
}

impl FromNode for Assumption {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "[[assumption]]", faults)?;
        let (about, choice) = (reader.need("about"), reader.need("choice"));
        let reason = reader.need("reason");
        reader.finish();
        Some(Self { about: about?, choice: choice?, reason: reason? })
    }
}

impl Variant {
    fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let mut reader = Reader::new(node, "[[variant]]", context.faults)?;
        let id = reader.need("id");
        let says = reader.need("says");
        let filter = context.filter(&mut reader, "where");
        let set: Option<Node> = reader.need("set");
        reader.finish();
        let change = |e: &document::Entry| Override {
            path: e.key.clone(),
            span: e.key_span.clone(),
            node: e.node.clone(),
        };
        let changes = set?.entries().iter().map(change).collect();
        Some(Self { id: id?, says: says?, filter, changes })
    }
}
