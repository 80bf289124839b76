//! The record of a run, as it is stored and printed by `--json`. Fields may be added, but are never
//! renamed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use udccp_metrics::Measured;

use crate::outcome::{CompletionRecord, CrossingRecord, LinkRecord, QuantileRecord};

/// The id of the simulator among the backends.
pub const SIM: &str = "sim";

/// One run.
///
/// Rates are means over the measured interval; packet counts and cost are of the whole run. A value
/// that does not exist is null, and `undefined` has the reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this format.
    pub schema: u64,
    /// Name of the scenario.
    pub scenario: String,
    /// The seed of the run.
    pub seed: u64,
    /// Version of the program, with the hash of the code that results depend on.
    pub version: String,
    /// The measured interval in seconds: start and end.
    pub measured_s: [f64; 2],
    /// The flows, in the order of the scenario.
    pub flows: Vec<FlowRecord>,
    /// The network and all flows together.
    pub system: SystemRecord,
    /// The links between routers, hop by hop, forward before reverse.
    #[serde(default)]
    pub links: Vec<LinkRecord>,
    /// What the run cost.
    pub cost: CostRecord,
    /// Hash over the log of all events, the same for identical runs.
    pub event_hash: String,
    /// How well a run in real time kept to its schedule; absent for virtual time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<TimingRecord>,
    /// The backend: `sim`, or the id of another.
    #[serde(default = "sim")]
    pub backend: String,
    /// The reason for each null value, by its path (`flows.first.jitter_ms`).
    #[serde(default)]
    pub undefined: BTreeMap<String, String>,
}

/// One flow.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its name.
    pub name: String,
    /// Its protocol.
    pub protocol: String,
    /// When it actually started, in seconds: `start` plus the random phase.
    pub start_s: f64,
    /// Size of its packets with the IP header.
    #[serde(default)]
    pub packet_bytes: u64,
    /// Wire rate (IP bytes) delivered to the receiver's access link.
    pub throughput_mbps: Option<f64>,
    /// Payload rate delivered to the receiving application.
    pub goodput_mbps: Option<f64>,
    /// Wire rate (IP bytes) of the flow's data direction over the first link between routers.
    #[serde(default)]
    pub router_throughput_mbps: Option<f64>,
    /// The same with the packets of the other direction (acknowledgements) added.
    #[serde(default)]
    pub router_both_ways_mbps: Option<f64>,
    /// Payload delivered to the receiving application, as a share of all bytes sent.
    #[serde(default)]
    pub goodput_ratio_percent: Option<f64>,
    /// Coefficient of variation of the throughput over the intervals.
    #[serde(default)]
    pub smoothness: Option<f64>,
    /// Packets dropped in the network, of those sent, in percent.
    pub loss_percent: Option<f64>,
    /// Packets dropped in the network, as a share of the data packets of all flows, each counted
    /// once per link that it enters, in percent.
    #[serde(default)]
    pub loss_on_all_links_percent: Option<f64>,
    /// Congestion events of the sender, of packets sent, in percent.
    #[serde(default)]
    pub loss_event_percent: Option<f64>,
    /// Packets sent, divided by those of the throughput equation at the packet loss rate.
    #[serde(default)]
    pub equation_ratio: Option<f64>,
    /// The same with the loss event rate.
    #[serde(default)]
    pub equation_ratio_of_events: Option<f64>,
    /// Mean one-way delay of data packets.
    pub delay_ms: Option<f64>,
    /// Mean one-way delay of all packets of the flow in both directions, including
    /// acknowledgements.
    #[serde(default)]
    pub delay_both_ways_ms: Option<f64>,
    /// Distribution of the one-way delay of data packets.
    #[serde(default)]
    pub delay_quantiles_ms: QuantileRecord,
    /// Jitter of RFC 3550 at the end of the measured interval.
    pub jitter_ms: Option<f64>,
    /// Mean change of the transit time from one data packet to the next.
    #[serde(default)]
    pub jitter_transit_ms: Option<f64>,
    /// Mean change of the gap between arrivals of data packets.
    #[serde(default)]
    pub jitter_arrival_gap_ms: Option<f64>,
    /// Mean change of the transit time from one data packet to the next, divided by the difference
    /// of their numbers. Only from ns-2, which numbers all packets of a run.
    #[serde(default)]
    pub jitter_per_number_ms: Option<f64>,
    /// Packets sent by the sending host in the whole run.
    pub packets_sent: u64,
    /// Of those, packets delivered to the receiving host.
    pub packets_delivered: u64,
    /// Payload bytes delivered to the receiving application in the whole run.
    pub goodput_bytes: u64,
    /// Congestion events of the sender in the whole run.
    pub congestion_events: u64,
    /// Timeouts of the sender in the whole run.
    pub timeouts: u64,
    /// Packets retransmitted in the whole run.
    pub retransmits: u64,
    /// Messages, if the traffic tracks them: from creation to complete arrival at the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<CompletionRecord>,
    /// Requests and responses: from creation of the request to complete arrival of the response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub responses: Option<CompletionRecord>,
    /// Transfers: from the start to the last byte.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transfers: Option<CompletionRecord>,
    /// The links between routers on the flow's path, in order of the path.
    #[serde(default)]
    pub crossings: Vec<CrossingRecord>,
    /// The flow over time.
    pub series: SeriesRecord,
}

/// A flow over time; all lists have the same length. The sender's estimates are those at the ends
/// of intervals, and null if unknown. A list that would have no value is absent, except for the
/// window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SeriesRecord {
    /// End of each interval in seconds.
    pub t_s: Vec<f64>,
    /// Wire rate in the interval.
    pub throughput_mbps: Vec<f64>,
    /// Payload rate in the interval.
    pub goodput_mbps: Vec<f64>,
    /// Congestion window in packets.
    pub cwnd_packets: Vec<Option<f64>>,
    /// Smoothed round-trip time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub srtt_ms: Vec<Option<f64>>,
    /// Allowed transmit rate, X of RFC 5348, in payload.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_rate_mbps: Vec<Option<f64>>,
    /// Loss event rate, p of RFC 5348.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss_event_percent: Vec<Option<f64>>,
}

/// The network and all flows together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SystemRecord {
    /// Mean over the intervals of Jain's index of the flows' throughputs.
    pub jain: Option<f64>,
    /// The same of the flows' goodputs.
    pub jain_goodput: Option<f64>,
    /// Jain's index of the flows' mean throughputs.
    pub jain_of_means: Option<f64>,
    /// The same of the flows' mean goodputs.
    #[serde(default)]
    pub jain_goodput_of_means: Option<f64>,
    /// The smallest mean goodput of a flow, divided by an equal share of the sum.
    #[serde(default)]
    pub max_min_ratio: Option<f64>,
    /// How far the smallest mean goodput is below the largest, as a share of the largest.
    #[serde(default)]
    pub epsilon: Option<f64>,
    /// Sum over flows of the natural logarithm of the mean goodput in Mbit/s.
    #[serde(default)]
    pub log_utility: Option<f64>,
    /// Share of the measured interval in which the bottleneck was transmitting.
    pub utilisation_percent: Option<f64>,
    /// Queueing delay at the bottleneck, of packets in the measured interval.
    pub queue_delay_ms: QuantileRecord,
    /// Packets dropped at the bottleneck in the whole run.
    pub packets_dropped: u64,
}

/// What a run cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CostRecord {
    /// Processor time in seconds.
    pub cpu_s: f64,
    /// Events handled by the simulator.
    pub events: u64,
    /// Packets that hosts sent.
    pub packets: u64,
}

/// How well a run in real time kept to its schedule. A run that did not is not a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimingRecord {
    /// Scheduling delay (from the time when a host should get a packet to the time when it got it):
    /// median, in milliseconds. Unknown if the path is the kernel's.
    pub delay_p50_ms: Option<f64>,
    /// The same, 99th percentile.
    pub delay_p99_ms: Option<f64>,
    /// The same, the longest.
    pub delay_max_ms: Option<f64>,
    /// Difference between the actual service and the configured one, over stretches of a second:
    /// 99th percentile, in percent.
    pub rate_error_percent: Option<f64>,
    /// Packets given to hosts; if the path is the kernel's, those that were recorded.
    pub packets: u64,
    /// Scheduling delay above which a packet is late, in milliseconds.
    pub deadline_ms: Option<f64>,
    /// Packets that were late.
    pub late: Option<u64>,
    /// Whether the run is a valid measurement.
    pub valid: bool,
    /// Why it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

fn sim() -> String {
    SIM.to_owned()
}

impl Record {
    /// Returns a value, or stores why there is none.
    pub(crate) fn keep(&mut self, path: String, value: Measured) -> Option<f64> {
        value.map_err(|why| self.undefined.insert(path, why.to_string())).ok()
    }

    /// Whether it is a valid measurement. A run in real time may not have kept to its schedule, and
    /// a kernel may have lacked memory or room.
    pub fn is_valid(&self) -> bool {
        self.timing.as_ref().is_none_or(|timing| timing.valid)
    }

    /// Why it is not a valid measurement; empty if it is.
    pub fn invalid_reason(&self) -> &str {
        let why = self.timing.as_ref().filter(|timing| !timing.valid).map(|t| t.why.as_deref());
        why.map_or("", |why| why.unwrap_or("it fell behind real time"))
    }

    /// The flow of this name; `None` if there is none.
    pub fn flow(&self, name: &str) -> Option<&FlowRecord> {
        self.flows.iter().find(|f| f.name == name)
    }
}
