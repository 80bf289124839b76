//! `udccp doctor`: checks what this machine supports, and how to get the rest.

mod check;
mod checks;
#[cfg(target_os = "linux")]
mod linux;

use serde::Serialize;

use check::{Check, State};
#[cfg(target_os = "linux")]
use linux::real_kernels;

use crate::about::Program;
use crate::exit::{CliResult, Exit};
use crate::output;

const EXAMPLES: &str = "\
Examples:
  udccp doctor                 all checks, with hints for what is missing
  udccp doctor --json | jq '.checks[] | select(.state == \"missing\")'

Not everybody needs everything: each line says what needs it. Exit code 10 means that DCCP sockets
cannot work here at all.";

/// Flags of `udccp doctor`.
#[derive(Debug, clap::Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct Args {
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    #[serde(flatten)]
    program: Program,
    system: String,
    checks: &'a [Check],
}

/// Every check, in the order of printing.
fn all() -> Vec<Check> {
    let mut checks = checks::sockets();
    checks.extend(real_kernels());
    checks.extend(checks::tools());
    checks
}

/// Raw IP, all backends except the simulator, and `udccp run`.
#[cfg(not(target_os = "linux"))]
fn real_kernels() -> [Check; 1] {
    let check = Check::new("real kernels", "raw IP, emulated networks, guests, old programs");
    [check.missing("this is not Linux", "use a machine or a container with Linux")]
}

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let checks = all();
    if args.json {
        output::json(&Report {
            schema: 1,
            program: Program::new(),
            system: checks::system(),
            checks: &checks,
        })?;
    } else {
        print(&checks)?;
    }
    let broken = checks.iter().any(|c| c.essential && c.state == State::Missing);
    Ok(if broken { Exit::Unsupported } else { Exit::Success })
}

fn print(checks: &[Check]) -> CliResult<()> {
    output::line(&format!("udccp {} on {}", env!("CARGO_PKG_VERSION"), checks::system()))?;
    for check in checks {
        let mark = match check.state {
            State::Ok => "ok     ",
            State::Limited => "limited",
            State::Missing => "missing",
        };
        output::line(&format!("{mark}  {:<22} {}", check.name, check.found))?;
        if let Some(advice) = &check.advice {
            output::line(&format!("         needed for {}", check.needed_for))?;
            output::line(&format!("         hint: {advice}"))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_advice_and_a_purpose() {
        let checks = all();
        assert!(checks.len() >= 12);
        for check in checks {
            assert!(!check.needed_for.is_empty(), "{}", check.name);
            assert_eq!(check.state == State::Ok, check.advice.is_none(), "{}", check.name);
        }
    }
}
