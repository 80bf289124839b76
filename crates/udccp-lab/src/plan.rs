//! The grid of an experiment as a list of pure tasks.

use std::fmt::Write as _;

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::diagnostic::Diagnostics;
use crate::schema::{Experiment, Point, SCHEMA, Scenario, Variant};
use crate::version::VERSION;

/// How much of an experiment to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct PlanOptions {
    /// The number of runs that the file gives for a first look.
    pub quick: bool,
    /// This number of runs instead.
    pub runs: Option<u64>,
}

/// One run to do: a pure function of its scenario and seed.
#[derive(Clone, Debug)]
pub struct Task {
    /// Hash of scenario, seed and program version: the key of the result.
    pub key: String,
    /// The experiment's name.
    pub experiment: String,
    /// The variant; `None` is the experiment as it stands.
    pub variant: Option<String>,
    /// The grid point.
    pub point: Point,
    /// The run at this point, from 1.
    pub run: u64,
    /// Its seed.
    pub seed: u64,
    /// The scenario.
    pub scenario: Scenario,
}

impl PlanOptions {
    /// How many runs of each point.
    pub fn runs_of(self, experiment: &Experiment) -> u64 {
        let grid = &experiment.grid;
        self.runs.unwrap_or(if self.quick { grid.quick_runs } else { grid.runs })
    }
}

/// All tasks of an experiment: every point as it stands, then every variant at its points.
///
/// # Errors
/// A point that does not make a scenario (not after [`Experiment::load`], which tries all).
pub fn plan(experiment: &Experiment, options: PlanOptions) -> Result<Vec<Task>, Diagnostics> {
    let mut tasks = Vec::new();
    let variants = experiment.variants.iter().map(Some);
    for variant in core::iter::once(None).chain(variants) {
        for point in experiment.grid.points() {
            if variant.is_none_or(|v| v.filter.matches(&point)) {
                add(&mut tasks, experiment, variant, &point, options.runs_of(experiment))?;
            }
        }
    }
    Ok(tasks)
}

fn add(
    tasks: &mut Vec<Task>,
    experiment: &Experiment,
    variant: Option<&Variant>,
    point: &Point,
    runs: u64,
) -> Result<(), Diagnostics> {
    let scenario = experiment.scenario(point, variant)?;
    for run in 1..=runs {
        let seed = run_seed(experiment.grid.seed, run);
        tasks.push(Task {
            key: key(&scenario, seed),
            experiment: experiment.id.clone(),
            variant: variant.map(|v| v.id.clone()),
            point: point.clone(),
            run,
            seed,
            scenario: scenario.clone(),
        });
    }
    Ok(())
}

/// The seed of a run: readable, and the same at every point and variant, so that they differ in
/// nothing but what the file changes.
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
    // A scenario is texts and numbers: it always has a JSON form.
    let text = serde_json::to_string(&identity).unwrap_or_default();
    let mut key = String::with_capacity(32);
    for byte in Sha256::digest(text.as_bytes()).iter().take(16) {
        let _ = write!(key, "{byte:02x}");
    }
    key
}
