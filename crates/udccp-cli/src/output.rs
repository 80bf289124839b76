//! Prints results and errors.

use std::io::{self, Write};

use serde::Serialize;

use crate::exit::{CliResult, Exit, Failure};

/// The exit code of an outcome. A failure is printed.
pub(crate) fn exit(outcome: CliResult<Exit>) -> Exit {
    outcome.unwrap_or_else(|reason| {
        failure(&reason);
        reason.exit
    })
}

/// Prints a failure to standard error: the message, then the hint.
pub(crate) fn failure(failure: &Failure) {
    if failure.is_broken_pipe() {
        return;
    }
    let mut err = io::stderr().lock();
    // If standard error is gone, there is nowhere to report it.
    let _ = writeln!(err, "error: {}", failure.message);
    if let Some(hint) = &failure.hint {
        let _ = writeln!(err, "hint: {hint}");
    }
}

/// Prints one line of progress or explanation to standard error.
pub(crate) fn note(line: &str) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Prints one line of result to standard output.
pub(crate) fn line(line: &str) -> CliResult<()> {
    let mut out = io::stdout().lock();
    printed(writeln!(out, "{line}").and_then(|()| out.flush()))
}

/// The result of a write to standard output. A reader that has gone is not an error.
pub(crate) fn printed<T>(written: io::Result<T>) -> CliResult<T> {
    written.map_err(|e| match e.kind() {
        io::ErrorKind::BrokenPipe => e.into(),
        _ => Failure::new(Exit::Failure, format!("cannot write to standard output: {e}"))
            .hint("check where it goes: the disk may be full"),
    })
}

/// Prints what the command line asked the parser for (help or the version). A wrong command line
/// ends the program.
pub(crate) fn parser_answer(answer: &clap::Error) -> CliResult<Exit> {
    if answer.use_stderr() {
        answer.exit();
    }
    printed(answer.print().and_then(|()| io::stdout().flush()))?;
    Ok(Exit::Success)
}

/// Prints a result as one JSON object on standard output.
pub(crate) fn json(value: &impl Serialize) -> CliResult<()> {
    let text = serde_json::to_string(value).map_err(io::Error::from)?;
    line(&text)
}
