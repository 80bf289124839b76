//! Tasks and their results as JSON, for workers that have nothing but this program: a task carries
//! its whole scenario, a result carries its task.

use std::io;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use udccp_scenario::Record;
use udccp_scenario::VERSION;
use udccp_scenario::document::{self, Node};
use udccp_scenario::{RunError, RunOptions};

use crate::plan::{Task, digest, key};
use crate::schema::{Case, Experiment, PARTS, SCHEMA, Scenario};

/// A task as it is sent to a worker. Its key is a hash of scenario, seed and version: what was
/// changed on the way, or is of another version, does not pass for the original.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskFile {
    /// Version of this shape.
    pub schema: u64,
    /// The program that planned it.
    pub version: String,
    /// The key of its result.
    pub key: String,
    /// The experiment's name.
    pub experiment: String,
    /// The case; null is the file as it stands.
    #[serde(default)]
    pub case: Option<String>,
    /// The variant; null is the experiment as it stands.
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
    /// Processor seconds that it is expected to take.
    #[serde(default)]
    pub expected_s: f64,
    /// The scenario with all axes put in, by the keys of a scenario file.
    pub scenario: Value,
}

/// What a worker sends back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskResult {
    /// What was asked.
    pub task: TaskFile,
    /// What was found.
    pub record: Record,
}

/// Why a task or a result cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// It cannot be read.
    #[error("{place}: {error}")]
    Read {
        /// The file.
        place: String,
        /// Why not.
        #[source]
        error: io::Error,
    },
    /// It is not the JSON that it should be.
    #[error("{place}: this is not a {what}: {why}")]
    Json {
        /// File, line and column.
        place: String,
        /// Task or result.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
    /// It is of another version of the program.
    #[error("{place}: task {key} is of version {found}, this program is {VERSION}")]
    Version {
        /// File and line.
        place: String,
        /// The task.
        key: String,
        /// Its version.
        found: String,
    },
    /// Its scenario is wrong.
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
    /// It does not run.
    #[error("task {key}: {error}")]
    Run {
        /// The task.
        key: String,
        /// Why not.
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

    /// Reads a task from JSON; `place` is what messages call it.
    ///
    /// # Errors
    /// A text that is no task, with line and column.
    pub fn parse(place: &str, text: &str) -> Result<Self, TaskError> {
        serde_json::from_str(text).map_err(|e| no_json(place, 1, "task", &e))
    }

    /// The task, checked: the same scenario, seed and version as were planned.
    ///
    /// # Errors
    /// Another version, a scenario that is wrong, or one that does not fit to the key.
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
    /// What [`TaskFile::task`] finds, or a run that fails.
    pub fn run(self, place: &str) -> Result<TaskResult, TaskError> {
        let task = self.task(place)?;
        let options = RunOptions::default();
        let record = udccp_scenario::run(&task.experiment, &task.scenario, task.seed, options)
            .map_err(|error| TaskError::Run { key: task.key.clone(), error })?;
        Ok(TaskResult { task: self, record })
    }
}

impl TaskResult {
    /// Reads line `line` of a file of results, and checks it: the record must be of the task that
    /// it comes with.
    ///
    /// # Errors
    /// A line that is no result, one of another version, or one whose parts do not belong together.
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
    // The library's own place counts from the beginning of the line that it was given.
    let why = why.split(" at line ").next().unwrap_or_default().to_owned();
    TaskError::Json { place, what, why }
}

/// What makes up a run, as JSON.
fn parts(tree: &Node) -> Value {
    let part = |key: &str| Some((key.to_owned(), json(tree.get(key)?)));
    Value::Object(PARTS.iter().filter_map(|p| part(p)).collect())
}

/// Hash over what the file says of a case's runs, with the axes by their names.
pub(crate) fn set_up(case: &Case) -> String {
    let mut parts = parts(case.template());
    parts.sort_all_objects();
    let mut hash = digest(&parts.to_string());
    hash.truncate(12);
    hash
}

/// A tree of a TOML file as JSON.
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

/// The scenario again, read as TOML so that errors show where they are.
fn scenario(value: &Value) -> Result<Scenario, String> {
    let text = toml::to_string(value).map_err(|e| e.to_string())?;
    let root = document::parse("the scenario as TOML", text).map_err(|e| e.to_string())?;
    Scenario::read(&root).map_err(|e| e.to_string())
}
