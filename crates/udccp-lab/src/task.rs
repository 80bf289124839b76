//! Tasks and their results as JSON, for workers that have only this program: a task contains its
//! whole scenario, a result contains its task.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use udccp_scenario::Record;
use udccp_scenario::VERSION;
use udccp_scenario::document::{self, Node};
use udccp_scenario::{RunError, RunOptions};

use crate::plan::{Task, digest, key};
use crate::schema::{Case, Experiment, PARTS, SCHEMA, Scenario};

/// A task as sent to a worker. Its key is a hash of scenario, seed and version, so a changed task
/// or one of another version is detected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Version of this format.
    pub schema: u64,
    /// The program that planned it.
    pub version: String,
    /// The key of its result.
    pub key: String,
    /// The experiment's name.
    pub experiment: String,
    /// The case; null means the file without its cases.
    #[serde(default)]
    pub case: Option<String>,
    /// The variant; null means the experiment without variants.
    #[serde(default)]
    pub variant: Option<String>,
    /// The grid point: the label of each axis.
    #[serde(default)]
    pub point: Map<String, Value>,
    /// The run at this point, from 1.
    pub run: u64,
    /// Its seed.
    pub seed: u64,
    /// Whether it is shortened for a first look.
    #[serde(default)]
    pub shortened: bool,
    /// Expected processor time in seconds.
    #[serde(default)]
    pub expected_s: f64,
    /// The scenario with the values of all axes inserted, with the keys of a scenario file.
    pub scenario: Value,
}

/// A worker's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskResult {
    /// The task.
    pub task: TaskFile,
    /// The record of the run.
    pub record: Record,
}

/// Why a task or a result cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// The file cannot be read.
    #[error("{place}: {error}")]
    Read {
        /// Name of the file.
        place: String,
        /// The system's error.
        #[source]
        error: io::Error,
    },
    /// It is not valid JSON of this format.
    #[error("{place}: this is not a {what}: {why}")]
    Json {
        /// File, line and column.
        place: String,
        /// Task or result.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// It has another version of the program.
    #[error("{place}: task {key} is of version {found}, this program is {VERSION}")]
    Version {
        /// File and line.
        place: String,
        /// The task.
        key: String,
        /// Its version.
        found: String,
    },
    /// Its scenario is invalid.
    #[error("{place}: the scenario of task {key} is invalid\nerror: {errors}")]
    Scenario {
        /// File and line.
        place: String,
        /// The task.
        key: String,
        /// What is wrong.
        errors: String,
    },
    /// It was changed after it was planned.
    #[error("{place}: task {key} is not what was planned: its {what} was changed")]
    Changed {
        /// File and line.
        place: String,
        /// The task.
        key: String,
        /// What does not fit.
        what: &'static str,
    },
    /// The run failed.
    #[error("task {key}: {error}")]
    Run {
        /// The task.
        key: String,
        /// The error.
        #[source]
        error: RunError,
    },
}

impl TaskFile {
    /// The task in the form that is sent; `None` if it is not of this experiment.
    pub fn new(experiment: &Experiment, task: &Task, expected_s: f64) -> Option<Self> {
        let part = experiment.part(task.case.as_deref())?;
        let variant = match &task.variant {
            None => None,
            Some(id) => Some(experiment.variants_of(part).find(|v| v.id == *id)?),
        };
        let tree = part.tree(&task.point, variant, task.shortened).ok()?;
        let label = |(axis, label): &(String, String)| (axis.clone(), label.clone().into());
        Some(Self {
            schema: SCHEMA,
            version: VERSION.to_owned(),
            key: task.key.clone(),
            experiment: task.experiment.clone(),
            case: task.case.clone(),
            variant: task.variant.clone(),
            point: task.point.iter().map(label).collect(),
            run: task.run,
            seed: task.seed,
            shortened: task.shortened,
            expected_s,
            scenario: parts(&tree),
        })
    }

    /// Parses a task; `place` names its origin in errors.
    ///
    /// # Errors
    /// The text is not a task, with line and column.
    pub fn parse(place: &str, text: &str) -> Result<Self, TaskError> {
        serde_json::from_str(text).map_err(|e| no_json(place, 1, "task", &e))
    }

    /// The task, verified: scenario, seed and version are those that were planned.
    ///
    /// # Errors
    /// Another version, an invalid scenario, or one that does not match the key.
    pub fn task(&self, place: &str) -> Result<Task, TaskError> {
        let (place, id) = (place.to_owned(), self.key.clone());
        if self.version != VERSION || self.schema != SCHEMA {
            return Err(TaskError::Version { place, key: id, found: self.version.clone() });
        }
        let scenario = match scenario(&self.scenario) {
            Ok(scenario) => scenario,
            Err(errors) => return Err(TaskError::Scenario { place, key: id, errors }),
        };
        if key(&scenario, self.seed) != self.key {
            return Err(TaskError::Changed { place, key: id, what: "scenario, seed or key" });
        }
        let label = |(axis, label): (&String, &Value)| {
            (axis.clone(), label.as_str().unwrap_or_default().to_owned())
        };
        Ok(Task {
            key: id,
            experiment: self.experiment.clone(),
            case: self.case.clone(),
            variant: self.variant.clone(),
            point: self.point.iter().map(label).collect(),
            run: self.run,
            seed: self.seed,
            shortened: self.shortened,
            scenario,
        })
    }

    /// Runs the task.
    ///
    /// # Errors
    /// Errors of [`TaskFile::task`], or of the run.
    pub fn run(self, place: &str) -> Result<TaskResult, TaskError> {
        let task = self.task(place)?;
        let options = RunOptions::default();
        let record = udccp_scenario::run(&task.experiment, &task.scenario, task.seed, options)
            .map_err(|error| TaskError::Run { key: task.key.clone(), error })?;
        Ok(TaskResult { task: self, record })
    }
}

impl TaskResult {
    /// Parses line `line` of a file of results, and verifies that the record belongs to the task.
    ///
    /// # Errors
    /// The line is not a result, has another version, or its parts do not belong together.
    pub fn parse(file: &str, line: usize, text: &str) -> Result<(Task, Record), TaskError> {
        let result: Self =
            serde_json::from_str(text).map_err(|e| no_json(file, line, "result", &e))?;
        let place = format!("{file}:{line}");
        let task = result.task.task(&place)?;
        let record = result.record;
        if record.seed != task.seed || record.version != VERSION {
            return Err(TaskError::Changed { place, key: task.key, what: "record" });
        }
        Ok((task, record))
    }
}

fn no_json(file: &str, line: usize, what: &'static str, error: &serde_json::Error) -> TaskError {
    let place = format!("{file}:{}:{}", line + error.line().max(1) - 1, error.column());
    let why = error.to_string();
    // serde_json counts lines within this text, so its position is removed.
    let why = why.split(" at line ").next().unwrap_or_default().to_owned();
    TaskError::Json { place, what, why }
}

/// The settings of a run, as JSON.
fn parts(tree: &Node) -> Value {
    let part = |key: &str| Some((key.to_owned(), json(tree.get(key)?)));
    Value::Object(PARTS.iter().filter_map(|p| part(p)).collect())
}

/// Hash over the settings of a case's runs in the file, with axes by name.
pub(crate) fn set_up(case: &Case) -> String {
    let mut parts = parts(case.template());
    parts.sort_all_objects();
    let mut hash = digest(&parts.to_string());
    hash.truncate(12);
    hash
}

/// Converts a TOML tree to JSON.
fn json(node: &Node) -> Value {
    match &node.value {
        document::Value::Text(text) => text.as_str().into(),
        document::Value::Integer(n) => (*n).into(),
        document::Value::Float(x) => (*x).into(),
        document::Value::Flag(flag) => (*flag).into(),
        document::Value::List(items) => items.iter().map(json).collect(),
        document::Value::Table(entries) => {
            Value::Object(entries.iter().map(|e| (e.key.clone(), json(&e.node))).collect())
        }
        document::Value::Other(_) => Value::Null,
    }
}

/// Parses the scenario as TOML, so that errors have positions.
fn scenario(value: &Value) -> Result<Scenario, String> {
    let text = toml::to_string(value).map_err(|e| e.to_string())?;
    let root = document::parse("the scenario as TOML", text).map_err(|e| e.to_string())?;
    Scenario::read(&root).map_err(|e| e.to_string())
}
