//! The result of a run.

use udccp_base::{DataRate, Duration, MaybeDuration, MaybeNumber, Probe};
use udccp_link::{Backlog, DelayHistogram, DropReason, LinkStats, Tally};

use crate::source::SourceStats;

/// The result of a run. Times are since the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// One per flow, in the order in which flows were added. Each is allocated by itself, so it can
    /// use memory that the hosts of earlier flows have freed.
    pub flows: Vec<Box<FlowResult>>,
    /// The links between the routers, and the rest of the network.
    pub system: SystemResult,
    /// What the run cost.
    pub cost: Cost,
    /// Hash over the log of all events (time, component, kind, length). Two runs with any
    /// difference have different hashes.
    pub hash: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// When the sender was opened (the configured start plus the random phase).
    pub start: Duration,
    /// When the sender was closed; `None` if it never was.
    pub stop: Option<Duration>,
    /// Packets from the sender to the receiver, whole run.
    pub forward: PathCounts,
    /// Packets from the receiver to the sender, whole run.
    pub reverse: PathCounts,
    /// The forward direction in the measured window.
    pub measured: PathWindow,
    /// The reverse direction in the measured window (no delays are kept).
    pub measured_reverse: PathWindow,
    /// Bytes delivered to the receiver's application in the whole run.
    pub goodput_bytes: u64,
    /// Counts of what the source offered.
    pub source: SourceStats,
    /// Messages, if the source tracks them: from creation to complete arrival at the receiver.
    pub messages: Option<Completions>,
    /// Requests and responses: from creation of the request to complete arrival of its response.
    pub responses: Option<Completions>,
    /// Transfers with an end: from the start to the last byte that arrived.
    pub transfers: Option<Completions>,
    /// The flow's traffic on each hop of its path in the measured window, in order of the path.
    pub crossings: Vec<Crossing>,
    /// One sample per interval, from the start of the run to its end.
    pub series: Vec<FlowSample>,
    /// Congestion events of the sender in the measured window; `None` if a backend sees them only
    /// at the ends of intervals.
    pub measured_events: Option<u64>,
    /// The sender's congestion state at the end.
    pub last_probe: Probe,
}

/// Things with a start and an end: messages, requests, transfers. Counts are of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// How many started.
    pub begun: u64,
    /// How many of these were completed.
    pub completed: u64,
    /// Messages and requests that the source gave up. For transfers: those that ended with data
    /// lost, over a transport without retransmission (they also count as completed).
    pub given_up: u64,
    /// Durations, shortest first: of messages and responses completed in the measured window, and
    /// of transfers of the whole run.
    pub times: Vec<Duration>,
}

impl Completions {
    /// The duration within which a share `q` (0 to 1) completed: that of rank `ceil(q n)`; `None`
    /// if nothing completed.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = (q.clamp(0.0, 1.0) * self.times.len() as f64).ceil() as usize;
        self.times.get(rank.max(1) - 1).copied()
    }

    /// The mean duration; `None` if nothing completed.
    pub fn mean(&self) -> Option<Duration> {
        let sum: u128 = self.times.iter().map(|t| u128::from(t.as_nanos())).sum();
        let mean = sum.checked_div(self.times.len() as u128)?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

/// One flow on one hop in the measured window: packets that reached the far end of its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    /// Number of the hop, from 0 at the left.
    pub hop: usize,
    /// From the sender to the receiver.
    pub data: Tally,
    /// From the receiver to the sender.
    pub acks: Tally,
}

/// Packets in one direction of one flow. `sent + duplicated = delivered + dropped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathCounts {
    /// Packets that the host put on its access link, in IP bytes.
    pub sent: Tally,
    /// Of these, packets that carry data.
    pub sent_data: u64,
    /// Copies that links made of them.
    pub duplicated: u64,
    /// Packets that reached the other host.
    pub delivered: Tally,
    /// Of these, packets that carry data.
    pub delivered_data: u64,
    /// Packets that were dropped, by [`DropReason`] (as an index).
    pub dropped: [u64; DropReason::COUNT],
    /// Packets in the network at the end.
    pub in_flight: u64,
}

impl PathCounts {
    /// All packets dropped.
    pub fn dropped_total(&self) -> u64 {
        self.dropped.iter().sum()
    }
}

/// One direction of a flow in the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathWindow {
    /// Length of the window.
    pub span: Duration,
    /// Packets that the host put on its access link.
    pub sent: Tally,
    /// Packets that reached the receiving host over its access link.
    pub delivered: Tally,
    /// Packets that were dropped in the window, whenever they were sent.
    pub dropped: u64,
    /// Bytes delivered to the receiving application.
    pub goodput_bytes: u64,
    /// One-way delay of delivered packets that carry data: from leaving the transport to the end of
    /// the receiver's access link.
    pub delay: DelayHistogram,
    /// Sum of the one-way delays of all packets delivered, including those without data, in
    /// nanoseconds; zero if unknown.
    pub transit_ns: u64,
    /// Jitter of the packets that carry data.
    pub jitter: Jitter,
}

impl PathWindow {
    /// Wire rate (IP bytes) delivered over the receiver's access link.
    pub fn throughput(&self) -> DataRate {
        DataRate::of(self.delivered.bytes, self.span)
    }

    /// Rate of application data delivered.
    pub fn goodput(&self) -> DataRate {
        DataRate::of(self.goodput_bytes, self.span)
    }

    /// Mean one-way delay of all packets delivered in this direction and in `other`, with or
    /// without data; `None` if there were none, or if unknown.
    pub fn mean_transit_with(&self, other: &Self) -> Option<Duration> {
        let known = |way: &Self| way.delivered.packets == 0 || way.transit_ns > 0;
        let packets = self.delivered.packets + other.delivered.packets;
        let mean = (self.transit_ns + other.transit_ns).checked_div(packets);
        mean.filter(|_| known(self) && known(other)).map(Duration::from_nanos)
    }

    /// Share of packets dropped, 0 to 1; zero if nothing was sent.
    pub fn loss(&self) -> f64 {
        if self.sent.packets == 0 {
            return 0.0;
        }
        self.dropped as f64 / self.sent.packets as f64
    }
}

/// Jitter by four definitions; `None` if too few packets arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// The running estimate of RFC 3550 section 6.4.1 at the end of the window.
    pub rfc3550: Option<Duration>,
    /// Mean of the absolute difference in transit time of successive packets.
    pub transit: Option<Duration>,
    /// Mean of the absolute difference between successive gaps between arrivals.
    pub arrival_gap: Option<Duration>,
    /// Mean of the absolute difference in transit time of successive packets, divided by the
    /// difference of their numbers; also `None` if packets have no numbers, as in the simulator.
    pub per_number: Option<Duration>,
}

/// One flow in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FlowSample {
    /// End of the interval.
    pub end: Duration,
    /// Length of the interval (the last of a run may be short).
    pub span: Duration,
    /// IP bytes delivered over the receiver's access link, forward direction.
    pub wire_bytes: u64,
    /// Application bytes delivered to the receiver.
    pub goodput_bytes: u64,
    /// The sender's congestion state at the end of the interval.
    pub sender: SenderSample,
}

/// The values of a sender's congestion state that have a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderSample {
    /// Congestion window in packets.
    pub cwnd_packets: MaybeNumber,
    /// Smoothed round-trip time.
    pub srtt: MaybeDuration,
    /// Allowed sending rate in bytes per second (rate-based protocols).
    pub x_bytes_per_sec: MaybeNumber,
    /// Loss event rate, 0 to 1 (rate-based protocols).
    pub loss_event_rate: MaybeNumber,
    /// Congestion events so far that reduced the window or rate.
    pub congestion_events: u64,
}

impl From<Probe> for SenderSample {
    fn from(probe: Probe) -> Self {
        let Probe { cwnd_packets, srtt, x_bytes_per_sec, loss_event_rate, .. } = probe;
        Self {
            cwnd_packets: cwnd_packets.into(),
            srtt: srtt.into(),
            x_bytes_per_sec: x_bytes_per_sec.into(),
            loss_event_rate: loss_event_rate.into(),
            congestion_events: probe.congestion_events,
        }
    }
}

impl FlowSample {
    /// Wire rate delivered in the interval.
    pub fn throughput(&self) -> DataRate {
        DataRate::of(self.wire_bytes, self.span)
    }

    /// Rate of application data delivered in the interval.
    pub fn goodput(&self) -> DataRate {
        DataRate::of(self.goodput_bytes, self.span)
    }
}

/// The links between the routers.
#[derive(Clone, Debug, PartialEq)]
pub struct SystemResult {
    /// The bottleneck, or first hop, from left to right.
    pub forward: LinkResult,
    /// The same from right to left.
    pub reverse: LinkResult,
    /// The hops after the first.
    pub further: Vec<HopResult>,
}

/// A link between two routers.
#[derive(Clone, Debug, PartialEq)]
pub struct HopResult {
    /// From left to right.
    pub forward: LinkResult,
    /// From right to left.
    pub reverse: LinkResult,
}

impl SystemResult {
    /// Both directions of every hop, the first one first.
    pub fn hops(&self) -> impl Iterator<Item = [&LinkResult; 2]> {
        let further = self.further.iter().map(|hop| [&hop.forward, &hop.reverse]);
        core::iter::once([&self.forward, &self.reverse]).chain(further)
    }
}

/// One direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkResult {
    /// Its name.
    pub name: String,
    /// Counters of the whole run.
    pub whole: LinkStats,
    /// Counters of the measured window.
    pub measured: LinkStats,
    /// Share of the measured window in which the transmitter was busy, 0 to 1.
    pub utilisation: f64,
    /// One sample per interval.
    pub series: Vec<LinkSample>,
}

/// One link in one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkSample {
    /// End of the interval.
    pub end: Duration,
    /// Packets that reached the far end in the interval.
    pub departed: Tally,
    /// Packets dropped in the interval.
    pub dropped: u64,
    /// The backlog of the queue at the end of the interval.
    pub backlog: Backlog,
}

/// The cost of a run in events. (Processor time is known only to the owner of a clock.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Events handled.
    pub events: u64,
    /// Packets that hosts sent.
    pub packets: u64,
    /// Crossings of links by packets.
    pub hops: u64,
}
