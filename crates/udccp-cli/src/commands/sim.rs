//! `udccp sim`: one scenario file, one run.

use udccp_scenario::{RunError, RunOptions};

use super::capture::{self, CaptureArgs};
use super::scenario::{self, Choice};
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Flags of `udccp sim`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    capture: CaptureArgs,
    /// Check the simulator's invariants at every step (slower)
    #[arg(long)]
    check: bool,
}

const EXAMPLES: &str = "\
Examples:
  udccp sim two-flows
  udccp sim two-flows --set topology.bottleneck.rtt=\"25 ms\" --json
  udccp sim bhatti-2008 --set second=tcp/cubic --set rtt=\"50 ms\" --seed 2008001
  udccp sim ecn --case red --set tcp=tcp/newreno --set rtt=\"25 ms\" --set ecn=true
  udccp sim two-flows-short --pcap out/
  udccp sim my-scenario.toml";

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let chosen = args.choice.load()?;
    let options = RunOptions {
        check: args.check,
        pcap: args.capture.pcap.as_deref(),
        snaplen: args.capture.snaplen.0,
        stop: None,
        algorithms: &[],
    };
    let record = udccp_scenario::run(&chosen.experiment.id, &chosen.scenario, chosen.seed, options)
        .map_err(run_failure)?;
    if args.json {
        output::json(&record)?;
    } else {
        output::line(scenario::summary(&chosen, &record).trim_end())?;
    }
    Ok(Exit::Success)
}

fn run_failure(error: RunError) -> Failure {
    let exit = match error {
        RunError::Flow { .. } => Exit::BadInput,
        _ => Exit::Failure,
    };
    let failure = Failure::new(exit, error.to_string());
    match capture::advice(&error) {
        Some(advice) => failure.hint(advice),
        None => failure,
    }
}
