//! The tasks of an experiment's grid.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};
use udccp_scenario::VERSION;
use udccp_scenario::diagnostic::Diagnostics;
use udccp_scenario::{Backend, SIM};

use crate::schema::{Case, Experiment, Point, SCHEMA, Scenario, Variant};

/// How much of an experiment to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// Make the fewer and shorter runs that the file gives for a first look.
    pub quick: bool,
    /// Make this number of runs instead.
    pub runs: Option<u64>,
}

/// A run to make. Its result depends only on its scenario and seed.
#[derive(Clone, Debug)]
pub struct Task {
    /// Hash of scenario, seed and program version: the key of the result.
    pub key: String,
    /// The experiment's name.
    pub experiment: String,
    /// The case; `None`: the file without its cases.
    pub case: Option<String>,
    /// The variant; `None`: the experiment without variants.
    pub variant: Option<String>,
    /// The grid point.
    pub point: Point,
    /// The run at this point, from 1.
    pub run: u64,
    /// Its seed.
    pub seed: u64,
    /// Whether `quick_set` shortened it.
    pub shortened: bool,
    /// The scenario.
    pub scenario: Scenario,
}

impl Task {
    /// The scenario in the form that is hashed and stored.
    pub(crate) fn scenario_text(&self) -> String {
        // A scenario consists of texts and numbers, so it always has a JSON form.
        serde_json::to_string(&self.scenario).unwrap_or_default()
    }

    /// The name of the scenario in the store. Runs that differ only in the seed share it.
    pub(crate) fn scenario_hash(&self) -> String {
        digest(&self.scenario_text())
    }
}

impl PlanOptions {
    /// Number of runs of each point of a part, or of a variant of it.
    pub fn runs_of(self, part: &Case, variant: Option<&Variant>) -> u64 {
        let grid = &part.grid;
        let all = variant.and_then(|v| v.runs).unwrap_or(grid.runs);
        let quick = variant.and_then(|v| v.quick_runs).unwrap_or(grid.quick_runs.min(all));
        self.runs.unwrap_or(if self.quick { quick } else { all })
    }
}

/// All tasks of an experiment: of the file without its cases, then of each case; of each, every
/// point without variants, then every variant at its points.
///
/// # Errors
/// A point is not a valid scenario. This cannot happen after [`Experiment::load`], which checks
/// all.
pub fn plan(experiment: &Experiment, options: PlanOptions) -> Result<Vec<Task>, Diagnostics> {
    let mut tasks = Vec::new();
    for part in &experiment.parts {
        let variants = experiment.variants_of(part).map(Some);
        for variant in core::iter::once(None).chain(variants) {
            for point in part.grid.points() {
                if variant.is_none_or(|v| v.filter.matches(&point)) {
                    add(&mut tasks, experiment, part, variant, &point, options)?;
                }
            }
        }
    }
    Ok(tasks)
}

fn add(
    tasks: &mut Vec<Task>,
    experiment: &Experiment,
    part: &Case,
    variant: Option<&Variant>,
    point: &Point,
    options: PlanOptions,
) -> Result<(), Diagnostics> {
    let scenario = Scenario::read(&part.tree(point, variant, options.quick)?)?;
    let is_short = !part.quick.is_empty() || variant.is_some_and(|v| !v.quick.is_empty());
    let shortened = options.quick && is_short;
    for run in 1..=options.runs_of(part, variant) {
        let seed = run_seed(part.grid.seed, run);
        tasks.push(Task {
            key: key(&scenario, seed),
            experiment: experiment.id.clone(),
            case: part.id.clone(),
            variant: variant.map(|v| v.id.clone()),
            point: point.clone(),
            run,
            seed,
            shortened,
            scenario: scenario.clone(),
        });
    }
    Ok(())
}

/// The seed of a run. It is readable, and the same at every point and in every variant, so that
/// these differ only in what the file changes.
pub fn run_seed(seed: u64, run: u64) -> u64 {
    seed.wrapping_mul(1000).wrapping_add(run)
}

/// The key of a result.
pub fn key(scenario: &Scenario, seed: u64) -> String {
    #[derive(Serialize)]
    struct Identity<'a> {
        schema: u64,
        version: &'a str,
        seed: u64,
        scenario: &'a Scenario,
    }
    let identity = Identity { schema: SCHEMA, version: VERSION, seed, scenario };
    // A scenario consists of texts and numbers, so it always has a JSON form.
    digest(&serde_json::to_string(&identity).unwrap_or_default())
}

/// The key of a task's result by a backend. The simulator's is that of the task.
pub fn key_of(task: &Task, backend: &dyn Backend) -> String {
    match backend.id() {
        SIM => task.key.clone(),
        id => digest(&format!("{}\n{id}\n{}", task.key, backend.version())),
    }
}

/// The key under which an invalid result is stored, so that the run may be repeated.
pub(crate) fn key_of_invalid(key: &str) -> String {
    digest(&format!("{key}\ninvalid"))
}

/// Half of a SHA-256 in hexadecimal.
pub(crate) fn digest(text: &str) -> String {
    let mut digest = String::with_capacity(32);
    for byte in Sha256::digest(text.as_bytes()).iter().take(16) {
        let _ = write!(digest, "{byte:02x}");
    }
    digest
}
