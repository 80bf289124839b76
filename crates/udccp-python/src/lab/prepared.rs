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
        for axis in &grid.axes {
            if point.iter().any(|(name, _)| *name == axis.name) {
                continue;
            }
            let labels = axis.labels();
            let [only] = labels.as_slice() else {
                let error = format!("the grid has an axis `{}`: choose one value", axis.name);
                let first = labels.first().map(String::as_str).unwrap_or_default();
                let hint = format!(
                    "set={{\"{}\": \"{first}\"}} (choose from: {})",
                    axis.name,
                    labels.join(", ")
                );
                return Err(Diagnostic::whole(error).hint(hint).into());
            };
            point.push((axis.name.clone(), only.clone()));
        }
        Ok((point, changes))
    }
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
