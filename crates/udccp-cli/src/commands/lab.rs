//! `udccp lab`: experiments as campaigns, stored results, reports.

use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use udccp_lab::analysis::{Analysis, Results};
use udccp_lab::schema::Experiment;
use udccp_lab::{
    PlanOptions, Progress, Record, Store, StoreError, Task, campaign, export, label, plan, report,
};

use super::sim::bad_input;
use crate::exit::{Exit, Failure, Outcome};
use crate::output;

/// Flags of `udccp lab`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// List the experiment files, with what they ask and what has been run
    List(ListArgs),
    /// Run what has not been run yet; stop it at any time and go on later
    Run(RunArgs),
    /// Say how much of each experiment is in the store
    Status(ListArgs),
    /// Write the pages: one for each experiment, and an index
    Report(ReportArgs),
    /// Print the stored runs for other programs
    Export(ExportArgs),
}

/// Where things are.
#[derive(Debug, clap::Args)]
struct Place {
    /// Folder of experiment files
    #[arg(long, value_name = "DIR", default_value = "experiments")]
    experiments: PathBuf,
    /// File of the result store
    #[arg(long, value_name = "FILE", default_value = "results/lab.sqlite")]
    store: PathBuf,
}

#[derive(Debug, clap::Args)]
struct ListArgs {
    #[command(flatten)]
    place: Place,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// Experiments: names, or paths of files
    #[arg(value_name = "EXPERIMENT", required_unless_present = "all")]
    names: Vec<String>,
    /// Every experiment of the folder
    #[arg(long)]
    all: bool,
    /// Fewer runs of each point, for a first look
    #[arg(long)]
    quick: bool,
    /// This many runs of each point
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    runs: Option<u64>,
    /// Worker threads; all cores where absent
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1024))]
    jobs: Option<u64>,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct ReportArgs {
    /// Experiments: names, or paths of files; all of the folder where absent
    #[arg(value_name = "EXPERIMENT")]
    names: Vec<String>,
    /// Folder to write to
    #[arg(short, long, value_name = "DIR", default_value = "out/report")]
    output: PathBuf,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct ExportArgs {
    /// The experiment: a name, or the path of a file
    #[arg(value_name = "EXPERIMENT")]
    name: String,
    /// As CSV, a line for each flow of each run (as JSON where absent)
    #[arg(long)]
    csv: bool,
    #[command(flatten)]
    place: Place,
}

/// Runs the command.
pub(crate) fn run(args: Args) -> Outcome<Exit> {
    match args.command {
        Command::List(args) => list(&args, false),
        Command::Status(args) => list(&args, true),
        Command::Run(args) => run_campaigns(&args),
        Command::Report(args) => write_report(&args),
        Command::Export(args) => export_runs(&args),
    }
}

/// One experiment in a list.
#[derive(Serialize)]
struct Listed {
    id: String,
    asks: String,
    path: PathBuf,
    runs: usize,
    stored: usize,
}

fn list(args: &ListArgs, status: bool) -> Outcome<Exit> {
    let store = if args.place.store.exists() { Some(open(&args.place)?) } else { None };
    let mut all = Vec::new();
    for path in files(&args.place)? {
        let experiment = Experiment::load(&path).map_err(bad_input)?;
        let tasks = plan(&experiment, PlanOptions::default()).map_err(bad_input)?;
        let mut stored = 0;
        for task in &tasks {
            let has = store.as_ref().map_or(Ok(false), |s| s.has(&task.key));
            stored += usize::from(has.map_err(store_failure)?);
        }
        let Experiment { id, asks, .. } = experiment;
        all.push(Listed { id, asks, path, runs: tasks.len(), stored });
    }
    if args.json {
        output::json(&all)?;
        return Ok(Exit::Success);
    }
    for listed in all {
        let Listed { id, asks, runs, stored, .. } = listed;
        let done = format!("{stored} of {runs} runs");
        let line =
            if status { format!("{id:24} {done}") } else { format!("{id:24} {done:20} {asks}") };
        output::line(&line)?;
    }
    Ok(Exit::Success)
}

fn run_campaigns(args: &RunArgs) -> Outcome<Exit> {
    let paths = if args.all { files(&args.place)? } else { paths(&args.names, &args.place)? };
    let options = PlanOptions { quick: args.quick, runs: args.runs };
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let jobs = args.jobs.map_or_else(cores, |n| n as usize);
    for path in paths {
        let experiment = Experiment::load(&path).map_err(bad_input)?;
        let tasks = plan(&experiment, options).map_err(bad_input)?;
        let bar = Bar::new(&experiment.id);
        let outcome = campaign(&tasks, open(&args.place)?, jobs, &bar)
            .map_err(|e| Failure::new(Exit::Failure, e.to_string()))?;
        bar.end();
        output::note(&format!(
            "{}: {} runs done, {} were in the store ({})",
            experiment.id,
            outcome.ran,
            outcome.stored,
            args.place.store.display()
        ));
        let results = load(&experiment, &args.place, options)?;
        output::line(report::text(&Analysis::of(&experiment, results)).trim_end())?;
    }
    Ok(Exit::Success)
}

fn write_report(args: &ReportArgs) -> Outcome<Exit> {
    let paths =
        if args.names.is_empty() { files(&args.place)? } else { paths(&args.names, &args.place)? };
    let mut experiments = Vec::new();
    for path in paths {
        experiments.push(Experiment::load(&path).map_err(bad_input)?);
    }
    let mut analyses = Vec::new();
    for experiment in &experiments {
        let results = load(experiment, &args.place, PlanOptions::default())?;
        if results.runs.is_empty() {
            let id = &experiment.id;
            output::note(&format!(
                "{id}: no runs of this version; `udccp lab run {id}` makes them"
            ));
        }
        analyses.push(Analysis::of(experiment, results));
    }
    let index = report::write(&args.output, &analyses)
        .map_err(|e| Failure::new(Exit::Failure, e.to_string()))?;
    output::line(&index.display().to_string())?;
    Ok(Exit::Success)
}

fn export_runs(args: &ExportArgs) -> Outcome<Exit> {
    let path = find(&args.name, &args.place)?;
    let experiment = Experiment::load(&path).map_err(bad_input)?;
    let results = load(&experiment, &args.place, PlanOptions::default())?;
    let text = if args.csv {
        export::csv(&results)
    } else {
        export::json(&results).map_err(|e| Failure::new(Exit::Failure, e.to_string()))?
    };
    output::line(text.trim_end())?;
    Ok(Exit::Success)
}

fn open(place: &Place) -> Outcome<Store> {
    Store::open(&place.store).map_err(store_failure)
}

fn store_failure(error: StoreError) -> Failure {
    Failure::new(Exit::BadInput, error.to_string())
        .hint("--store names another file; results can always be made again")
}

fn load(experiment: &Experiment, place: &Place, options: PlanOptions) -> Outcome<Results> {
    Results::load(experiment, &open(place)?, options)
        .map_err(|e| Failure::new(Exit::BadInput, e.to_string()))
}

/// Every experiment file of the folder, by name.
fn files(place: &Place) -> Outcome<Vec<PathBuf>> {
    let folder = &place.experiments;
    let entries = std::fs::read_dir(folder).map_err(|e| {
        Failure::new(Exit::BadInput, format!("cannot read the folder {}: {e}", folder.display()))
            .hint("run this where the folder `experiments` is, or name one: --experiments DIR")
    })?;
    let mut paths: Vec<PathBuf> = entries.flatten().map(|e| e.path()).collect();
    paths.retain(|p| p.extension().is_some_and(|e| e == "toml"));
    paths.sort();
    Ok(paths)
}

fn paths(names: &[String], place: &Place) -> Outcome<Vec<PathBuf>> {
    names.iter().map(|name| find(name, place)).collect()
}

/// The file of an experiment that was given by its name or its path.
fn find(name: &str, place: &Place) -> Outcome<PathBuf> {
    let as_path = Path::new(name);
    if name.ends_with(".toml") {
        return Ok(as_path.to_owned());
    }
    let path = place.experiments.join(format!("{name}.toml"));
    if path.exists() {
        return Ok(path);
    }
    let known: Vec<String> = files(place)?
        .iter()
        .filter_map(|p| Some(p.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    let message = format!("there is no experiment \"{name}\" in {}", place.experiments.display());
    Err(Failure::new(Exit::BadInput, message).hint(format!("there are: {}", known.join(", "))))
}

/// Progress on standard error: a bar on a terminal, a line now and then elsewhere.
struct Bar {
    bar: ProgressBar,
    name: String,
}

impl Bar {
    fn new(name: &str) -> Self {
        let template = "{prefix} {bar:30} {pos} of {len} runs, {eta} left  {msg}";
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .progress_chars("━╸ ");
        let bar = ProgressBar::new(0).with_style(style).with_prefix(name.to_owned());
        Self { bar, name: name.to_owned() }
    }

    fn end(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn begin(&self, total: usize, stored: usize) {
        self.bar.set_length(total as u64);
        self.bar.set_position(stored as u64);
        self.bar.reset_eta();
        self.bar.enable_steady_tick(Duration::from_millis(250));
        if self.bar.is_hidden() && stored < total {
            output::note(&format!("{}: {total} runs, {stored} of them in the store", self.name));
        }
    }

    fn done(&self, task: &Task, record: &Record) {
        let jain = record.system.jain.map_or_else(String::new, |j| format!(": Jain index {j:.2}"));
        self.bar.set_message(format!("{}{jain}", label(task)));
        self.bar.inc(1);
        let (done, total) = (self.bar.position(), self.bar.length().unwrap_or(0));
        if self.bar.is_hidden() && (done.is_multiple_of((total / 10).max(1)) || done == total) {
            let left = self.bar.eta().as_secs();
            output::note(&format!("{}: {done} of {total} runs, {left} s left", self.name));
        }
    }
}
