//! A whole experiment file: the scenario as a template, and everything around it.

use std::path::{Path, PathBuf};

use udccp_scenario::diagnostic::{Diagnostic, Diagnostics, Span, suggestion};
use udccp_scenario::document::{
    self, DiagnosticSink, FromNode, Node, Override, Reader, Value, base_folder,
};
use udccp_scenario::schema::ignorable_options;
use udccp_scenario::{BACKENDS, SIM};

use super::answer::Answer;
use super::calibrate::Calibration;
use super::case::{Case, read_changes};
use super::choice::choose;
use super::claim::{Claim, Explanation};
use super::context::{Context, Names, first_line};
use super::figure::Figure;
use super::grid::{Filter, Grid, Point, read_runs};
use super::table::Table;
use super::{SCHEMA, Scenario};
use crate::selection::Selection;

/// An experiment (or a plain scenario, whose grid is one point).
#[derive(Debug)]
pub struct Experiment {
    /// Its name.
    pub id: String,
    /// Its title, if no study gives one.
    pub title: Option<String>,
    /// The question of the experiment.
    pub asks: String,
    /// The file.
    pub path: PathBuf,
    /// The study that it reproduces.
    pub study: Option<Study>,
    /// The findings in words.
    pub summary: Option<Summary>,
    /// The question of a study that it answers.
    pub answer: Option<Answer>,
    /// The backends that it is made for, in addition to the simulator.
    pub backends: Vec<&'static str>,
    /// `[grid]`: axes, runs and seed of the file without its cases.
    pub grid: Grid,
    /// What is run: the file without its cases (unless it has only cases), then the cases.
    pub parts: Vec<Case>,
    /// The experiment with something changed.
    pub variants: Vec<Variant>,
    /// Tables.
    pub tables: Vec<Table>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// Explanations of differences.
    pub explanations: Vec<Explanation>,
    /// What the study does not say, and what was chosen.
    pub assumptions: Vec<Assumption>,
    /// How that is determined.
    pub calibration: Option<Calibration>,
    /// The part of the file that the command line selects.
    pub narrowed: Selection,
    root: Node,
}

/// The findings, one sentence each, from complete campaigns. The numbers are in the tables.
#[derive(Clone, Debug)]
pub struct Summary {
    /// What the study says; only if there is a study.
    pub says: Option<String>,
    /// Our findings.
    pub finds: String,
    /// Where the two differ, and why.
    pub differs: Option<String>,
    /// Its figure on the index page; by default the first.
    pub figure: Option<String>,
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

/// A choice where the study does not say something.
#[derive(Clone, Debug)]
pub struct Assumption {
    /// What the study does not say.
    pub about: String,
    /// What was chosen.
    pub choice: String,
    /// Why.
    pub reason: String,
}

/// The experiment with some keys changed, at some of its points.
#[derive(Clone, Debug)]
pub struct Variant {
    /// Its name.
    pub id: String,
    /// The case that it changes; `None` is the file without its cases.
    pub case: Option<String>,
    /// What it changes, in words.
    pub says: String,
    /// At which points.
    pub filter: Filter,
    /// The set-up of which it is a part, for variants that are one set-up but change different
    /// flows; otherwise what it changes is its set-up.
    pub set_up: Option<String>,
    /// Runs of each point, if different from the experiment's.
    pub runs: Option<u64>,
    /// The same with `--quick`; 0: no runs.
    pub quick_runs: Option<u64>,
    /// What it changes.
    pub changes: Vec<Override>,
    /// What `--quick` changes in addition, after the `quick_set` of its case.
    pub quick: Vec<Override>,
}

/// The places of the flows' options, each with the error if no point uses it.
#[derive(Default)]
struct Options(Vec<(Span, Option<Diagnostic>)>);

impl Options {
    /// The errors of those at places of this kind.
    fn unused(self, place: impl Fn(&Span) -> bool) -> impl Iterator<Item = Diagnostic> {
        self.0.into_iter().filter(move |(span, _)| place(span)).filter_map(|(_, unused)| unused)
    }

    fn add(&mut self, tree: &Node) {
        for (span, unused) in ignorable_options(tree) {
            match self.0.iter_mut().find(|(known, _)| *known == span) {
                Some((_, known)) if unused.is_none() => *known = None,
                Some(_) => {}
                None => self.0.push((span, unused)),
            }
        }
    }
}

impl Experiment {
    /// Reads a file and checks it completely: every grid point, variant and reference.
    ///
    /// # Errors
    /// All errors, with lines.
    pub fn load(path: &Path) -> Result<Self, Diagnostics> {
        Self::from_node(document::load(path)?, path)
    }

    /// Reads a tree. Relative paths in it are relative to the folder above that of `path`, so that
    /// `experiments/x.toml` can name `reference/x.csv`, otherwise to its own folder.
    ///
    /// # Errors
    /// All errors, with lines.
    pub fn from_node(root: Node, path: &Path) -> Result<Self, Diagnostics> {
        let errors = DiagnosticSink::default();
        let experiment = Self::read(root, path, &errors);
        if let Some(experiment) = &experiment {
            let options = experiment.check_points(&errors);
            options.unused(|_| true).for_each(|error| errors.push(error));
        }
        errors.finish(experiment)
    }

    fn read(root: Node, path: &Path, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(&root, "the file", errors)?;
        check_schema(&mut reader, &root, errors);
        let id = read_id(&mut reader, &root, errors);
        let title = reader.want("title");
        let asks = reader.or("asks", String::new());
        for part in ["topology", "time", "flow"] {
            reader.raw(part);
        }
        let study = reader.want::<Study>("study");
        let summary = reader.raw("summary").map(|n| Summary::read(n, &root, errors));
        let answer =
            reader.raw("answer").and_then(|n| Answer::read(n, &ids(&root, "claim"), errors));
        let backends = read_backends(&mut reader, errors);
        let grid = reader.or("grid", Grid::default());
        let parts = read_parts(&mut reader, &root, &grid, errors)?;
        let names = Names::read(reader.raw("names"), &parts, errors);
        let base = base_folder(path);
        let [case_names, table_names, variant_names] =
            ["case", "table", "variant"].map(|key| ids(&root, key));
        let context = Context {
            parts: &parts,
            case_names: &case_names,
            variant_names: &variant_names,
            variants: &[],
            table_names: &table_names,
            tables: &[],
            base: &base,
            names: &names,
            errors,
        };
        let variants = all(reader.tables("variant"), |n| Variant::read(n, &context));
        let context = Context { variants: &variants, ..context };
        let tables = all(reader.tables("table"), |n| Table::read(n, &context));
        let context = Context { tables: &tables, ..context };
        let figures = all(reader.tables("figure"), |n| Figure::read(n, &context));
        let claims = all(reader.tables("claim"), |n| Claim::read(n, &context));
        let explanations = all(reader.tables("explanation"), |n| Explanation::read(n, &context));
        let calibration =
            reader.raw("calibrate").and_then(|n| Calibration::read(n, &table_names, errors));
        let assumptions = all(reader.tables("assumption"), |n| Assumption::from_node(n, errors));
        reader.finish();
        for key in ["table", "variant", "figure", "claim"] {
            check_ids(&root, key, errors);
        }
        check_figure_ids(&root, errors);
        let (id, path) = (id?, path.to_owned());
        let root = root.clone();
        Some(Self {
            id,
            title,
            asks,
            path,
            study,
            summary: summary.flatten(),
            answer,
            backends,
            grid,
            parts,
            variants,
            tables,
            figures,
            claims,
            explanations,
            assumptions,
            calibration,
            narrowed: Selection::default(),
            root,
        })
    }

    /// Reads every point and variant once, so that no run of a campaign fails because of an invalid
    /// key.
    fn check_points(&self, errors: &DiagnosticSink) -> Options {
        let mut options = Options::default();
        for part in &self.parts {
            let variants: Vec<&Variant> = self.variants_of(part).collect();
            for point in part.grid.points() {
                let matching = variants.iter().filter(|v| v.filter.matches(&point));
                for variant in core::iter::once(None).chain(matching.map(|v| Some(*v))) {
                    check_point(part, &point, variant, &mut options, errors);
                }
            }
            check_axes(part, &variants, errors);
        }
        options
    }

    /// All errors of a scenario after a change.
    pub(crate) fn recheck(&self) -> Vec<Diagnostic> {
        let errors = DiagnosticSink::default();
        let options = self.check_points(&errors);
        // What the file says for points that are now left out remains valid.
        let is_new = |span: &Span| !span.is_in_file_of(&self.root.span);
        options.unused(is_new).for_each(|error| errors.push(error));
        errors.finish(Some(())).err().map(|found| found.0).unwrap_or_default()
    }

    /// The part of this name; `None` is the file without its cases.
    pub fn part(&self, case: Option<&str>) -> Option<&Case> {
        self.parts.iter().find(|p| p.id.as_deref() == case)
    }

    /// The variants of a part.
    pub fn variants_of<'a>(&'a self, part: &'a Case) -> impl Iterator<Item = &'a Variant> {
        self.variants.iter().filter(|v| v.case == part.id)
    }

    /// The scenario of the file without its cases at a grid point, with changes.
    ///
    /// # Errors
    /// The errors in it, with lines; or the file has only cases.
    pub fn scenario_with(
        &self,
        point: &Point,
        changes: &[Override],
    ) -> Result<Scenario, Diagnostics> {
        let Some(part) = self.part(None) else {
            return Err(
                Diagnostic::at(&first_line(&self.root.span), "this file has cases only").into()
            );
        };
        part.scenario(point, changes)
    }

    /// The title: that of the study or of the file, otherwise its name.
    pub fn heading(&self) -> &str {
        let study = self.study.as_ref().map(|s| s.title.as_str());
        study.or(self.title.as_deref()).unwrap_or(&self.id)
    }

    /// The table of this name; `None` if there is none.
    pub fn table(&self, id: &str) -> Option<&Table> {
        self.tables.iter().find(|t| t.id == id)
    }

    /// The text of the file.
    pub fn text(&self) -> &str {
        &self.root.span.source.text
    }
}

/// The file without its cases, and its cases. If the file has cases and `[grid]` has no axes, only
/// the cases are run.
fn read_parts(
    reader: &mut Reader<'_>,
    root: &Node,
    grid: &Grid,
    errors: &DiagnosticSink,
) -> Option<Vec<Case>> {
    let quick = read_changes(reader, "quick_set", errors);
    let nodes = reader.tables("case");
    let mut parts = Vec::new();
    if nodes.is_empty() || !grid.axes.is_empty() {
        parts.push(Case::base(root, grid, &quick));
    }
    parts.extend(all(nodes, |n| Case::read(n, root, grid, &quick, errors)));
    check_ids(root, "case", errors);
    check_sizes(&parts, root, errors)?;
    Some(parts)
}

/// Reads the scenario of a point, in full length and shortened.
fn check_point(
    part: &Case,
    point: &Point,
    variant: Option<&Variant>,
    options: &mut Options,
    errors: &DiagnosticSink,
) {
    let read = |quick| {
        let tree = part.tree(point, variant, quick)?;
        Scenario::read(&tree).map(|_| tree)
    };
    match read(false) {
        Ok(tree) => options.add(&tree),
        Err(found) => return found.0.into_iter().for_each(|f| errors.push(f)),
    }
    for mut found in read(true).err().into_iter().flat_map(|found| found.0) {
        found.hint.get_or_insert_with(|| QUICK.to_owned());
        errors.push(found);
    }
}

/// Axes that neither a scenario of the part nor one of its variants uses.
fn check_axes(part: &Case, variants: &[&Variant], errors: &DiagnosticSink) {
    let changes: Vec<Override> = variants.iter().flat_map(|v| v.changes.iter().cloned()).collect();
    for axis in part.unused_axes(&changes) {
        let Some(first) = axis.values.first() else { continue };
        let error = format!("axis `{}` is never used", axis.name);
        let hint = format!("write \"${}\" where its value belongs", axis.name);
        errors.push(Diagnostic::at(&first.span, error).hint(hint));
    }
}

/// An experiment's name is used in file names: one with a path in it would be written elsewhere,
/// and `index` is the page of a report.
fn read_id(reader: &mut Reader<'_>, root: &Node, errors: &DiagnosticSink) -> Option<String> {
    let (id, node): (String, _) = (reader.need("id")?, root.get("id")?);
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
    if id.is_empty() || id.starts_with(['.', '-']) || !id.chars().all(fine) {
        let error = "an experiment's id is made of letters, digits, '-', '_' and '.'";
        let hint = "it names files, such as its page; begin with a letter or digit";
        errors.push(Diagnostic::at(&node.span, error).hint(hint));
    }
    if id == "index" {
        let error = "\"index\" is the page that lists all experiments";
        errors.push(Diagnostic::at(&node.span, error).hint("give this one another `id`"));
    }
    Some(id)
}

/// Checks that every grid can be planned.
fn check_sizes(parts: &[Case], root: &Node, errors: &DiagnosticSink) -> Option<()> {
    let place = |part: &Case| match (&part.id, root.get("case").map(|n| &n.value)) {
        (Some(id), Some(Value::List(cases))) => {
            cases.iter().find(|n| n.get("id").is_some_and(|n| n.label() == *id))
        }
        _ => root.get("grid"),
    };
    let fits = |part: &Case| part.grid.check_size(place(part).unwrap_or(root), errors);
    // All errors are reported, not only the first.
    let all: Vec<Option<()>> = parts.iter().map(fits).collect();
    all.into_iter().collect()
}

/// Reports an `id` that two elements of a list share.
fn check_ids(root: &Node, key: &str, errors: &DiagnosticSink) {
    let Some(Value::List(items)) = root.get(key).map(|n| &n.value) else { return };
    let ids: Vec<&Node> = items.iter().filter_map(|n| n.get("id")).collect();
    for (i, id) in ids.iter().enumerate() {
        if ids[..i].iter().any(|other| other.label() == id.label()) {
            let error = format!("two [[{key}]] are called \"{}\"", id.label());
            errors.push(Diagnostic::at(&id.span, error));
        }
    }
}

/// Tables and figures are on one page, with links to each by `id`.
fn check_figure_ids(root: &Node, errors: &DiagnosticSink) {
    let tables = ids(root, "table");
    let Some(Value::List(figures)) = root.get("figure").map(|n| &n.value) else { return };
    let ids = figures.iter().filter_map(|n| n.get("id"));
    for id in ids.filter(|id| tables.contains(&id.label())) {
        let name = id.label();
        let error = format!("a [[table]] and a [[figure]] are called \"{name}\"");
        let hint = format!("write id = \"{name}-figure\" for the figure");
        errors.push(Diagnostic::at(&id.span, error).hint(hint));
    }
}

/// What is valid for whole runs may not be for short ones.
const QUICK: &str = "this happens with the changes of `quick_set`: adjust or remove them";

fn all<T>(nodes: Vec<&Node>, read: impl Fn(&Node) -> Option<T>) -> Vec<T> {
    nodes.into_iter().filter_map(read).collect()
}

fn check_schema(reader: &mut Reader<'_>, root: &Node, errors: &DiagnosticSink) {
    if let Some(schema) = reader.need::<u64>("schema")
        && schema != SCHEMA
        && let Some(node) = root.get("schema")
    {
        let error = format!("this program does not know schema {schema}");
        errors.push(Diagnostic::at(&node.span, error).hint(format!("it reads schema {SCHEMA}")));
    }
}

/// The `id` of every `[[key]]`, whether or not the rest of it can be read.
fn ids(root: &Node, key: &str) -> Vec<String> {
    let Some(Value::List(items)) = root.get(key).map(|n| &n.value) else { return Vec::new() };
    items.iter().filter_map(|n| n.get("id")).map(Node::label).collect()
}

/// Reads `backends = ["linux"]`.
fn read_backends(reader: &mut Reader<'_>, errors: &DiagnosticSink) -> Vec<&'static str> {
    let ids = BACKENDS.map(|(id, _)| (id, id));
    let nodes: Vec<Node> = reader.or("backends", Vec::new());
    let found = nodes.iter().filter_map(|n| choose(n, errors, "backend", &ids));
    found.filter(|id| *id != SIM).collect()
}

impl Summary {
    fn read(node: &Node, root: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[summary]", errors)?;
        let is_study = root.get("study").is_some();
        let (mut says, mut differs) = (None, None);
        if is_study {
            (says, differs) = (reader.need("says"), reader.need("differs"));
        } else if let Some(at) = node.get("says") {
            let error = "`says` is the finding of a study, and this file has no [study]";
            errors.push(Diagnostic::at(&at.span, error).hint("write what came out under `finds`"));
            reader.raw("says");
        }
        let finds = reader.need("finds");
        let figure: Option<String> = reader.want("figure");
        let figures = ids(root, "figure");
        if let (Some(id), Some(at)) = (&figure, node.get("figure"))
            && !figures.contains(id)
        {
            let words: Vec<&str> = figures.iter().map(String::as_str).collect();
            let error = Diagnostic::at(&at.span, format!("there is no figure \"{id}\""));
            errors.push(error.hint(suggestion(id, "figures", &words)));
        }
        reader.finish();
        Some(Self { says, finds: finds?, differs, figure })
    }
}

impl FromNode for Study {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[study]", errors)?;
        let (title, authors) = (reader.need("title"), reader.need("authors"));
        let published = reader.need("published");
        reader.finish();
        Some(Self { title: title?, authors: authors?, published: published? })
    }
}

impl FromNode for Assumption {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[[assumption]]", errors)?;
        let (about, choice) = (reader.need("about"), reader.need("choice"));
        let reason = reader.need("reason");
        reader.finish();
        Some(Self { about: about?, choice: choice?, reason: reason? })
    }
}

impl Variant {
    fn read(node: &Node, context: &Context<'_>) -> Option<Self> {
        let mut reader = Reader::new(node, "[[variant]]", context.errors)?;
        let id = reader.need("id");
        let says = reader.need("says");
        let view = context.view(&mut reader, false);
        reader.raw("where");
        let filter = view.as_ref().map(|v| context.filter(&mut reader, v, "where"));
        let set_up = reader.want("set_up");
        let runs = read_runs(&mut reader, node);
        let quick_runs = reader.want("quick_runs");
        if node.get("set").is_none() {
            reader.need::<Node>("set");
        }
        let changes = read_changes(&mut reader, "set", context.errors);
        let quick = read_changes(&mut reader, "quick_set", context.errors);
        reader.finish();
        let case = view?.cases.into_iter().next().flatten();
        let (id, says, filter) = (id?, says?, filter?);
        Some(Self { id, case, says, filter, set_up, runs, quick_runs, changes, quick })
    }
}
