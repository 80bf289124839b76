//! The orchestrator's side: a process that runs one end of a flow.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::report::{AgentEvent, AgentReport, Order};
use crate::spec::{AgentSpec, Role};

/// Why an agent failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// The process could not be started.
    #[error("cannot start the {of}: {source}")]
    Spawn {
        /// Which end of which flow.
        of: String,
        /// The system's error.
        #[source]
        source: std::io::Error,
    },
    /// The agent reported an error.
    #[error("{of}: {message}")]
    Agent {
        /// Which end of which flow.
        of: String,
        /// The kind of error, as in [`crate::AgentError::kind`].
        kind: String,
        /// What went wrong.
        message: String,
        /// What to do about it.
        hint: String,
        /// The exit code for it.
        code: u8,
    },
    /// The process ended without a report.
    #[error("{of}: its process ended ({status}) without its {what}")]
    Ended {
        /// Which end of which flow.
        of: String,
        /// Its exit status.
        status: String,
        /// The expected message.
        what: &'static str,
    },
    /// The process did not answer in time.
    #[error("{of}: no {what} within {waited:?}")]
    Timeout {
        /// Which end of which flow.
        of: String,
        /// The expected message.
        what: &'static str,
        /// How long the orchestrator waited.
        waited: Duration,
    },
    /// The process sent an unexpected message.
    #[error("{of}: sent {line:?} instead of its {what}")]
    UnexpectedMessage {
        /// Which end of which flow.
        of: String,
        /// The expected message.
        what: &'static str,
        /// The line received.
        line: String,
    },
}

impl HostError {
    /// What to do about it, if known.
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Agent { hint, .. } => Some(hint),
            Self::Timeout { .. } => Some("the machine may be too busy for this scenario"),
            _ => None,
        }
    }

    /// The exit code for a program that fails with this error, from the table in `udccp --help`.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Agent { code, .. } => *code,
            _ => 1,
        }
    }
}

/// A process that runs one end of a flow. Dropping this kills it.
#[derive(Debug)]
pub struct AgentProcess {
    of: String,
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl AgentProcess {
    /// Starts an agent with a command that the caller has prepared: `udccp agent` in the namespace
    /// of its host, set to die with its parent. The command's standard error is left as it is.
    ///
    /// # Errors
    /// [`HostError::Spawn`].
    pub fn spawn(mut command: Command, spec: &AgentSpec) -> Result<Self, HostError> {
        let of = describe_process(spec.role, &spec.flow);
        let failed = |source| HostError::Spawn { of: of.clone(), source };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (tell, lines) = channel();
        let listen = move || {
            if let Some(output) = output {
                forward_lines(BufReader::new(output), &tell);
            }
        };
        let thread = std::thread::Builder::new().name("agent".to_owned());
        if let Err(source) = thread.spawn(listen) {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(source));
        }
        let mut host = Self { of, child, input, lines };
        host.write_line(&serde_json::to_string(spec).unwrap_or_default());
        Ok(host)
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the agent's sockets are bound.
    ///
    /// # Errors
    /// The agent's error, or that nothing came within `time`.
    pub fn wait_ready(&mut self, time: Duration) -> Result<(), HostError> {
        const WHAT: &str = "message that it is ready";
        match self.next_event(time, WHAT)? {
            AgentEvent::Ready => Ok(()),
            other => Err(self.unexpected(&other, WHAT)),
        }
    }

    /// Sends the scenario's time zero, on the clock of [`crate::monotonic_ns`].
    pub fn go(&mut self, t0_ns: u64) {
        self.write_line(&serde_json::to_string(&Order::Go { t0_ns }).unwrap_or_default());
    }

    /// Waits at most `time` for the agent's report, and then for the process to end.
    ///
    /// # Errors
    /// The agent's error, or that nothing came within `time`.
    pub fn report(&mut self, time: Duration) -> Result<AgentReport, HostError> {
        const WHAT: &str = "report";
        match self.next_event(time, WHAT)? {
            AgentEvent::Report(report) => {
                self.input = None;
                let _ = self.child.wait();
                Ok(*report)
            }
            other => Err(self.unexpected(&other, WHAT)),
        }
    }

    /// Whether the process has ended with an error.
    pub fn has_failed(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(status)) if !status.success())
    }

    /// Kills the process and reaps it.
    pub fn kill(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Write errors are ignored: a dead agent is noticed where its answer is awaited.
    fn write_line(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    fn next_event(&mut self, time: Duration, what: &'static str) -> Result<AgentEvent, HostError> {
        let of = self.of.clone();
        let line = match self.lines.recv_timeout(time) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => {
                return Err(HostError::Timeout { of, what, waited: time });
            }
            Err(RecvTimeoutError::Disconnected) => {
                let status = self.child.wait().map_or("unknown".to_owned(), |s| s.to_string());
                return Err(HostError::Ended { of, status, what });
            }
        };
        match serde_json::from_str(&line) {
            Ok(AgentEvent::Error { kind, message, hint }) => {
                let code = self.child.wait().ok().as_ref().and_then(ExitStatus::code);
                let code = code.and_then(|c| u8::try_from(c).ok()).filter(|c| *c > 0).unwrap_or(1);
                Err(HostError::Agent { of, kind, message, hint, code })
            }
            Ok(event) => Ok(event),
            Err(_) => Err(HostError::UnexpectedMessage { of, what, line }),
        }
    }

    fn unexpected(&self, event: &AgentEvent, what: &'static str) -> HostError {
        let line = serde_json::to_string(event).unwrap_or_default();
        HostError::UnexpectedMessage { of: self.of.clone(), what, line }
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

fn describe_process(role: Role, flow: &str) -> String {
    format!("{} of flow \"{flow}\"", role.word())
}

/// Forwards lines until the output ends or the receiver is dropped.
fn forward_lines(output: impl BufRead, tell: &Sender<String>) {
    for line in output.lines() {
        let Ok(line) = line else { return };
        if tell.send(line).is_err() {
            return;
        }
    }
}
