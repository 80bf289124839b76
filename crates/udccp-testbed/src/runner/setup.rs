//! Sets up the network of a plan.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::{fs, io};

use udccp_netns::Namespace;

use crate::error::Error;
use crate::plan::{Plan, Setting};
use crate::runner::links;

/// The namespace of this thread.
pub(crate) fn current() -> Result<Namespace, Error> {
    Namespace::current().map_err(|e| Error::new(format!("no network namespaces: {e}")))
}

/// Creates an unnamed namespace and moves this thread into it.
pub(crate) fn unshare() -> Result<Namespace, Error> {
    let failed = |e| Error::new(format!("cannot create a network namespace: {e}"));
    Namespace::unshare().map_err(failed)
}

/// Moves this thread, and the programs that it starts, to a namespace.
pub(crate) fn enter(namespace: &Namespace) -> Result<(), Error> {
    namespace.enter().map_err(|e| Error::new(format!("cannot enter a network namespace: {e}")))
}

/// Runs a job in a new namespace, and returns to the current one.
pub(crate) fn in_own_space<T>(job: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    let home = current()?;
    let _own = unshare()?;
    let done = job();
    enter(&home)?;
    done
}

/// Writes settings of the kernel, or of this thread's namespace.
pub(super) fn settings(all: &[Setting]) -> Result<(), Error> {
    for Setting { path, value } in all {
        let file = Path::new("/proc/sys").join(path);
        match fs::write(&file, value) {
            // A kernel without IPv6 need not disable it, and one without a choice of receive
            // processors has only one.
            Err(e)
                if e.kind() == io::ErrorKind::NotFound
                    && (path.contains("ipv6") || path.contains("rps")) => {}
            done => {
                done.map_err(|e| Error::new(format!("cannot set {path} to {value}: {e}")))?;
            }
        }
    }
    Ok(())
}

/// Creates all namespaces with their wires, queues and routes.
pub(super) fn network(plan: &Plan) -> Result<Vec<Namespace>, Error> {
    let home = current()?;
    let mut spaces = Vec::new();
    for namespace in &plan.namespaces {
        spaces.push(unshare()?);
        // Before devices exist: they get their addresses when they are created.
        settings(&namespace.files)?;
    }
    // Created from inside the plan's namespaces: elsewhere the right may be missing.
    links::join(plan, &spaces)?;
    for (namespace, space) in plan.namespaces.iter().zip(&spaces) {
        enter(space)?;
        batch(&namespace.tc)?;
        links::steps(&namespace.ip)?;
    }
    enter(&home)?;
    Ok(spaces)
}

/// Passes lines to `tc`.
pub(crate) fn batch(lines: &[String]) -> Result<(), Error> {
    if lines.is_empty() {
        return Ok(());
    }
    let text = lines.join("\n") + "\n";
    feed(Command::new("tc").args(["-batch", "-"]), &text).map_err(|error| {
        // "Command failed -:3" names the line.
        let message = error.to_string();
        let number = message.rsplit("-:").next().and_then(|rest| rest.trim().parse().ok());
        let line = number.and_then(|n: usize| lines.get(n.checked_sub(1)?));
        match line {
            Some(line) => Error::new(format!("{message} (tc {line})")),
            None => error,
        }
    })
}

fn feed(command: &mut Command, text: &str) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |e: io::Error| match e.kind() {
        io::ErrorKind::NotFound => Error::Program(name.clone()),
        _ => Error::new(format!("{name}: {e}")),
    };
    let path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
    command.env("PATH", path).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(failed)?;
    if let Some(mut input) = child.stdin.take() {
        // If the program ends early, its output says why.
        let _ = input.write_all(text.as_bytes());
    }
    let output = child.wait_with_output().map_err(failed)?;
    if output.status.success() {
        return Ok(());
    }
    let message = String::from_utf8_lossy(&output.stderr);
    let message: Vec<&str> = message.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    Err(Error::new(format!("{name}: {}", message.join(" "))))
}
