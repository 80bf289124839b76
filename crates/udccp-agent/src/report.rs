//! Messages between an agent and its orchestrator.

use serde::{Deserialize, Serialize};

use crate::spec::Role;

/// A line of an agent's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum AgentEvent {
    /// The sockets are bound, and the agent waits for [`Order::Go`].
    Ready,
    /// The run is complete.
    Report(Box<AgentReport>),
    /// The run failed.
    Error {
        /// The kind of error, as in [`crate::AgentError::kind`].
        kind: String,
        /// What went wrong.
        message: String,
        /// What to do about it.
        hint: String,
    },
}

/// A line of an agent's standard input after the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event", deny_unknown_fields)]
pub enum Order {
    /// Start the run.
    Go {
        /// The scenario's time zero on `CLOCK_MONOTONIC`.
        t0_ns: u64,
    },
}

/// What one end of a flow measured. Times count from the scenario's time zero.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The flow.
    pub flow: String,
    /// Which end of the flow.
    pub role: Role,
    /// One sample per interval, from the start of the run to its end.
    pub samples: Vec<AgentSample>,
    /// Bytes that the application passed to its socket in the whole run.
    pub app_bytes_out: u64,
    /// Bytes that the application received in the whole run.
    pub app_bytes_in: u64,
    /// What the source offered (sender).
    #[serde(default)]
    pub offered: OfferedReport,
    /// Messages that the source tracks: `begun` and `given_up` at the sender, `done` at the end
    /// where they complete.
    #[serde(default)]
    pub messages: Option<TimesReport>,
    /// Requests and responses (sender).
    #[serde(default)]
    pub responses: Option<TimesReport>,
    /// The connections of the flow: one, or one for each transfer.
    #[serde(default)]
    pub connections: Vec<ConnectionReport>,
    /// How often this host's kernel ran short of memory for TCP. A shortage slows down all of its
    /// connections, whatever their paths, so the rates do not reflect the network.
    #[serde(default)]
    pub memory_pressures: u64,
    /// Packets that this host's kernel dropped because a socket had no room for them. The network
    /// did not lose these.
    #[serde(default)]
    pub buffer_drops: u64,
    /// Names of sample values that this protocol does not report.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// Problems that did not end the run, and settings that could not be applied.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One end of a flow in one interval. Counters marked cumulative cover the run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSample {
    /// End of the interval.
    pub end_ns: u64,
    /// Application bytes delivered here in the interval.
    pub app_bytes: u64,
    /// IP bytes received on this host's device in the interval.
    pub wire_bytes: u64,
    /// Packets received.
    pub wire_packets: u64,
    /// IP bytes sent.
    pub sent_bytes: u64,
    /// Packets sent.
    pub sent_packets: u64,
    /// Congestion window in packets at the end of the interval.
    #[serde(default)]
    pub cwnd_packets: Option<f64>,
    /// Slow start threshold in packets.
    #[serde(default)]
    pub ssthresh_packets: Option<f64>,
    /// Smoothed round-trip time.
    #[serde(default)]
    pub srtt_ns: Option<u64>,
    /// Allowed sending rate of a rate-based protocol.
    #[serde(default)]
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate of a rate-based protocol, 0..=1.
    #[serde(default)]
    pub loss_event_rate: Option<f64>,
    /// Packets retransmitted (cumulative).
    pub retransmits: u64,
    /// Timeouts (cumulative).
    pub timeouts: u64,
    /// Congestion events that cut the window or rate (cumulative).
    pub congestion_events: u64,
}

/// What a source offered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferedReport {
    /// Messages that the socket accepted.
    pub accepted: u64,
    /// Bytes that the socket accepted.
    pub accepted_bytes: u64,
    /// Messages that the socket refused.
    pub refused: u64,
}

/// Things that began and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimesReport {
    /// Things that began.
    pub begun: u64,
    /// How many of these the source gave up.
    pub given_up: u64,
    /// For each that completed: the time of completion, and how long it took, both in nanoseconds.
    pub done: Vec<[u64; 2]>,
}

/// One end of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// The sender's port, which matches the two ends of a connection.
    pub port: u16,
    /// When it was opened (sender) or accepted.
    pub opened_ns: u64,
    /// Application bytes passed to the socket (sender) or delivered (receiver).
    pub bytes: u64,
    /// When the last bytes were delivered (receiver).
    #[serde(default)]
    pub last_ns: Option<u64>,
    /// For a transfer: whether all of it was passed to the socket (sender).
    #[serde(default)]
    pub is_offered: Option<bool>,
    /// Whether the connection ended before the run did.
    #[serde(default)]
    pub is_closed: bool,
}
