//! Prints the result of a test as lines of text.

use super::control::StreamResult;
use super::flow::Sent;
use super::meter::Received;
use super::report::{End, Interval, Sum, Way, mbit_per_s};
use super::spec::{Direction, Spec};
use crate::exit::CliResult;
use crate::output::line;

const HEADER: &str =
    " id      seconds            rate        messages    lost   jitter ms      RTT ms    cwnd";

pub(super) fn start(peer: &str, spec: &Spec) -> CliResult<()> {
    let who = match spec.direction {
        Direction::Forward => "sending",
        Direction::Reverse => "receiving",
        Direction::Both => "both ways",
    };
    line(&format!("connected to {peer}, {}", spec.describe(who)))
}

pub(super) fn header() -> CliResult<()> {
    line(HEADER)
}

pub(super) fn interval(interval: &Interval) -> CliResult<()> {
    let span = format!("{:>7.2}-{:<7.2}", interval.from_s, interval.to_s);
    for s in &interval.streams {
        if let Some(sent) = s.sent {
            line(&format!("{:>3} -> {span}{}", s.stream, sent_columns(&sent)))?;
        }
        if let Some(received) = s.received {
            line(&format!("{:>3} <- {span}{}", s.stream, received_columns(&received)))?;
        }
    }
    if interval.streams.len() < 2 {
        return Ok(());
    }
    let rate = |name: &str, rate: Option<f64>| Some(format!("{name} {:.2} Mbit/s", rate?));
    let rates =
        [rate("sent", interval.sent_mbit_per_s), rate("received", interval.received_mbit_per_s)];
    let rates: Vec<String> = rates.into_iter().flatten().collect();
    line(&format!("sum    {span} {}", rates.join(", ")))
}

fn sent_columns(s: &Sent) -> String {
    format!(
        " {:>10} Mbit/s {:>11} {:>7} {:>11} {:>11} {:>7}",
        number(mbit_per_s(s.bytes, s.seconds), 2),
        s.messages,
        s.lost,
        "-",
        number(s.srtt_ms, 3),
        s.cwnd_packets.map_or("-".into(), |n| n.to_string()),
    )
}

fn received_columns(r: &Received) -> String {
    format!(
        " {:>10} Mbit/s {:>11} {:>7} {:>11} {:>11} {:>7}",
        number(mbit_per_s(r.bytes, r.seconds), 2),
        r.messages,
        r.lost,
        number(r.jitter_ms, 3),
        "-",
        "-"
    )
}

pub(super) fn end(end: &End) -> CliResult<()> {
    line("")?;
    if let Some(reason) = &end.ending.reason {
        line(&format!("not complete: {reason}"))?;
    }
    for s in &end.streams {
        for (way, name) in [(s.forward, "->"), (s.reverse, "<-")] {
            if let Some(way) = way {
                line(&format!("{:>3} {name} {}", s.stream, way_line(&way)))?;
            }
        }
    }
    for (sum, name) in [(end.forward, "->"), (end.reverse, "<-")] {
        if let Some(sum) = sum.filter(|_| end.streams.len() > 1) {
            line(&format!("sum {name} {}", sum_line(&sum)))?;
        }
    }
    let cpu = |of: &str, percent: Option<f64>| Some(format!("{of} {:.0} %", percent?));
    let cpus = [cpu("client", end.client_cpu_percent), cpu("server", end.server_cpu_percent)];
    let cpus: Vec<String> = cpus.into_iter().flatten().collect();
    if cpus.is_empty() { Ok(()) } else { line(&format!("CPU: {} of a core", cpus.join(", "))) }
}

/// Formats what is known of one direction of a stream.
fn way_line(way: &Way) -> String {
    let mut parts = Vec::new();
    match (way.sender, way.receiver) {
        (Some(s), Some(r)) => {
            parts.push(format!("{} Mbit/s received", number(way.mbit_per_s, 2)));
            let percent = number(way.lost_percent, 3);
            parts.push(format!("{} of {} messages lost ({percent} %)", r.lost, s.messages));
        }
        (Some(s), None) => {
            let rate = number(mbit_per_s(s.bytes, s.seconds), 2);
            parts.push(format!("{rate} Mbit/s sent, {} messages", s.messages));
            parts.push(format!("{} acknowledged, {} lost", s.acked, s.lost));
        }
        (None, Some(r)) => {
            parts.push(format!("{} Mbit/s received", number(way.mbit_per_s, 2)));
            parts.push(format!("{} messages, {} missing between them", r.messages, r.lost));
        }
        (None, None) => parts.push("no data".to_owned()),
    }
    if let Some(jitter_ms) = way.receiver.and_then(|r| r.jitter_ms) {
        parts.push(format!("jitter {jitter_ms:.3} ms"));
    }
    if let Some(s) = way.sender {
        parts.extend(s.srtt_ms.map(|ms| format!("RTT {ms:.3} ms")));
        parts.push(format!("{} congestion events", s.congestion_events));
        parts.push(format!("{} timeouts", s.timeouts));
    }
    parts.join(", ")
}

fn sum_line(sum: &Sum) -> String {
    let mut parts = Vec::new();
    parts.extend(sum.mbit_per_s.map(|rate| format!("{rate:.2} Mbit/s received")));
    match (sum.messages_sent, sum.lost) {
        (Some(sent), Some(lost)) => {
            let percent = number(sum.lost_percent, 3);
            parts.push(format!("{lost} of {sent} messages lost ({percent} %)"));
        }
        (Some(sent), None) => parts.push(format!("{sent} messages sent")),
        (None, _) => {
            parts.extend(sum.messages_received.map(|n| format!("{n} messages received")));
        }
    }
    parts.extend(sum.jitter_ms.map(|ms| format!("jitter at most {ms:.3} ms")));
    parts.join(", ")
}

/// Prints the server's results of a test.
pub(super) fn server(peer: &str, results: &[StreamResult], reason: Option<&str>) -> CliResult<()> {
    if let Some(reason) = reason {
        line(&format!("{peer} not complete: {reason}"))?;
    }
    for (n, result) in results.iter().enumerate() {
        if let Some(r) = result.received {
            line(&format!(
                "{peer} {n:>3} received {} messages, {} Mbit/s, {} lost, jitter {} ms",
                r.messages,
                number(mbit_per_s(r.bytes, r.seconds), 2),
                r.lost,
                number(r.jitter_ms, 3)
            ))?;
        }
        if let Some(s) = result.sent {
            let rate = number(mbit_per_s(s.bytes, s.seconds), 2);
            line(&format!(
                "{peer} {n:>3} sent {} messages, {rate} Mbit/s, {} lost",
                s.messages, s.lost
            ))?;
        }
    }
    Ok(())
}

/// Formats a number, or a dash if there is none.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |v| format!("{v:.digits$}"))
}
