//! Records of messages, requests and transfers, and of each link between routers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use udccp_base::{DataRate, Duration};
use udccp_link::Tally;
use udccp_sim::{Completions, DropReason, FlowResult, LinkResult, RunResult};

/// Quantiles of a delay, in milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuantileRecord {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
}

/// Things with a start and an end. Counts are of the whole run; times are those of messages and
/// responses that completed in the measured interval, and of all transfers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CompletionRecord {
    /// Started: messages created, requests created, transfers started.
    pub begun: u64,
    /// Those among them that completed.
    pub completed: u64,
    /// Messages that the source dropped because they were too old, requests without a response in
    /// time, transfers that ended with data lost on the way.
    pub given_up: u64,
    /// Mean time from start to end; null if nothing completed.
    pub mean_ms: Option<f64>,
    /// Quantiles of that time.
    pub time_ms: QuantileRecord,
}

/// One direction of a link between routers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// `bottleneck forward`, or `hop 1 forward`, `hop 1 reverse`, `hop 2 forward`...
    pub name: String,
    /// Share of the measured interval in which it was transmitting.
    pub utilisation_percent: f64,
    /// IP bytes that left it in the measured interval, as a rate.
    pub throughput_mbps: f64,
    /// Packets dropped in the measured interval, of those that arrived. At most 100, although more
    /// may be dropped than arrive, for example if a link with a full queue goes down.
    pub loss_percent: f64,
    /// Queueing delay of packets in the measured interval; null if there were none.
    pub queue_delay_ms: QuantileRecord,
    /// Packets that arrived at its near end in the whole run. Together with the copies, these have
    /// departed, were dropped, or are inside at the end.
    #[serde(default)]
    pub packets_arrived: u64,
    /// Packets that reached its far end in the whole run.
    #[serde(default)]
    pub packets_departed: u64,
    /// Packets duplicated in the whole run.
    #[serde(default)]
    pub packets_duplicated: u64,
    /// Packets dropped in the whole run.
    pub packets_dropped: u64,
    /// Packets dropped by reason; reasons that did not occur are left out.
    #[serde(default)]
    pub dropped_by: BTreeMap<String, u64>,
    /// Packets marked "congestion experienced" in the whole run.
    pub packets_marked: u64,
    /// The link over time.
    pub series: LinkSeriesRecord,
}

/// A link over time; all lists have the same length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSeriesRecord {
    /// End of each interval in seconds.
    pub t_s: Vec<f64>,
    /// IP bytes that left it in the interval, as a rate.
    pub throughput_mbps: Vec<f64>,
    /// Packets in the queue at the end of the interval.
    pub queue_packets: Vec<u64>,
    /// Packets dropped in the interval.
    pub dropped: Vec<u64>,
}

/// One flow on one link between routers in the measured interval, where packets leave the link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CrossingRecord {
    /// Number of the hop, from 1 at the left.
    pub hop: u64,
    /// IP bytes from the sender to the receiver.
    pub data_mbps: f64,
    /// IP bytes from the receiver to the sender.
    pub acks_mbps: f64,
}

pub(crate) fn completions(found: &Completions) -> CompletionRecord {
    let at = |q| found.quantile(q).map(Duration::as_millis_f64);
    CompletionRecord {
        begun: found.begun,
        completed: found.completed,
        given_up: found.given_up,
        mean_ms: found.mean().map(Duration::as_millis_f64),
        time_ms: QuantileRecord { p50: at(0.50), p95: at(0.95), p99: at(0.99) },
    }
}

pub(crate) fn crossings(found: &FlowResult) -> Vec<CrossingRecord> {
    let rate = |tally: Tally| DataRate::of(tally.bytes, found.measured.span).as_mbps();
    let one = |c: &udccp_sim::Crossing| CrossingRecord {
        hop: c.hop as u64 + 1,
        data_mbps: rate(c.data),
        acks_mbps: rate(c.acks),
    };
    found.crossings.iter().map(one).collect()
}

/// All links between routers, hop by hop, forward before reverse.
pub(crate) fn links(result: &RunResult, span: Duration) -> Vec<LinkRecord> {
    result.system.hops().flatten().map(|link| link_record(link, span)).collect()
}

fn link_record(link: &LinkResult, span: Duration) -> LinkRecord {
    let measured = &link.measured;
    let at = |q| measured.queue_delay.quantile(q).map(Duration::as_millis_f64);
    let arrived = measured.arrived.packets.max(1);
    let dropped = measured.dropped_total().packets.min(arrived);
    let count =
        |reason: DropReason| (reason.name().to_owned(), link.whole.dropped_by(reason).packets);
    let mut series = LinkSeriesRecord::default();
    let mut begin = Duration::ZERO;
    for sample in &link.series {
        series.t_s.push(sample.end.as_secs_f64());
        let rate = DataRate::of(sample.departed.bytes, sample.end - begin);
        series.throughput_mbps.push(rate.as_mbps());
        series.queue_packets.push(sample.backlog.packets);
        series.dropped.push(sample.dropped);
        begin = sample.end;
    }
    LinkRecord {
        name: link.name.clone(),
        utilisation_percent: 100.0 * link.utilisation,
        throughput_mbps: measured.departure_rate(span).as_mbps(),
        loss_percent: 100.0 * dropped as f64 / arrived as f64,
        queue_delay_ms: QuantileRecord { p50: at(0.50), p95: at(0.95), p99: at(0.99) },
        packets_arrived: link.whole.arrived.packets,
        packets_departed: link.whole.departed.packets,
        packets_duplicated: link.whole.duplicated.packets,
        packets_dropped: link.whole.dropped_total().packets,
        dropped_by: DropReason::ALL.map(count).into_iter().filter(|(_, n)| *n > 0).collect(),
        packets_marked: link.whole.marked,
        series,
    }
}
