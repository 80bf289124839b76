//! Runs one scenario with one seed in ns-2.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use udccp_scenario::schema::Scenario;
use udccp_scenario::{Record, record_of};

use crate::error::Ns2Error;
use crate::refuse::{check_supported, notes};
use crate::replay::Replay;
use crate::script::script;
use crate::{process, trace};

/// Its name as a backend.
pub const ID: &str = "ns2";

/// The backend.
#[derive(Clone, Debug)]
pub struct Ns2 {
    program: PathBuf,
    version: String,
}

/// A run.
#[derive(Clone, Debug)]
pub struct Ns2Run {
    /// The results.
    pub record: Record,
    /// Where ns-2 differs from the scenario, each as a clause.
    pub notes: Vec<String>,
    /// How long it took.
    pub wall: Duration,
}

impl Ns2 {
    /// Finds `ns` in the path, and asks for its version.
    ///
    /// # Errors
    /// [`Ns2Error::Missing`] if it is not found; an error if it does not start.
    pub fn find() -> Result<Self, Ns2Error> {
        let program = process::find()?;
        let version = process::version(&program)?;
        Ok(Self { program, version })
    }

    /// Its version, as it reports it.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Runs a scenario. `name` is the scenario's name in the record.
    ///
    /// The result depends only on scenario, seed and version, except for `cost.cpu_s`.
    ///
    /// # Errors
    /// The scenario needs something that ns-2 lacks; ns-2 ends early.
    pub fn run(&self, name: &str, scenario: &Scenario, seed: u64) -> Result<Ns2Run, Ns2Error> {
        check_supported(scenario)?;
        let begin = now();
        let mut replay = Replay::new(scenario);
        let mut number = 0;
        process::run(&self.program, &script(scenario, seed), |line| {
            number += 1;
            let taken = trace::parse(line).and_then(|line| replay.line(&line));
            taken.map_err(|why| Ns2Error::Trace { number, why })
        })?;
        if !replay.is_over {
            let why = "it ends before the run does".to_owned();
            return Err(Ns2Error::Trace { number, why });
        }
        let wall = begin.elapsed();
        let result = replay.finish(seed);
        let record = record_of(name, scenario, seed, result, wall.as_secs_f64());
        let record = Record { backend: ID.to_owned(), ..record };
        Ok(Ns2Run { record, notes: notes(scenario), wall })
    }
}

#[expect(clippy::disallowed_methods, reason = "how long ns-2 took")]
fn now() -> Instant {
    Instant::now()
}
