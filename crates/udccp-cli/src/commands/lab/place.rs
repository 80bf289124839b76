//! Where experiments and results are, and how they are found.

use std::path::{Path, PathBuf};

use udccp_lab::analysis::Results;
use udccp_lab::schema::Experiment;
use udccp_lab::{Narrowing, PlanOptions, Store, StoreError, suggest};

use crate::commands::scenario::bad_input;
use crate::exit::{Exit, Failure, Outcome};

/// Where things are.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Place {
    /// Folder of experiment files
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    pub(super) experiments: PathBuf,
    /// File of the result store
    #[arg(long, value_name = "FILE", default_value = "results/lab.sqlite")]
    pub(super) store: PathBuf,
}

/// How much of each experiment is meant.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(super) struct Amount {
    /// Fewer (and shorter) runs of each point, for a first look
    #[arg(long)]
    pub(super) quick: bool,
    /// This many runs of each point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(super) runs: Option<u64>,
}

/// Which part of each experiment is meant.
#[derive(Clone, Debug, clap::Args)]
pub(super) struct Part {
    /// Only this table, with the runs that it needs; may be given several times
    #[arg(long = "table", value_name = "ID")]
    tables: Vec<String>,
    /// Change a key of every run (time.duration="60 s"), or keep one value of an axis (rtt="50 ms";
    /// several times: several values)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl Part {
    /// What is left of an experiment.
    fn of(&self, mut experiment: Experiment) -> Outcome<Experiment> {
        let asked = Narrowing { tables: self.tables.clone(), set: self.set.clone() };
        if !asked.is_empty() {
            experiment.narrow(&asked).map_err(bad_input)?;
        }
        Ok(experiment)
    }

    /// What is left of several.
    pub(super) fn of_all(&self, experiments: Vec<Experiment>) -> Outcome<Vec<Experiment>> {
        experiments.into_iter().map(|experiment| self.of(experiment)).collect()
    }
}

impl From<Amount> for PlanOptions {
    fn from(amount: Amount) -> Self {
        Self { quick: amount.quick, runs: amount.runs }
    }
}

impl Place {
    /// The store, made where there is none.
    pub(super) fn open(&self) -> Outcome<Store> {
        Store::open(&self.store).map_err(store_failure)
    }

    /// The store, if there is one.
    pub(super) fn open_if_there(&self) -> Outcome<Option<Store>> {
        self.store.exists().then(|| self.open()).transpose()
    }

    /// The stored runs of an experiment.
    pub(super) fn results(
        &self,
        experiment: &Experiment,
        options: PlanOptions,
    ) -> Outcome<Results> {
        Results::load(experiment, &self.open()?, options)
            .map_err(|e| Failure::new(Exit::BadInput, e.to_string()))
    }

    /// Every experiment file of the folder, by name.
    pub(super) fn files(&self) -> Outcome<Vec<PathBuf>> {
        let folder = &self.experiments;
        let entries = std::fs::read_dir(folder).map_err(|e| {
            let message = format!("cannot read the folder {}: {e}", folder.display());
            Failure::new(Exit::BadInput, message)
                .hint("run this where the folder `experiments` is, or name one: --experiments DIR")
        })?;
        let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
        paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
        paths.sort();
        Ok(paths)
    }

    /// The experiments of these names or paths, each once; all of the folder where there are none.
    pub(super) fn experiments(&self, names: &[String]) -> Outcome<Vec<Experiment>> {
        let paths = match names {
            [] => self.files()?,
            names => names.iter().map(|n| self.find(n)).collect::<Outcome<_>>()?,
        };
        let mut experiments: Vec<Experiment> = Vec::new();
        for path in paths {
            let experiment = Experiment::load(&path).map_err(bad_input)?;
            match experiments.iter().find(|e| e.id == experiment.id) {
                Some(same) if same.path == experiment.path => {}
                Some(same) => return Err(same_id(same, &experiment)),
                None => experiments.push(experiment),
            }
        }
        Ok(experiments)
    }

    /// The file of an experiment that was given by its name or its path.
    fn find(&self, name: &str) -> Outcome<PathBuf> {
        if Path::new(name).extension().is_some_and(|e| e == "toml") {
            return Ok(PathBuf::from(name));
        }
        let path = self.experiments.join(format!("{name}.toml"));
        if path.exists() {
            return Ok(path);
        }
        let known: Vec<String> = self
            .files()?
            .iter()
            .filter_map(|p| Some(p.file_stem()?.to_string_lossy().into_owned()))
            .collect();
        let known: Vec<&str> = known.iter().map(String::as_str).collect();
        let folder = self.experiments.display();
        let message = format!("there is no experiment \"{name}\" in {folder}");
        Err(Failure::new(Exit::BadInput, message).hint(suggest(name, "there are", &known)))
    }
}

fn same_id(one: &Experiment, other: &Experiment) -> Failure {
    let (one_path, other_path) = (one.path.display(), other.path.display());
    let message = format!("{one_path} and {other_path} are both called \"{}\"", one.id);
    Failure::new(Exit::BadInput, message).hint("give one of them another `id`")
}

/// A store that cannot be used.
pub(super) fn store_failure(error: StoreError) -> Failure {
    let hint = match error {
        StoreError::Newer { .. } => "update udccp, or name another file with --store",
        _ => "--store names another file; results can always be made again",
    };
    Failure::new(Exit::BadInput, error.to_string()).hint(hint)
}
