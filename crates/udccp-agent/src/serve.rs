//! The agent's side of the protocol.

use std::io::{BufRead, Write};
use std::sync::mpsc::{Receiver, channel};

use crate::clock::Clock;
use crate::error::AgentError;
use crate::flow_end::FlowEnd;
use crate::report::{AgentEvent, Order};
use crate::spec::AgentSpec;

/// Runs one end of one flow: reads orders from `input` and writes events to `output`. If `input`
/// ends before the report is written, `orphaned` is called; it should end the process.
///
/// # Errors
/// Why the run failed. The error has been written to `output` already.
pub fn serve(
    input: impl BufRead + Send + 'static,
    mut output: impl Write,
    orphaned: impl FnOnce() + Send + 'static,
) -> Result<(), AgentError> {
    let result = run_agent(input, &mut output, orphaned);
    if let Err(error) = &result {
        let event = AgentEvent::Error {
            kind: error.kind().to_owned(),
            message: error.to_string(),
            hint: error.hint(),
        };
        write_event(&mut output, &event)?;
    }
    result
}

fn run_agent(
    mut input: impl BufRead + Send + 'static,
    output: &mut impl Write,
    orphaned: impl FnOnce() + Send + 'static,
) -> Result<(), AgentError> {
    let mut line = String::new();
    let read = |source| AgentError::Io { what: "cannot read orders", source };
    if input.read_line(&mut line).map_err(read)? == 0 {
        return Err(AgentError::Spec { why: "there is none on standard input".to_owned() });
    }
    let spec = AgentSpec::parse(&line)?;
    let end = FlowEnd::prepare(spec)?;
    write_event(output, &AgentEvent::Ready)?;
    let orders = listen(input, orphaned)?;
    let Order::Go { t0_ns } = orders.recv().map_err(|_| AgentError::Orphaned)??;
    let report = end.run(Clock { t0_ns })?;
    write_event(output, &AgentEvent::Report(Box::new(report)))
}

/// Reads the one order in a separate thread, which then waits for the end of the input.
fn listen(
    mut input: impl BufRead + Send + 'static,
    orphaned: impl FnOnce() + Send + 'static,
) -> Result<Receiver<Result<Order, AgentError>>, AgentError> {
    let (sender, orders) = channel();
    let read_orders = move || {
        let mut line = String::new();
        if matches!(input.read_line(&mut line), Ok(n) if n > 0) {
            let order = serde_json::from_str(&line);
            let _ = sender.send(order.map_err(|e| AgentError::Spec { why: e.to_string() }));
            line.clear();
            while matches!(input.read_line(&mut line), Ok(n) if n > 0) {
                line.clear();
            }
        }
        drop(sender);
        orphaned();
    };
    std::thread::Builder::new()
        .name("orders".to_owned())
        .spawn(read_orders)
        .map_err(|source| AgentError::Io { what: "cannot start a thread", source })?;
    Ok(orders)
}

fn write_event(output: &mut impl Write, event: &AgentEvent) -> Result<(), AgentError> {
    let failed = |source| AgentError::Io { what: "cannot write to standard output", source };
    let line = serde_json::to_string(event).map_err(|e| failed(e.into()))?;
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(failed)
}
