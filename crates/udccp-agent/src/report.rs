//! Messages between an agent and its orchestrator: events and reports up, orders down.

use serde::{Deserialize, Serialize};

use crate::spec::Role;

/// A line of an agent's standard output.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum AgentEvent {
    /// It has bound its sockets and waits for the word to go.
    Ready,
    /// It has played to the end.
    Report(Box<AgentReport>),
    /// It could not.
    Error {
        /// The kind of error, as [`crate::AgentError::kind`] has it.
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
    /// Play.
    Go {
        /// Time zero of the scenario on the clock `CLOCK_MONOTONIC`.
        t0_ns: u64,
    },
}

/// What one end of a flow saw. Times are since time zero of the scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AgentReport {
    /// The flow.
    pub flow: String,
    /// Which end.
    pub role: Role,
    /// One for each interval, from the start of the run to its end.
    pub samples: Vec<AgentSample>,
    /// Bytes that the application gave to its socket in the whole run.
    pub app_bytes_out: u64,
    /// Bytes that the application got in the whole run.
    pub app_bytes_in: u64,
    /// What the source offered (sender).
    #[serde(default)]
    pub offered: OfferedReport,
    /// Messages that the source follows (`begun` and `given_up` at the sender, `done` where they
    /// end).
    #[serde(default)]
    pub messages: Option<TimesReport>,
    /// Requests and responses (sender).
    #[serde(default)]
    pub responses: Option<TimesReport>,
    /// The connections of the flow: one, or one for each transfer.
    #[serde(default)]
    pub connections: Vec<ConnectionReport>,
    /// How often memory for TCP ran short in this host's kernel, which slows down all of its
    /// connections, whatever their paths: the rates are then not those of the network.
    #[serde(default)]
    pub memory_pressures: u64,
    /// Packets that this host's kernel dropped because a socket had no room for them: losses that
    /// are not those of the network.
    #[serde(default)]
    pub buffer_drops: u64,
    /// Values of the samples that this protocol does not tell, by their names.
    #[serde(default)]
    pub unknown: Vec<String>,
    /// What went wrong on the way without ending the run, and what could not be set as asked.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// One end of a flow in one interval; counters marked cumulative are of the run so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentSample {
    /// End of the interval.
    pub end_ns: u64,
    /// Application bytes delivered here in the interval.
    pub app_bytes: u64,
    /// IP bytes that came in over this host's device in the interval.
    pub wire_bytes: u64,
    /// Packets that came in.
    pub wire_packets: u64,
    /// IP bytes that went out.
    pub sent_bytes: u64,
    /// Packets that went out.
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
    /// Messages that the socket took.
    pub accepted: u64,
    /// Bytes that it took.
    pub accepted_bytes: u64,
    /// Messages that it did not.
    pub refused: u64,
}

/// Things that began and ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimesReport {
    /// Things that began.
    pub begun: u64,
    /// Of these, given up by the source.
    pub given_up: u64,
    /// Of those that ended well: when, and how long it had taken, in nanoseconds.
    pub done: Vec<[u64; 2]>,
}

/// One end of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionReport {
    /// The sender's port, by which both ends of a connection are known for each other.
    pub port: u16,
    /// When it was opened (sender) or accepted.
    pub opened_ns: u64,
    /// Application bytes given to the socket (sender) or delivered.
    pub bytes: u64,
    /// When the last of them were delivered (receiver).
    #[serde(default)]
    pub last_ns: Option<u64>,
    /// Of a transfer: all of it was given to the socket (sender).
    #[serde(default)]
    pub is_offered: Option<bool>,
    /// The connection was over before the run was.
    #[serde(default)]
    pub is_closed: bool,
}
