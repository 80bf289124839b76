//! `udccp lab task`: runs one task, on any machine.

use std::io::Read;
use std::path::Path;

use udccp_lab::{PlanOptions, TaskError, TaskFile, plan};

use super::files::LabFiles;
use crate::commands::scenario::bad_input;
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(super) struct Args {
    /// A task: its key (or the beginning of it), a file with its JSON, or - for standard input
    #[arg(value_name = "KEY|FILE|-")]
    task: String,
    #[command(flatten)]
    files: LabFiles,
}

const EXAMPLES: &str = "\
Examples:
  udccp lab task 3f2a9c01                    a task of an experiment that is here
  udccp lab task - < task.json | udccp lab import

A task's JSON (a line of `udccp lab plan --json`) is all that a worker needs, without experiment
files or a store. Traces that its scenario names are read from the current folder. The result is one
line for `udccp lab import`.";

/// Shortest prefix of a key that is accepted.
const KEY_LENGTH: usize = 6;

/// Runs the task and prints its result.
pub(super) fn run(args: &Args) -> CliResult<Exit> {
    let (name, file) = if args.task == "-" {
        let mut text = String::new();
        std::io::stdin().lock().read_to_string(&mut text)?;
        let name = "standard input".to_owned();
        (name.clone(), TaskFile::parse(&name, &text).map_err(failure)?)
    } else if Path::new(&args.task).exists() || args.task.ends_with(".json") {
        let text = std::fs::read_to_string(&args.task)
            .map_err(|error| failure(TaskError::Read { place: args.task.clone(), error }))?;
        (args.task.clone(), TaskFile::parse(&args.task, &text).map_err(failure)?)
    } else {
        (args.task.clone(), by_key(&args.task, &args.files)?)
    };
    output::json(&file.run(&name).map_err(failure)?)?;
    Ok(Exit::Success)
}

fn by_key(key: &str, files: &LabFiles) -> CliResult<TaskFile> {
    let is_key = key.len() >= KEY_LENGTH && key.chars().all(|c| c.is_ascii_hexdigit());
    if !is_key {
        let message = format!("\"{key}\" is neither a task's key nor a file");
        return Err(Failure::new(Exit::BadInput, message)
            .hint("`udccp lab plan` lists the keys; - reads a task from standard input"));
    }
    for experiment in files.experiments(&[])? {
        for quick in [false, true] {
            let options = PlanOptions { quick, runs: None };
            let tasks = plan(&experiment, options).map_err(bad_input)?;
            let found = tasks.iter().find(|t| t.key.starts_with(key));
            if let Some(file) = found.and_then(|t| TaskFile::new(&experiment, t, 0.0)) {
                return Ok(file);
            }
        }
    }
    let message =
        format!("no task of an experiment in {} has the key {key}", files.folder().display());
    Err(Failure::new(Exit::BadInput, message)
        .hint("keys change with the program and the files: `udccp lab plan` lists them"))
}

/// Converts the error for an unusable task or result.
pub(super) fn failure(error: TaskError) -> Failure {
    let hint = match &error {
        TaskError::Read { .. } => Some("give the path of a file, or - for standard input"),
        TaskError::Json { what: "task", .. } => {
            Some("a task is one line of `udccp lab plan --json`, without the comma")
        }
        TaskError::Json { .. } => Some("a result is one line that `udccp lab task` printed"),
        TaskError::Version { .. } => {
            Some("plan, workers and store need the same build: `udccp lab plan --json` again")
        }
        TaskError::Changed { what: "record", .. } => Some("run the task again: `udccp lab task`"),
        TaskError::Changed { .. } => {
            Some("change the experiment file and plan again: `udccp lab plan --json`")
        }
        TaskError::Scenario { .. } | TaskError::Run { .. } => None,
    };
    let exit = match error {
        TaskError::Run { .. } => Exit::Failure,
        _ => Exit::BadInput,
    };
    let failure = Failure::new(exit, error.to_string());
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
