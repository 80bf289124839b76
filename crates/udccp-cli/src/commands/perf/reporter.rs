//! Prints the result of a test, as text or as JSON.

use serde::Serialize;

use super::control::StreamResult;
use super::report::{End, Interval, SCHEMA, Start};
use super::spec::Spec;
use super::text;
use crate::exit::CliResult;
use crate::output;

/// Prints results during the test.
pub(super) struct Reporter {
    json: bool,
    json_stream: bool,
    start: Start,
    intervals: Vec<Interval>,
    header_printed: bool,
}

impl Reporter {
    pub(super) fn new(json: bool, json_stream: bool, start: Start) -> CliResult<Self> {
        let this = Self { json, json_stream, start, intervals: Vec::new(), header_printed: false };
        if json_stream {
            event("start", &this.start)?;
        } else if !json {
            text::start(&this.start.peer, &this.start.test)?;
        }
        Ok(this)
    }

    pub(super) fn interval(&mut self, interval: Interval) -> CliResult<()> {
        if self.json_stream {
            return event("interval", &interval);
        }
        if self.json {
            self.intervals.push(interval);
            return Ok(());
        }
        if !std::mem::replace(&mut self.header_printed, true) {
            text::header()?;
        }
        text::interval(&interval)
    }

    pub(super) fn end(&self, end: &End) -> CliResult<()> {
        if self.json_stream {
            return event("end", end);
        }
        if self.json {
            return output::json(&serde_json::json!({
                "schema": SCHEMA,
                "start": self.start,
                "intervals": self.intervals,
                "end": end,
            }));
        }
        text::end(end)
    }
}

fn event(name: &str, data: &impl Serialize) -> CliResult<()> {
    output::json(&serde_json::json!({ "event": name, "data": data }))
}

/// Prints the server's result of a test; `reason` says why it did not run to its end.
pub(super) fn print_server(
    peer: &str,
    spec: &Spec,
    results: &[StreamResult],
    reason: Option<&str>,
    json: bool,
) -> CliResult<()> {
    if json {
        return output::json(&serde_json::json!({
            "schema": SCHEMA,
            "peer": peer,
            "test": spec,
            "complete": reason.is_none(),
            "reason": reason,
            "streams": results,
        }));
    }
    text::server(peer, results, reason)
}
