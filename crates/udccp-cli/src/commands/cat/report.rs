//! Reports the result of a transfer.

use std::fmt;
use std::time::Duration;

use serde::Serialize;
use udccp::ConnectionStats;

/// The outcome of a transfer, as `--json` prints it.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Report {
    schema: u32,
    peer: String,
    duration_s: f64,
    sent: Sent,
    received: Received,
    srtt_ms: Option<f64>,
    congestion_events: u64,
}

/// The sending direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Sent {
    /// Messages handed to the connection.
    pub(super) messages: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Messages that the peer reported received.
    pub(super) delivered: u64,
    /// Messages judged lost, or not accounted for at the end.
    pub(super) lost: u64,
    pub(super) mbit_per_s: f64,
}

/// The receiving direction.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Received {
    /// Messages written to standard output.
    pub(super) messages: u64,
    /// Their bytes.
    pub(super) bytes: u64,
    /// Messages dropped because the receive queue was full.
    pub(super) overflowed: u64,
    pub(super) mbit_per_s: f64,
}

impl Report {
    pub(super) fn new(
        peer: String,
        duration: Duration,
        mut sent: Sent,
        mut received: Received,
        stats: Option<&ConnectionStats>,
    ) -> Self {
        sent.mbit_per_s = mbit_per_s(sent.bytes, duration);
        received.mbit_per_s = mbit_per_s(received.bytes, duration);
        received.overflowed = stats.map_or(0, |s| s.counters.drops.receive_queue_full);
        Self {
            schema: 1,
            peer,
            duration_s: duration.as_secs_f64(),
            sent,
            received,
            srtt_ms: stats.and_then(|s| s.srtt).map(|d| d.as_secs_f64() * 1e3),
            congestion_events: stats.map_or(0, |s| s.congestion_events),
        }
    }

    /// Whether a message was lost in either direction.
    pub(super) fn lost_anything(&self) -> bool {
        self.sent.lost > 0 || self.received.overflowed > 0
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (out, back) = (&self.sent, &self.received);
        if out.messages > 0 || back.messages == 0 {
            write!(
                f,
                "sent {} messages ({} bytes): delivered {}, lost {}, {:.1} Mbit/s",
                out.messages, out.bytes, out.delivered, out.lost, out.mbit_per_s
            )?;
        }
        if back.messages > 0 {
            let lead = if out.messages > 0 { "\n" } else { "" };
            write!(
                f,
                "{lead}received {} messages ({} bytes), {:.1} Mbit/s",
                back.messages, back.bytes, back.mbit_per_s
            )?;
        }
        if back.overflowed > 0 {
            write!(
                f,
                "\n{} received messages were dropped: the receive queue was full",
                back.overflowed
            )?;
        }
        write!(f, "\n{:.3} s with {}", self.duration_s, self.peer)
    }
}

fn mbit_per_s(bytes: u64, duration: Duration) -> f64 {
    let seconds = duration.as_secs_f64();
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds / 1e6 } else { 0.0 }
}
