//! `udccp doctor`: checks what this machine supports, and how to get the rest.

mod checks;
#[cfg(target_os = "linux")]
mod linux;

use serde::Serialize;

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

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// Available.
    Ok,
    /// Works, but not as well as possible.
    Limited,
    /// Not available.
    Missing,
}

/// A check with its result.
#[derive(Clone, Debug, Serialize)]
struct Check {
    name: &'static str,
    state: State,
    /// What was found.
    found: String,
    /// What needs it.
    needed_for: &'static str,
    /// How to get it, if it is missing or limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// Whether nothing works without it.
    #[serde(skip)]
    essential: bool,
}

#[derive(Serialize)]
struct Report<'a> {
    schema: u32,
    #[serde(flatten)]
    program: Program,
    system: String,
    checks: &'a [Check],
}

impl Check {
    fn new(name: &'static str, needed_for: &'static str) -> Self {
        let state = State::Missing;
        Self { name, state, found: "no".into(), needed_for, advice: None, essential: false }
    }

    fn ok(mut self, found: impl Into<String>) -> Self {
        (self.state, self.found) = (State::Ok, found.into());
        self
    }

    fn limited(mut self, found: impl Into<String>, advice: impl Into<String>) -> Self {
        (self.state, self.found) = (State::Limited, found.into());
        self.advice = Some(advice.into());
        self
    }

    fn missing(mut self, found: impl Into<String>, advice: impl Into<String>) -> Self {
        (self.state, self.found) = (State::Missing, found.into());
        self.advice = Some(advice.into());
        self
    }

    fn essential(mut self) -> Self {
        self.essential = true;
        self
    }
}

/// Runs the command.
pub(crate) fn run(args: Args) -> CliResult<Exit> {
    let checks = checks::all();
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
        let checks = checks::all();
        assert!(checks.len() >= 12);
        for check in checks {
            assert!(!check.needed_for.is_empty(), "{}", check.name);
            assert_eq!(check.state == State::Ok, check.advice.is_none(), "{}", check.name);
        }
    }
}
