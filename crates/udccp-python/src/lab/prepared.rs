//! A scenario, read and checked once, that can be run with any number of seeds.

use std::path::Path;
use std::sync::Arc;

use pyo3::prelude::*;
use udccp_lab::schema::{Case, Experiment, Grid, Point, Scenario};
use udccp_scenario::document::{self, Override};
use udccp_scenario::{Diagnostic, Diagnostics, SourceText, Span, suggest};

use super::find;
use crate::{border, error};

/// The name of a scenario without a file.
const UNNAMED: &str = "<scenario>";

/// A scenario that is ready to run.
#[pyclass(frozen, module = "udccp._native")]
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    /// Its name in records.
    #[pyo3(get)]
    pub(crate) id: String,
    /// The question that it answers.
    #[pyo3(get)]
    asks: String,
    /// The seed of its file.
    #[pyo3(get)]
    pub(crate) seed: u64,
    /// The scenario itself.
    pub(crate) scenario: Arc<Scenario>,
}

/// Which run of a file to choose.
struct Choice {
    set: Vec<(String, String)>,
    case: Option<String>,
    variant: Option<String>,
}

#[pymethods]
impl Prepared {
    /// Reads a file, given by path or by name.
    #[staticmethod]
    fn from_file(
        py: Python<'_>,
        path: &str,
        set: Vec<(String, String)>,
        case: Option<String>,
        variant: Option<String>,
    ) -> PyResult<Self> {
        let choice = Choice { set, case, variant };
        let read = || {
            let experiment = Experiment::load(&find::file(Path::new(path))?)?;
            choice.prepare(experiment)
        };
        border::guard(py, || py.detach(read).map_err(|errors| error::scenario(py, &errors)))
    }

    /// Reads a scenario from JSON with the keys of a scenario file.
    #[staticmethod]
    fn from_json(
        py: Python<'_>,
        json: &str,
        set: Vec<(String, String)>,
        case: Option<String>,
        variant: Option<String>,
    ) -> PyResult<Self> {
        let choice = Choice { set, case, variant };
        let read = || {
            let root = document::parse(UNNAMED, toml_of(json)?)?;
            choice.prepare(Experiment::from_node(root, Path::new(UNNAMED))?)
        };
        border::guard(py, || py.detach(read).map_err(|errors| error::scenario(py, &errors)))
    }
}

/// Converts JSON to TOML, so that diagnostics can name lines.
fn toml_of(json: &str) -> Result<String, Diagnostics> {
    let wrong = |why: String| Diagnostic::whole(format!("{UNNAMED}: {why}"));
    let value: serde_json::Value = serde_json::from_str(json).map_err(|e| wrong(e.to_string()))?;
    Ok(toml::to_string(&value).map_err(|e| wrong(e.to_string()))?)
}

impl Choice {
    /// Prepares the chosen run of a file.
    fn prepare(&self, experiment: Experiment) -> Result<Prepared, Diagnostics> {
        let variant = match &self.variant {
            None => None,
            Some(id) => {
                let known: Vec<&str> = experiment.variants.iter().map(|v| v.id.as_str()).collect();
                let found = experiment.variants.iter().find(|v| v.id == *id);
                Some(found.ok_or_else(|| absent("variant", id, &known))?)
            }
        };
        let case = self.case.as_deref().or(variant.and_then(|v| v.case.as_deref()));
        let part = part(&experiment, case)?;
        let (point, set) = self.point(&part.grid)?;
        let mut changes = variant.map(|v| v.changes.clone()).unwrap_or_default();
        changes.extend(set);
        let scenario = Arc::new(part.scenario(&point, &changes)?);
        let seed = part.grid.seed;
        Ok(Prepared { seed, scenario, id: experiment.id, asks: experiment.asks })
    }

    /// The chosen grid point, and the changes that are not part of the grid.
    fn point(&self, grid: &Grid) -> Result<(Point, Vec<Override>), Diagnostics> {
        let mut changes = Vec::new();
        let mut point = Point::new();
        for (path, value) in &self.set {
            let change = change(path, value)?;
            match grid.axis(path) {
                Some(axis) => {
                    let (label, labels) = (change.node.label(), axis.labels());
                    if !labels.contains(&label) {
                        let error = format!("axis `{path}` has no value \"{label}\"");
                        let hint = format!("it has: {}", labels.join(", "));
                        return Err(Diagnostic::at(&change.node.span, error).hint(hint).into());
                    }
                    point.push((axis.name.clone(), label));
                }
                None => changes.push(change),
            }
        }
        let mut open = Vec::new();
        for axis in &grid.axes {
            if point.iter().any(|(name, _)| *name == axis.name) {
                continue;
            }
            let labels = axis.labels();
            match labels.as_slice() {
                [only] => point.push((axis.name.clone(), only.clone())),
                _ => open.push((axis.name.as_str(), labels)),
            }
        }
        if open.is_empty() { Ok((point, changes)) } else { Err(unchosen(&open)) }
    }
}

/// Says which axes need a value, all at once.
fn unchosen(open: &[(&str, Vec<String>)]) -> Diagnostics {
    let names: Vec<String> = open.iter().map(|(name, _)| format!("`{name}`")).collect();
    let error = match names.as_slice() {
        [name] => format!("the grid has an axis {name}: choose one value"),
        _ => format!("the grid has the axes {}: choose one value of each", names.join(", ")),
    };
    let first = |labels: &[String]| labels.first().cloned().unwrap_or_default();
    let items: Vec<String> =
        open.iter().map(|(name, labels)| format!("\"{name}\": \"{}\"", first(labels))).collect();
    let values = open.iter().map(|(name, labels)| format!("{name}: {}", labels.join(", ")));
    let values = values.collect::<Vec<_>>().join("; ");
    let hint = format!("set={{{}}} (choose from {values})", items.join(", "));
    Diagnostic::whole(error).hint(hint).into()
}

fn part<'a>(experiment: &'a Experiment, case: Option<&str>) -> Result<&'a Case, Diagnostics> {
    experiment.part(case).ok_or_else(|| {
        let known: Vec<&str> = experiment.parts.iter().filter_map(|p| p.id.as_deref()).collect();
        match case {
            Some(id) => absent("case", id, &known),
            None => Diagnostic::whole("this file has cases only")
                .hint(format!("case= one of: {}", known.join(", ")))
                .into(),
        }
    })
}

fn absent(what: &str, id: &str, known: &[&str]) -> Diagnostics {
    let error = Diagnostic::whole(format!("there is no {what} \"{id}\""));
    error.hint(suggest(id, "choose from", known)).into()
}

/// A change. Error messages call its place `set`, after the argument in Python.
fn change(path: &str, value: &str) -> Result<Override, Diagnostics> {
    let text = format!("{path}={value}");
    let mut change = Override::parse(&text)?;
    let source = Arc::new(SourceText { name: "set".to_owned(), text });
    let named = |span: &Span| Span { source: Arc::clone(&source), range: span.range.clone() };
    (change.span, change.node.span) = (named(&change.span), named(&change.node.span));
    Ok(change)
}
