//! `udccp ns2`: one scenario file, one run in ns-2.

use udccp_ns2::{Ns2, Ns2Error};

use super::scenario::{self, Choice};
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Flags of `udccp ns2`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(flatten)]
    choice: Choice,
    /// Print the script for ns-2 instead of running it
    #[arg(long, conflicts_with = "json")]
    script: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
It needs the program `ns` (Debian package ns2). ns-2 has dumbbells with drop-tail or RED queues,
TCP, DCCP with CCID 2 and 3, and UDP; for anything else, the error names what is not supported.

Examples:
  udccp ns2 nor-2012 --set cut=\"25 %\"
  udccp ns2 two-flows-short --set topology.bottleneck.queue=drop-tail --json
  udccp ns2 two-flows-short --script > two-flows.tcl";

/// Runs the command.
pub(crate) fn run(args: &Args) -> CliResult<Exit> {
    let chosen = args.choice.load()?;
    // Report errors that do not need ns-2 first.
    udccp_ns2::check_supported(&chosen.scenario).map_err(failure)?;
    if args.script {
        output::line(udccp_ns2::script(&chosen.scenario, chosen.seed).trim_end())?;
        return Ok(Exit::Success);
    }
    let ns2 = Ns2::find().map_err(failure)?;
    let run = ns2.run(&chosen.experiment.id, &chosen.scenario, chosen.seed).map_err(failure)?;
    for note in &run.notes {
        output::note(&format!("note: {note}"));
    }
    if args.json {
        output::json(&run.record)?;
        return Ok(Exit::Success);
    }
    output::line(scenario::summary(&chosen, &run.record).trim_end())?;
    let (version, wall) = (ns2.version(), run.wall.as_secs_f64());
    output::line(&format!("ns-2 {version}; {wall:.1} s of real time"))?;
    Ok(Exit::Success)
}

/// The backend for campaigns.
pub(crate) fn backend() -> CliResult<Ns2> {
    Ns2::find().map_err(failure)
}

/// Converts an error of ns-2.
fn failure(error: Ns2Error) -> Failure {
    let exit = match error {
        Ns2Error::Missing => Exit::Unsupported,
        Ns2Error::Scenario(_) => Exit::BadInput,
        _ => Exit::Failure,
    };
    let failure = Failure::new(exit, error.to_string());
    match error.hint() {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}
