//! The result of a test as JSON. `docs/reference/perf-json.md` and the schema next to it describe
//! every field. Values unknown to this end are null.

use serde::Serialize;

use super::control::StreamResult;
use super::flow::Sent;
use super::meter::Received;
use super::spec::{Direction, Spec};

/// Version of the JSON.
pub(super) const SCHEMA: u32 = 2;

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
    pub(super) from_s: f64,
    pub(super) to_s: f64,
    pub(super) sent_mbit_per_s: Option<f64>,
    pub(super) received_mbit_per_s: Option<f64>,
    pub(super) streams: Vec<StreamInterval>,
}

impl Interval {
    pub(super) fn new([from_s, to_s]: [f64; 2], streams: Vec<StreamInterval>) -> Self {
        let rate = |bytes: Option<u64>| bytes.and_then(|b| mbit_per_s(b, to_s - from_s));
        let sent = total(streams.iter().map(|s| s.sent.map(|s| s.bytes)));
        let received = total(streams.iter().map(|s| s.received.map(|r| r.bytes)));
        Self {
            from_s,
            to_s,
            sent_mbit_per_s: rate(sent),
            received_mbit_per_s: rate(received),
            streams,
        }
    }

    /// Whether anything was sent or received.
    pub(super) fn has_bytes(&self) -> bool {
        let bytes = |s: &StreamInterval| {
            s.sent.map_or(0, |s| s.bytes) + s.received.map_or(0, |received| received.bytes)
        };
        self.streams.iter().any(|s| bytes(s) > 0)
    }
}

/// One direction of one stream, with the results of both sides as far as known.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Way {
    pub(super) sender: Option<Sent>,
    pub(super) receiver: Option<Received>,
    pub(super) mbit_per_s: Option<f64>,
    pub(super) lost_percent: Option<f64>,
}

impl Way {
    fn new(sender: Option<Sent>, mut receiver: Option<Received>, complete: bool) -> Self {
        if let (Some(s), Some(r), true) = (&sender, &mut receiver, complete) {
            // The receiver cannot see that the very last messages are missing; the sender can. If a
            // test was stopped, some were still in flight.
            r.lost = s.messages.saturating_sub(r.messages);
        }
        Self {
            sender,
            receiver,
            mbit_per_s: receiver.and_then(|r| mbit_per_s(r.bytes, r.seconds)),
            lost_percent: receiver.and_then(|r| percent(r.lost, r.messages + r.lost)),
        }
    }
}

/// The final result of a stream.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct StreamEnd {
    pub(super) stream: u16,
    /// Client to server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forward: Option<Way>,
    /// Server to client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reverse: Option<Way>,
}

impl StreamEnd {
    /// Combines both sides' results of a stream; `server` is `None` if the server did not report.
    pub(super) fn new(
        stream: u16,
        direction: Direction,
        client: &StreamResult,
        server: Option<&StreamResult>,
        complete: bool,
    ) -> Self {
        let forward = || Way::new(client.sent, server.and_then(|s| s.received), complete);
        let reverse = || Way::new(server.and_then(|s| s.sent), client.received, complete);
        Self {
            stream,
            forward: direction.client_sends().then(forward),
            reverse: direction.server_sends().then(reverse),
        }
    }
}

/// The sum of all streams in one direction. A value unknown for one stream is unknown for the sum.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Sum {
    pub(super) mbit_per_s: Option<f64>,
    pub(super) messages_sent: Option<u64>,
    pub(super) messages_received: Option<u64>,
    pub(super) lost: Option<u64>,
    pub(super) lost_percent: Option<f64>,
    /// Jitter of the stream with the most.
    pub(super) jitter_ms: Option<f64>,
}

impl Sum {
    fn of(ways: &[Way]) -> Self {
        let received = total(ways.iter().map(|w| w.receiver.map(|r| r.messages)));
        let lost = total(ways.iter().map(|w| w.receiver.map(|r| r.lost)));
        let mut rates = ways.iter().map(|w| w.mbit_per_s);
        let jitters = ways.iter().filter_map(|w| w.receiver?.jitter_ms);
        Self {
            mbit_per_s: rates.try_fold(0.0, |sum, rate| Some(sum + rate?)),
            messages_sent: total(ways.iter().map(|w| w.sender.map(|s| s.messages))),
            messages_received: received,
            lost,
            lost_percent: lost.zip(received).and_then(|(lost, got)| percent(lost, lost + got)),
            jitter_ms: jitters.reduce(f64::max),
        }
    }
}

/// How a test ended.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Ending {
    /// Whether the test ran for its full time and both sides reported their results.
    pub(super) complete: bool,
    /// If not, the reason.
    pub(super) reason: Option<String>,
    /// The exit code of the client.
    pub(super) exit_code: u8,
}

/// The whole test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct End {
    #[serde(flatten)]
    pub(super) ending: Ending,
    pub(super) streams: Vec<StreamEnd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) forward: Option<Sum>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) reverse: Option<Sum>,
    /// Percent of one core.
    pub(super) client_cpu_percent: Option<f64>,
    pub(super) server_cpu_percent: Option<f64>,
}

impl End {
    pub(super) fn new(
        ending: Ending,
        direction: Direction,
        streams: Vec<StreamEnd>,
        [client_cpu_percent, server_cpu_percent]: [Option<f64>; 2],
    ) -> Self {
        let ways = |way: fn(&StreamEnd) -> Option<Way>| {
            Sum::of(&streams.iter().filter_map(way).collect::<Vec<_>>())
        };
        Self {
            forward: direction.client_sends().then(|| ways(|s| s.forward)),
            reverse: direction.server_sends().then(|| ways(|s| s.reverse)),
            ending,
            streams,
            client_cpu_percent,
            server_cpu_percent,
        }
    }
}

/// Printed by the client before the first interval.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Start {
    schema: u32,
    /// Time in RFC 3339 format.
    time_utc: String,
    #[serde(flatten)]
    about: crate::about::About,
    argv: Vec<String>,
    local: String,
    pub(super) peer: String,
    /// Largest message in one packet of the path, as known now.
    max_message_bytes: usize,
    pub(super) test: Spec,
}

impl Start {
    pub(super) fn new(spec: &Spec, control: &udccp::Connection) -> Self {
        Self {
            schema: SCHEMA,
            time_utc: jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string(),
            about: crate::about::About::new(),
            argv: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
            local: control.local_addr().to_string(),
            peer: control.peer_addr().to_string(),
            max_message_bytes: control.max_message_size(),
            test: spec.clone(),
        }
    }
}

/// `None` if no time has passed.
pub(super) fn mbit_per_s(bytes: u64, seconds: f64) -> Option<f64> {
    (seconds > 0.0).then(|| bytes as f64 * 8.0 / seconds / 1e6)
}

fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// The sum, if all parts are known.
fn total(mut parts: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    parts.try_fold(0, |sum, part| Some(sum + part?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(messages: u64) -> Option<Sent> {
        Some(Sent { messages, bytes: messages * 100, ..Sent::default() })
    }

    fn received(messages: u64, lost: u64) -> Option<Received> {
        let bytes = messages * 100;
        Some(Received { messages, bytes, lost, seconds: 1.0, ..Received::default() })
    }

    #[test]
    fn losses_combine_both_ends_and_are_unknown_without_a_receiver() {
        // The receiver saw one gap; the sender knows that two more messages were lost at the end.
        let both = Way::new(sent(10), received(7, 1), true);
        assert_eq!((both.receiver.map(|r| r.lost), both.lost_percent), (Some(3), Some(30.0)));
        let heard = Way::new(None, received(9, 1), true);
        assert_eq!((heard.receiver.map(|r| r.lost), heard.lost_percent), (Some(1), Some(10.0)));
        let alone = Way::new(sent(10), None, true);
        assert_eq!((alone.mbit_per_s, alone.lost_percent), (None, None));
        let stopped = Way::new(sent(10), received(9, 0), false);
        assert_eq!(stopped.lost_percent, Some(0.0), "one was still on its way");
        let sum = Sum::of(&[both, alone]);
        assert_eq!((sum.messages_sent, sum.messages_received), (Some(20), None));
        assert_eq!((sum.lost, sum.lost_percent, sum.mbit_per_s), (None, None, None));
    }

    #[test]
    fn interval_has_no_rate_for_the_remote_direction() {
        let stream = StreamInterval { stream: 0, sent: sent(10), received: None };
        let interval = Interval::new([1.0, 2.0], vec![stream]);
        assert_eq!(interval.sent_mbit_per_s, Some(0.008));
        assert_eq!(interval.received_mbit_per_s, None);
        assert!(interval.has_bytes());
    }
}
