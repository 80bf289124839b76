//! Finds experiments and their results.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use udccp_lab::analysis::Results;
use udccp_lab::schema::Experiment;
use udccp_lab::{PlanOptions, Selection, Store, StoreError, library, plan, suggest};

use crate::commands::lookup::{self, EXPERIMENTS};
use crate::commands::numbers::whole;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};

/// Where things are.
#[derive(Clone, Debug, Default, clap::Args)]
pub(super) struct LabFiles {
    /// Folder of experiment files, instead of the built-in ones [default: `experiments` and the
    /// built-in ones]
    #[arg(long, value_name = "DIR")]
    experiments: Option<PathBuf>,
    /// File of the result store
    #[arg(long, value_name = "FILE", default_value = "results/lab.sqlite")]
    pub(super) store: PathBuf,
}

/// How much of each experiment is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Amount {
    /// Fewer and shorter runs of each point, for a first look
    #[arg(long)]
    pub(super) quick: bool,
    /// Number of runs of each point
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    #[arg(value_parser = whole::<u64>(1..=100_000))]
    pub(super) runs: Option<u64>,
}

/// Which part of each experiment is meant.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Part {
    /// Select a table and the runs that it needs; repeatable
    #[arg(long = "table", value_name = "ID")]
    tables: Vec<String>,
    /// Change a key of every run (time.duration="60 s"), or select a value of an axis (rtt="50
    /// ms"); repeatable
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Part {
    /// The selected part of an experiment.
    pub(super) fn of(&self, mut experiment: Experiment) -> CliResult<Experiment> {
        let asked = Selection { tables: self.tables.clone(), set: self.set.clone() };
        if !asked.is_empty() {
            experiment.narrow(&asked).map_err(bad_input)?;
        }
        Ok(experiment)
    }

    /// The selected part of each experiment.
    pub(super) fn of_all(&self, experiments: Vec<Experiment>) -> CliResult<Vec<Experiment>> {
        experiments.into_iter().map(|experiment| self.of(experiment)).collect()
    }
}

impl From<Amount> for PlanOptions {
    fn from(amount: Amount) -> Self {
        Self { quick: amount.quick, runs: amount.runs }
    }
}

impl LabFiles {
    /// Opens the store, and creates it if it does not exist.
    pub(super) fn open(&self) -> CliResult<Store> {
        Store::open(&self.store).map_err(store_failure)
    }

    /// Opens the store if it exists.
    pub(super) fn open_if_there(&self) -> CliResult<Option<Store>> {
        match Store::open_existing(&self.store) {
            Ok(store) => Ok(Some(store)),
            Err(StoreError::Missing { .. }) => Ok(None),
            Err(error) => Err(store_failure(error)),
        }
    }

    /// The stored runs of an experiment; the store must exist.
    pub(super) fn results(
        &self,
        experiment: &Experiment,
        options: PlanOptions,
    ) -> CliResult<Results> {
        let store = Store::open_existing(&self.store).map_err(store_failure)?;
        Results::load(experiment, &store, options)
            .map_err(|e| Failure::new(Exit::BadInput, e.to_string()))
    }

    /// The experiment files by name: the user's, and the built-in ones whose names are not taken.
    pub(super) fn files(&self) -> CliResult<Vec<PathBuf>> {
        let mut paths = self.own()?.unwrap_or_default();
        if self.experiments.is_none() {
            let own: Vec<_> = paths.iter().filter_map(|p| p.file_name()).collect();
            let built_in = library::experiments().into_iter().map(|n| format!("{n}.toml"));
            let free = built_in.filter(|file| !own.contains(&OsStr::new(file)));
            let free = free.filter_map(|file| library::path(&Path::new(EXPERIMENTS).join(file)));
            let free: Vec<PathBuf> = free.collect();
            paths.extend(free);
        }
        paths.sort_by(|a, b| a.file_name().cmp(&b.file_name()));
        Ok(paths)
    }

    /// The default files: those of the folder, or the built-in ones if there is no folder.
    fn all(&self) -> CliResult<Vec<PathBuf>> {
        match self.own()? {
            Some(own) => Ok(own),
            None => self.files(),
        }
    }

    /// The files of the folder, if it exists.
    fn own(&self) -> CliResult<Option<Vec<PathBuf>>> {
        let folder = self.folder();
        if self.experiments.is_none() && !folder.exists() {
            return Ok(None);
        }
        let entries = std::fs::read_dir(folder).map_err(|e| {
            let message = format!("cannot read the folder {}: {e}", folder.display());
            Failure::new(Exit::BadInput, message)
                .hint("name another folder, or leave --experiments out for the built-in ones")
        })?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
        paths.sort();
        Ok(Some(paths))
    }

    /// The folder of the user's experiments.
    pub(super) fn folder(&self) -> &Path {
        self.experiments.as_deref().unwrap_or(Path::new(EXPERIMENTS))
    }

    /// The experiments with these names or paths, without duplicates; with none given, all of the
    /// folder.
    pub(super) fn experiments(&self, names: &[String]) -> CliResult<Vec<Experiment>> {
        let paths = match names {
            [] => self.all()?,
            names => names.iter().map(|n| self.find(n)).collect::<CliResult<_>>()?,
        };
        load_all(paths)
    }

    /// The experiments for a report: those named, otherwise those of the folder and every built-in
    /// one that has been run.
    pub(super) fn to_report(
        &self,
        names: &[String],
        options: PlanOptions,
    ) -> CliResult<Vec<Experiment>> {
        if !names.is_empty() {
            return self.experiments(names);
        }
        let mut experiments = load_all(self.files()?)?;
        if let Some(store) = self.open_if_there()? {
            let mut kept = Vec::new();
            for experiment in experiments {
                if !library::is_built_in(&experiment.path)
                    || has_runs(&experiment, &store, options)?
                {
                    kept.push(experiment);
                }
            }
            experiments = kept;
        }
        Ok(experiments)
    }

    /// The file of an experiment given by name or path.
    pub(super) fn find(&self, name: &str) -> CliResult<PathBuf> {
        if Path::new(name).extension().is_some_and(|e| e == "toml") {
            return Ok(lookup::by_path(Path::new(name)));
        }
        let path = match &self.experiments {
            Some(folder) => Some(folder.join(format!("{name}.toml"))).filter(|p| p.is_file()),
            None => lookup::by_name(EXPERIMENTS, name),
        };
        if let Some(path) = path {
            return Ok(path);
        }
        let files = self.files()?;
        let names = files.iter().filter_map(|p| p.file_stem());
        let known: Vec<_> = names.map(OsStr::to_string_lossy).collect();
        let known: Vec<&str> = known.iter().map(|name| &**name).collect();
        let place = match &self.experiments {
            Some(folder) => format!("in {}", folder.display()),
            None => "here or built in".to_owned(),
        };
        let message = format!("there is no experiment \"{name}\" {place}");
        Err(Failure::new(Exit::BadInput, message).hint(suggest(name, "choose from", &known)))
    }
}

fn load_all(paths: Vec<PathBuf>) -> CliResult<Vec<Experiment>> {
    let mut experiments: Vec<Experiment> = Vec::new();
    for path in paths {
        let experiment = Experiment::load(&path).map_err(bad_input)?;
        match experiments.iter().find(|e| e.id == experiment.id) {
            Some(same) if same.path == experiment.path => {}
            Some(same) => return Err(same_id(&same.id, &same.path, &experiment.path)),
            None => experiments.push(experiment),
        }
    }
    Ok(experiments)
}

/// Whether the store has any run of an experiment.
fn has_runs(experiment: &Experiment, store: &Store, options: PlanOptions) -> CliResult<bool> {
    for task in plan(experiment, options).map_err(bad_input)? {
        if store.has(&task.key).map_err(store_failure)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The error for two files whose tables and pages would have the same names.
pub(super) fn same_id(id: &str, one: &Path, other: &Path) -> Failure {
    let message = format!("{} and {} have the same id \"{id}\"", one.display(), other.display());
    Failure::new(Exit::BadInput, message).hint("give one of them another `id`")
}

/// Converts an error of the store.
pub(super) fn store_failure(error: StoreError) -> Failure {
    let hint = match error {
        StoreError::Missing { .. } => "`udccp lab run` creates one; --store names another file",
        StoreError::Newer { .. } => "update udccp, or name another file with --store",
        _ if error.is_of_the_disk() => {
            "check whether the disk is full; stored results are kept. --store names another file"
        }
        _ if error.is_of_the_place() => {
            "check that it is a file in a writable folder, or name another file (or a copy) with \
             --store"
        }
        _ => "name another file with --store; udccp can compute all results again",
    };
    Failure::new(Exit::BadInput, error.to_string()).hint(hint)
}
