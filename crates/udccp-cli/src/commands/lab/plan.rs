//! `udccp lab plan`: lists the grid as tasks.

use std::collections::BTreeSet;

use udccp_lab::schema::Experiment;
use udccp_lab::{Costs, PlanOptions, SIM, Store, Task, TaskFile, label, plan};

use super::files::{Amount, LabFiles, Part, store_failure};
use super::progress::time;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// Experiments: names or paths of files [default: all of the folder]
    #[arg(value_name = "EXPERIMENT")]
    names: Vec<String>,
    /// Only runs that the store does not have, each once, longest first
    #[arg(long)]
    missing: bool,
    /// Print a JSON list with one task per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    amount: Amount,
    #[command(flatten)]
    part: Part,
    #[command(flatten)]
    files: LabFiles,
}

const EXAMPLES: &str = "\
Examples:
  udccp lab plan bhatti-2008 --quick
  udccp lab plan bhatti-2008 --missing --json > tasks.json
  jq -c '.[]' tasks.json | parallel --pipe -N1 udccp lab task - > results.jsonl
  udccp lab import results.jsonl";

/// A task, the number of its experiment, and its expected processor seconds.
type Planned = (Task, usize, f64);

/// Prints the tasks.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let experiments = args.part.of_all(args.files.experiments(&args.names)?)?;
    let store = args.files.open_if_there()?;
    let costs =
        store.as_ref().map_or(Ok(Costs::default()), |s| s.costs(SIM)).map_err(store_failure)?;
    let mut tasks: Vec<Planned> = Vec::new();
    for (i, experiment) in experiments.iter().enumerate() {
        for task in plan(experiment, PlanOptions::from(args.amount)).map_err(bad_input)? {
            let expected_s = costs.expected_s(&task);
            tasks.push((task, i, expected_s));
        }
    }
    if args.missing {
        keep_missing(&mut tasks, store.as_ref())?;
    }
    if args.json { json(&tasks, &experiments) } else { text(&tasks) }
}

fn keep_missing(tasks: &mut Vec<Planned>, store: Option<&Store>) -> CliResult<()> {
    let mut keys = BTreeSet::new();
    let mut missing = Vec::new();
    for (task, i, expected_s) in tasks.drain(..) {
        let stored = store.map_or(Ok(false), |s| s.has(&task.key)).map_err(store_failure)?;
        if !stored && keys.insert(task.key.clone()) {
            missing.push((task, i, expected_s));
        }
    }
    missing.sort_by(|a, b| b.2.total_cmp(&a.2));
    *tasks = missing;
    Ok(())
}

fn json(tasks: &[Planned], experiments: &[Experiment]) -> CliResult<Exit> {
    let last = tasks.len().saturating_sub(1);
    output::line("[")?;
    for (n, (task, i, expected_s)) in tasks.iter().enumerate() {
        let file = TaskFile::new(&experiments[*i], task, *expected_s);
        let text =
            serde_json::to_string(&file).map_err(|e| Failure::new(Exit::Failure, e.to_string()))?;
        output::line(&format!("{text}{}", if n < last { "," } else { "" }))?;
    }
    output::line("]")?;
    Ok(Exit::Success)
}

fn text(tasks: &[Planned]) -> CliResult<Exit> {
    for (task, _, expected_s) in tasks {
        let Task { key, experiment, .. } = task;
        output::line(&format!("{key}  {:>10}  {experiment}: {}", time(*expected_s), label(task)))?;
    }
    let all_s = tasks.iter().map(|t| t.2).sum();
    output::note(&format!("{} tasks, about {} of processor time", tasks.len(), time(all_s)));
    Ok(Exit::Success)
}
