//! Runs of real kernels that are kept with an experiment's file. They stay valid when this program
//! changes, and a run in a guest takes ten seconds to minutes. With them, a clone that has only
//! simulated can compare with Linux too.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use udccp_base::Duration;
use udccp_metrics::mean;
use udccp_scenario::{FlowRecord, Record, SIM, SeriesRecord, library};

use crate::analysis::within;
use crate::campaign::label;
use crate::plan::Task;
use crate::schema::{Experiment, Metric, Window};

/// One run: a line of the file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptRun {
    /// The run in words: `case tcp-pairs, rtt 25 ms, run 3`.
    pub run: String,
    /// The backend that made it.
    pub backend: String,
    /// Its seed.
    pub seed: u64,
    /// Hash of what the experiment's file says about its case, without the values of axes. Runs
    /// with another set-up are not compared.
    pub set_up: String,
    /// The version of the program that made it.
    pub version: String,
    /// Start and end of the measured interval in seconds, separated by a space.
    pub measured_s: String,
    /// Throughput of each flow in Mbit/s in the first half of that interval.
    pub first_half_mbps: String,
    /// The same in the second half.
    pub second_half_mbps: String,
}

/// Why kept runs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// The file does not have the right format.
    #[error("{path}: {error}")]
    Table {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        error: csv::Error,
    },
    /// The numbers of a run do not fit the scenario.
    #[error("{path}: {run} of {backend}: {why}")]
    Run {
        /// The file.
        path: PathBuf,
        /// The run in words.
        run: String,
        /// Its backend.
        backend: String,
        /// What does not fit.
        why: &'static str,
    },
    /// It cannot be read or written.
    #[error("cannot {what} {path}: {error}")]
    File {
        /// Read or write.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
}

/// What identifies a kept run in its file.
type Name = (String, String, u64);

/// The kept runs of an experiment.
#[derive(Debug, Default)]
pub struct Kept {
    path: PathBuf,
    runs: BTreeMap<Name, KeptRun>,
}

impl KeptRun {
    /// The kept form of a run; `None` if it is not to be kept: from the simulator, shortened, of a
    /// variant, not a valid measurement, or without samples in both halves.
    pub fn of(experiment: &Experiment, task: &Task, record: &Record) -> Option<Self> {
        let is_whole = !task.shortened && task.variant.is_none() && record.is_valid();
        if record.backend == SIM || !is_whole {
            return None;
        }
        let [from, to] = record.measured_s;
        let middle = (from + to) / 2.0;
        let seconds = Duration::from_secs_f64;
        let rates = |from: f64, to: f64| -> Option<String> {
            let half = Window { from: seconds(from), to: seconds(to) };
            let of_flow = |flow: &FlowRecord| {
                let rate = mean(&within(flow, Metric::Throughput, half)).ok()?;
                Some(format!("{rate:.4}"))
            };
            let rates: Option<Vec<String>> = record.flows.iter().map(of_flow).collect();
            Some(rates?.join(" "))
        };
        Some(Self {
            run: label(task),
            backend: record.backend.clone(),
            seed: task.seed,
            set_up: set_up(experiment, task)?,
            version: record.version.clone(),
            measured_s: format!("{from} {to}"),
            first_half_mbps: rates(from, middle)?,
            second_half_mbps: rates(middle, to)?,
        })
    }

    fn name(&self) -> Name {
        (self.run.clone(), self.backend.clone(), self.seed)
    }

    /// The run as a record, with one sample for each half of the measured interval.
    fn record(&self, task: &Task) -> Result<Record, &'static str> {
        let [from, to] = numbers(&self.measured_s)?[..] else {
            return Err("`measured_s` needs two numbers");
        };
        let halves = [numbers(&self.first_half_mbps)?, numbers(&self.second_half_mbps)?];
        if halves.iter().any(|rates| rates.len() != task.scenario.flows.len()) {
            return Err("each half needs a rate for each flow");
        }
        let flows = task.scenario.flows.iter().enumerate().map(|(i, flow)| {
            let rates = vec![halves[0][i], halves[1][i]];
            FlowRecord {
                name: flow.name.clone(),
                protocol: flow.protocol.name.to_owned(),
                packet_bytes: flow.packet.bytes(),
                throughput_mbps: Some((rates[0] + rates[1]) / 2.0),
                series: SeriesRecord {
                    t_s: vec![(from + to) / 2.0, to],
                    throughput_mbps: rates,
                    ..SeriesRecord::default()
                },
                ..FlowRecord::default()
            }
        });
        Ok(Record {
            scenario: task.experiment.clone(),
            seed: self.seed,
            version: self.version.clone(),
            measured_s: [from, to],
            flows: flows.collect(),
            backend: self.backend.clone(),
            ..Record::default()
        })
    }
}

fn numbers(text: &str) -> Result<Vec<f64>, &'static str> {
    let number = |word: &str| word.parse::<f64>().ok().filter(|x| x.is_finite() && *x >= 0.0);
    text.split_whitespace()
        .map(number)
        .collect::<Option<_>>()
        .ok_or("a rate must be a number of 0 or more, such as 9.5")
}

/// The set-up of a task's case.
fn set_up(experiment: &Experiment, task: &Task) -> Option<String> {
    experiment.part(task.case.as_deref()).map(crate::task::set_up)
}

impl Kept {
    /// The runs kept with an experiment's file, in `kept/ID.csv`; none if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read or has the wrong format; the error has the line.
    pub fn load(experiment: &Experiment) -> Result<Self, KeptError> {
        let folder = experiment.path.parent().unwrap_or(Path::new(""));
        let path = folder.join("kept").join(format!("{}.csv", experiment.id));
        let mut kept = Self { path, ..Self::default() };
        let text = match library::read(&kept.path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(kept),
            Err(error) => {
                return Err(KeptError::File { what: "read", path: kept.path, error });
            }
            Ok(text) => text,
        };
        for run in csv::Reader::from_reader(text.as_bytes()).into_deserialize() {
            let run: KeptRun =
                run.map_err(|error| KeptError::Table { path: kept.path.clone(), error })?;
            kept.add(run);
        }
        Ok(kept)
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Adds a run, replacing an older one.
    pub fn add(&mut self, run: KeptRun) {
        self.runs.insert(run.name(), run);
    }

    /// The results of real kernels for a task, if its set-up is still the same.
    ///
    /// # Errors
    /// The numbers of a run do not fit the scenario.
    pub(crate) fn of(
        &self,
        experiment: &Experiment,
        task: &Task,
    ) -> Result<Vec<Record>, KeptError> {
        if self.runs.is_empty() || task.shortened || task.variant.is_some() {
            return Ok(Vec::new());
        }
        let run_label = label(task);
        let first = (run_label.clone(), String::new(), 0);
        let of_task = self.runs.range(first..).map(|(_, run)| run);
        let of_task = of_task.take_while(|run| run.run == run_label);
        let same = |run: &&KeptRun| {
            run.seed == task.seed && set_up(experiment, task).is_some_and(|now| now == run.set_up)
        };
        of_task
            .filter(same)
            .map(|run| {
                run.record(task).map_err(|why| KeptError::Run {
                    path: self.path.clone(),
                    run: run_label.clone(),
                    backend: run.backend.clone(),
                    why,
                })
            })
            .collect()
    }

    /// Writes the file, with one line per run, sorted.
    ///
    /// # Errors
    /// The folder or file cannot be written.
    pub fn write(&self) -> Result<(), KeptError> {
        let table = |error| KeptError::Table { path: self.path.clone(), error };
        let mut writer = csv::Writer::from_writer(Vec::new());
        for run in self.runs.values() {
            writer.serialize(run).map_err(table)?;
        }
        let bytes = writer.into_inner().map_err(|e| table(e.into_error().into()))?;
        self.path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| std::fs::write(&self.path, bytes))
            .map_err(|error| KeptError::File { what: "write", path: self.path.clone(), error })
    }
}
