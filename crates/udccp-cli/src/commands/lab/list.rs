//! `udccp lab list` and `udccp lab status`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use std::fmt::Write as _;

use serde::Serialize;
use udccp_lab::schema::Experiment;
use udccp_lab::{Costs, PlanOptions, SIM, Store, library, plan};

use super::files::{Amount, LabFiles, same_id, store_failure};
use super::progress::{cores, time};
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    amount: Amount,
    #[command(flatten)]
    files: LabFiles,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// One experiment in a list.
#[derive(Serialize)]
struct Listed {
    id: String,
    asks: String,
    path: PathBuf,
    /// Whether it is built into the program.
    built_in: bool,
    /// Grid points, including those of variants.
    points: usize,
    runs: usize,
    stored: usize,
    missing: usize,
    /// Expected processor time of the missing runs, in seconds.
    expected_s: f64,
    /// Number of runs done by each backend other than the simulator.
    others: BTreeMap<String, usize>,
}

/// Lists every experiment. A file that does not load is reported and does not hide the others.
pub(super) fn run(args: &Args, status: bool) -> CliResult<Exit> {
    let store = args.files.open_if_there()?;
    let costs =
        store.as_ref().map_or(Ok(Costs::default()), |s| s.costs(SIM)).map_err(store_failure)?;
    let (mut all, mut faulty) = (Vec::new(), 0);
    for path in args.files.files()? {
        let listed = listed(path, args.amount.into(), store.as_ref(), &costs);
        match listed.and_then(|listed| check_unique(&all, listed)) {
            Ok(listed) => all.push(listed),
            Err(failure) => {
                output::failure(&failure);
                faulty += 1;
            }
        }
    }
    if args.json {
        output::json(&all)?;
    } else {
        text(&all, status)?;
        if status && store.is_none() {
            let path = args.files.store.display();
            output::note(&format!("there is no result store {path} yet"));
        }
        if let Some(store) = store.filter(|_| status) {
            let (ours, others) = store.count().map_err(store_failure)?;
            let others = if others == 0 {
                String::new()
            } else {
                format!(" and {others} of other versions, which `udccp lab prune` removes")
            };
            let path = store.path().display().to_string();
            output::note(&format!("{path}: {ours} runs of this version{others}"));
        }
    }
    Ok(if faulty > 0 { Exit::BadInput } else { Exit::Success })
}

fn listed(
    path: PathBuf,
    options: PlanOptions,
    store: Option<&Store>,
    costs: &Costs,
) -> CliResult<Listed> {
    let experiment = Experiment::load(&path).map_err(bad_input)?;
    let mut tasks = plan(&experiment, options).map_err(bad_input)?;
    // Two variants may contain the same run, which is made once.
    let mut keys = BTreeSet::new();
    tasks.retain(|task| keys.insert(task.key.clone()));
    let (mut stored, mut expected_s) = (0, 0.0);
    let mut others = BTreeMap::new();
    for task in &tasks {
        let has = store.map_or(Ok(false), |s| s.has(&task.key)).map_err(store_failure)?;
        stored += usize::from(has);
        for backend in store
            .map_or(Ok(Vec::new()), |s| s.other_backends_of(&task.key))
            .map_err(store_failure)?
        {
            *others.entry(backend).or_default() += 1;
        }
        expected_s += if has { 0.0 } else { costs.expected_s(task) };
    }
    let points = tasks.iter().filter(|t| t.run == 1).count();
    let (runs, missing) = (tasks.len(), tasks.len() - stored);
    let Experiment { id, asks, .. } = experiment;
    let built_in = library::is_built_in(&path);
    Ok(Listed { id, asks, path, built_in, points, runs, stored, missing, expected_s, others })
}

/// Checks that no other file of the user has the same name.
fn check_unique(all: &[Listed], listed: Listed) -> CliResult<Listed> {
    let is_same = |other: &&Listed| other.id == listed.id && !other.built_in && !listed.built_in;
    match all.iter().find(is_same) {
        Some(same) => Err(same_id(&same.id, &same.path, &listed.path)),
        None => Ok(listed),
    }
}

fn text(all: &[Listed], status: bool) -> Result<(), Failure> {
    let cores = cores() as f64;
    let asks = if status { "" } else { "  asks" };
    let last = "time left";
    let mut backends: Vec<&String> = all.iter().flat_map(|l| l.others.keys()).collect();
    backends.sort_unstable();
    backends.dedup();
    let mut head = format!("{:24} {:>6} {:>6} {:>6}", "experiment", "points", "runs", "done");
    for backend in &backends {
        let _ = write!(head, " {backend:>6}");
    }
    output::line(&format!("{head}  {last:>10}{asks}"))?;
    for listed in all {
        let Listed { id, asks, points, runs, stored, missing, expected_s, .. } = listed;
        let left = if *missing == 0 { "–".to_owned() } else { time(expected_s / cores) };
        let asks = if status { String::new() } else { format!("  {asks}") };
        let mut line = format!("{id:24} {points:>6} {runs:>6} {stored:>6}");
        for backend in &backends {
            let done = listed.others.get(*backend).copied().unwrap_or(0);
            let width = backend.len().max(6);
            let _ = write!(line, " {done:>width$}");
        }
        output::line(&format!("{line}  {left:>10}{asks}"))?;
    }
    // If all experiments are built in, there is nothing to distinguish.
    let built_in: Vec<&str> = all.iter().filter(|l| l.built_in).map(|l| l.id.as_str()).collect();
    if !built_in.is_empty() && built_in.len() < all.len() {
        output::note(&format!("built in: {}", built_in.join(", ")));
    }
    Ok(())
}
