//! What the user sees: lines for people, or JSON.

use serde::Serialize;

use super::control::StreamResult;
use super::flow::Sent;
use super::meter::Received;
use super::spec::{Direction, Spec};
use crate::exit::Outcome;
use crate::output;

/// A stream during one interval.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct StreamInterval {
    pub(super) stream: u16,
    /// What the client sent.
    pub(super) sent: Option<Sent>,
    /// What the client received.
    pub(super) received: Option<Received>,
}

/// All streams during one interval.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Interval {
    from_s: f64,
    to_s: f64,
    sent_mbit_per_s: f64,
    received_mbit_per_s: f64,
    streams: Vec<StreamInterval>,
}

impl Interval {
    pub(super) fn new([from_s, to_s]: [f64; 2], streams: Vec<StreamInterval>) -> Self {
        let sent = streams.iter().filter_map(|s| s.sent).map(|s| s.bytes).sum();
        let received = streams.iter().filter_map(|s| s.received).map(|r| r.bytes).sum();
        Self {
            from_s,
            to_s,
            sent_mbit_per_s: mbit_per_s(sent, to_s - from_s),
            received_mbit_per_s: mbit_per_s(received, to_s - from_s),
            streams,
        }
    }
}

/// One direction of one stream, from both sides.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Way {
    sender: Sent,
    receiver: Received,
    mbit_per_s: f64,
    lost_percent: f64,
}

impl Way {
    fn new(sender: Sent, mut receiver: Received) -> Self {
        // The receiver does not see that the very last messages are missing; the sender does.
        receiver.lost = sender.messages.saturating_sub(receiver.messages);
        Self {
            sender,
            receiver,
            mbit_per_s: mbit_per_s(receiver.bytes, receiver.seconds),
            lost_percent: percent(receiver.lost, sender.messages),
        }
    }
}

/// A stream at the end.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct StreamEnd {
    stream: u16,
    /// Client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<Way>,
    /// Server to client.
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse: Option<Way>,
}

impl StreamEnd {
    pub(super) fn new(stream: u16, client: &StreamResult, server: &StreamResult) -> Self {
        let way =
            |from: Option<Sent>, to: Option<Received>| from.zip(to).map(|(s, r)| Way::new(s, r));
        Self {
            stream,
            forward: way(client.sent, server.received),
            reverse: way(server.sent, client.received),
        }
    }
}

/// One direction of all streams.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Sum {
    mbit_per_s: f64,
    messages_sent: u64,
    messages_received: u64,
    lost: u64,
    lost_percent: f64,
    jitter_ms: f64,
}

/// The whole test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct End {
    streams: Vec<StreamEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    forward: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reverse: Option<Sum>,
    /// Percent of one core.
    client_cpu_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    server_cpu_percent: Option<f64>,
}

impl End {
    pub(super) fn new(
        streams: Vec<StreamEnd>,
        client_cpu_percent: f64,
        server_cpu_percent: Option<f64>,
    ) -> Self {
        let forward = sum(streams.iter().filter_map(|s| s.forward));
        let reverse = sum(streams.iter().filter_map(|s| s.reverse));
        Self { streams, forward, reverse, client_cpu_percent, server_cpu_percent }
    }
}

fn sum(ways: impl Iterator<Item = Way>) -> Option<Sum> {
    let ways: Vec<Way> = ways.collect();
    let first = ways.first()?;
    let mut sum = Sum { jitter_ms: first.receiver.jitter_ms, ..Sum::default() };
    for way in &ways {
        sum.mbit_per_s += way.mbit_per_s;
        sum.messages_sent += way.sender.messages;
        sum.messages_received += way.receiver.messages;
        sum.lost += way.receiver.lost;
        sum.jitter_ms = sum.jitter_ms.max(way.receiver.jitter_ms);
    }
    sum.lost_percent = percent(sum.lost, sum.messages_sent);
    Some(sum)
}

/// Prints as the test goes on.
pub(super) struct Reporter {
    json: bool,
    json_stream: bool,
    start: serde_json::Value,
    intervals: Vec<Interval>,
    header_printed: bool,
}

impl Reporter {
    pub(super) fn new(json: bool, json_stream: bool, spec: &Spec, peer: &str) -> Outcome<Self> {
        let start = serde_json::json!({
            "schema": 1,
            "version": env!("CARGO_PKG_VERSION"),
            "peer": peer,
            "test": spec,
        });
        let this = Self { json, json_stream, start, intervals: Vec::new(), header_printed: false };
        if json_stream {
            this.event("start", &this.start)?;
        } else if !json {
            output::line(&format!("connected to {peer}, {}", describe(spec)))?;
        }
        Ok(this)
    }

    fn event(&self, name: &str, data: &impl Serialize) -> Outcome<()> {
        output::json(&serde_json::json!({ "event": name, "data": data }))
    }

    pub(super) fn interval(&mut self, interval: Interval) -> Outcome<()> {
        if self.json_stream {
            return self.event("interval", &interval);
        }
        if self.json {
            self.intervals.push(interval);
            return Ok(());
        }
        if !self.header_printed {
            self.header_printed = true;
            output::line(HEADER)?;
        }
        for s in &interval.streams {
            let lead = |way| {
                format!("{:>3} {way} {:>7.2}-{:<7.2}", s.stream, interval.from_s, interval.to_s)
            };
            if let Some(sent) = s.sent {
                output::line(&(lead("->") + &sent_line(&sent)))?;
            }
            if let Some(received) = s.received {
                output::line(&(lead("<-") + &received_line(&received)))?;
            }
        }
        if interval.streams.len() > 1 {
            output::line(&format!(
                "sum    {:>7.2}-{:<7.2} sent {:.2} Mbit/s, received {:.2} Mbit/s",
                interval.from_s,
                interval.to_s,
                interval.sent_mbit_per_s,
                interval.received_mbit_per_s
            ))?;
        }
        Ok(())
    }

    pub(super) fn end(&self, end: &End) -> Outcome<()> {
        if self.json_stream {
            return self.event("end", end);
        }
        if self.json {
            return output::json(&serde_json::json!({
                "schema": 1,
                "start": self.start,
                "intervals": self.intervals,
                "end": end,
            }));
        }
        output::line("")?;
        for s in &end.streams {
            for (way, name) in [(s.forward, "->"), (s.reverse, "<-")] {
                if let Some(way) = way {
                    output::line(&format!("{:>3} {name} {}", s.stream, way_line(&way)))?;
                }
            }
        }
        for (sum, name) in [(end.forward, "->"), (end.reverse, "<-")] {
            if let Some(sum) = sum.filter(|_| end.streams.len() > 1) {
                output::line(&format!("sum {name} {}", sum_line(&sum)))?;
            }
        }
        let server = end.server_cpu_percent.map_or("?".into(), |c| format!("{c:.0} %"));
        output::line(&format!(
            "CPU: client {:.0} %, server {server} of a core",
            end.client_cpu_percent
        ))
    }
}

const HEADER: &str =
    " id      seconds            rate        messages    lost   jitter ms      RTT ms    cwnd";

fn sent_line(s: &Sent) -> String {
    format!(
        " {:>10.2} Mbit/s {:>11} {:>7} {:>11} {:>11} {:>7}",
        mbit_per_s(s.bytes, s.seconds),
        s.messages,
        s.lost,
        "-",
        s.srtt_ms.map_or("-".into(), |ms| format!("{ms:.3}")),
        s.cwnd_packets.map_or("-".into(), |n| n.to_string()),
    )
}

fn received_line(r: &Received) -> String {
    let rate = mbit_per_s(r.bytes, r.seconds);
    format!(
        " {rate:>10.2} Mbit/s {:>11} {:>7} {:>11.3} {:>11} {:>7}",
        r.messages, r.lost, r.jitter_ms, "-", "-"
    )
}

fn way_line(way: &Way) -> String {
    format!(
        "{:.2} Mbit/s received, {} of {} messages lost ({:.3} %), jitter {:.3} ms, RTT {} ms, \
         {} congestion events, {} timeouts",
        way.mbit_per_s,
        way.receiver.lost,
        way.sender.messages,
        way.lost_percent,
        way.receiver.jitter_ms,
        way.sender.srtt_ms.map_or("?".into(), |ms| format!("{ms:.3}")),
        way.sender.congestion_events,
        way.sender.timeouts,
    )
}

fn sum_line(sum: &Sum) -> String {
    format!(
        "{:.2} Mbit/s received, {} of {} messages lost ({:.3} %), jitter at most {:.3} ms",
        sum.mbit_per_s, sum.lost, sum.messages_sent, sum.lost_percent, sum.jitter_ms
    )
}

fn describe(spec: &Spec) -> String {
    let who = match spec.direction {
        Direction::Forward => "sending",
        Direction::Reverse => "receiving",
        Direction::Both => "both ways",
    };
    let rate = spec.bits_per_s.map_or("as fast as it goes".into(), |bits| {
        format!("at {:.2} Mbit/s each", bits as f64 / 1e6)
    });
    format!(
        "{who} for {} s in {} stream(s) of {}-byte messages, {rate}, CCID {}",
        spec.duration_s, spec.streams, spec.length, spec.ccid
    )
}

/// What the server prints of a test.
pub(super) fn print_server(
    peer: &str,
    spec: &Spec,
    results: &[StreamResult],
    json: bool,
) -> Outcome<()> {
    if json {
        return output::json(
            &serde_json::json!({ "schema": 1, "peer": peer, "test": spec, "streams": results }),
        );
    }
    for (n, result) in results.iter().enumerate() {
        if let Some(r) = result.received {
            let rate = mbit_per_s(r.bytes, r.seconds);
            output::line(&format!(
                "{peer} {n:>3} received {} messages, {rate:.2} Mbit/s, {} lost, jitter {:.3} ms",
                r.messages, r.lost, r.jitter_ms
            ))?;
        }
        if let Some(s) = result.sent {
            let rate = mbit_per_s(s.bytes, s.seconds);
            output::line(&format!(
                "{peer} {n:>3} sent {} messages, {rate:.2} Mbit/s, {} lost",
                s.messages, s.lost
            ))?;
        }
    }
    Ok(())
}

fn mbit_per_s(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
}

fn percent(part: u64, whole: u64) -> f64 {
    if whole > 0 { part as f64 * 100.0 / whole as f64 } else { 0.0 }
}
