//! The result of a run.

use udccp_base::{DataRate, Duration, Probe};
use udccp_link::{Backlog, DelayHistogram, DropReason, LinkStats, Tally};

use crate::source::SourceStats;

/// Everything that a run found out. Times are since the start of the run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunResult {
    /// One per pair, in the order in which they were added.
    pub flows: Vec<FlowResult>,
    /// The links between the routers, and the rest of the network.
    pub system: SystemResult,
    /// What the run cost.
    pub cost: Cost,
    /// Hash over the log of all events (time, component, kind, length). Two runs that differ in
    /// anything that happened differ here.
    pub hash: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowResult {
    /// Its name.
    pub name: String,
    /// When the sender was opened (the configured start and the drawn phase).
    pub start: Duration,
    /// When the sender was closed; `None` when it never was.
    pub stop: Option<Duration>,
    /// Packets from the sender to the receiver, whole run.
    pub forward: PathCounts,
    /// Packets from the receiver to the sender, whole run.
    pub reverse: PathCounts,
    /// The forward direction in the measured window.
    pub measured: PathWindow,
    /// The reverse direction in the measured window (no delays are kept).
    pub measured_reverse: PathWindow,
    /// Application bytes that the receiver's application got, whole run.
    pub goodput_bytes: u64,
    /// What the source offered.
    pub source: SourceStats,
    /// Messages of a source that follows each of its messages: from being made to being whole at
    /// the receiver.
    pub messages: Option<Completions>,
    /// Requests and responses: from the request being made to its response being whole.
    pub responses: Option<Completions>,
    /// Transfers that have an end: from the start to the last byte that arrived.
    pub transfers: Option<Completions>,
    /// What crossed each hop on the flow's way in the measured window, in the order of the way.
    pub crossings: Vec<Crossing>,
    /// One sample per interval, from the start of the run to its end.
    pub series: Vec<FlowSample>,
    /// Congestion events of the sender in the measured window; `None` where a backend sees them
    /// at the ends of intervals only.
    pub measured_events: Option<u64>,
    /// The sender's congestion state at the end.
    pub last_probe: Probe,
}

/// Things with a begin and an end: messages, requests, transfers. Counts are of the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Begun.
    pub begun: u64,
    /// Of these, those that came to their end.
    pub completed: u64,
    /// Messages and requests that the source gave up. Transfers that ended with data lost on the
    /// way, over a transport that does not repeat it (these are among the completed).
    pub given_up: u64,
    /// How long they took, shortest first: messages and responses that completed in the measured
    /// window, transfers of the whole run.
    pub times: Vec<Duration>,
}

impl Completions {
    /// The time within which a share `q` (0..=1) completed: that of rank `ceil(q n)`. `None` where
    /// nothing completed.
    pub fn quantile(&self, q: f64) -> Option<Duration> {
        let rank = (q.clamp(0.0, 1.0) * self.times.len() as f64).ceil() as usize;
        self.times.get(rank.max(1) - 1).copied()
    }

    /// The mean time; `None` where nothing completed.
    pub fn mean(&self) -> Option<Duration> {
        let sum: u128 = self.times.iter().map(|t| u128::from(t.as_nanos())).sum();
        let mean = sum.checked_div(self.times.len() as u128)?;
        Some(Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX)))
    }
}

/// One flow on one hop in the measured window: the packets that reached the far end of its link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Crossing {
    /// Number of the hop, counted from 0 at the left.
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

/// One direction of one flow in the measured window.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PathWindow {
    /// Length of the window.
    pub span: Duration,
    /// Packets that the host put on its access link.
    pub sent: Tally,
    /// Packets that reached the other end of the receiving host's access link.
    pub delivered: Tally,
    /// Packets that were dropped (whenever they were sent).
    pub dropped: u64,
    /// Application bytes that the receiving application got.
    pub goodput_bytes: u64,
    /// One-way delay of delivered packets that carry data: from leaving the transport to the end of
    /// the receiver's access link.
    pub delay: DelayHistogram,
    /// Sum of the one-way delays of all packets delivered, those without data too, in nanoseconds;
    /// zero where nobody knows.
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

    /// Mean one-way delay of all packets delivered in this direction and in another, with data or
    /// without; `None` where none was, or where nobody knows.
    pub fn mean_transit_with(&self, other: &Self) -> Option<Duration> {
        let known = |way: &Self| way.delivered.packets == 0 || way.transit_ns > 0;
        let packets = self.delivered.packets + other.delivered.packets;
        let mean = (self.transit_ns + other.transit_ns).checked_div(packets);
        mean.filter(|_| known(self) && known(other)).map(Duration::from_nanos)
    }

    /// Share of packets dropped, 0..=1; zero where nothing was sent.
    pub fn loss(&self) -> f64 {
        if self.sent.packets == 0 {
            return 0.0;
        }
        self.dropped as f64 / self.sent.packets as f64
    }
}

/// Jitter by four definitions; `None` where too few packets arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Jitter {
    /// The running estimate of RFC 3550 section 6.4.1 at the end of the window.
    pub rfc3550: Option<Duration>,
    /// Mean of the absolute difference in transit time of successive packets.
    pub transit: Option<Duration>,
    /// Mean of the absolute difference between successive gaps of arrival.
    pub arrival_gap: Option<Duration>,
    /// Mean of the absolute difference in transit time of successive packets, each over the
    /// difference of their numbers; `None` too where packets have no numbers, as in the simulator.
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

/// What of a sender's congestion state has a series.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderSample {
    /// Congestion window in packets.
    pub cwnd_packets: Option<f64>,
    /// Smoothed round-trip time.
    pub srtt: Option<Duration>,
    /// Allowed sending rate in bytes per second (rate-based protocols).
    pub x_bytes_per_sec: Option<f64>,
    /// Loss event rate, 0..=1 (rate-based protocols).
    pub loss_event_rate: Option<f64>,
    /// Congestion events that cut the window or rate so far.
    pub congestion_events: u64,
}

impl From<Probe> for SenderSample {
    fn from(probe: Probe) -> Self {
        let Probe { cwnd_packets, srtt, x_bytes_per_sec, loss_event_rate, .. } = probe;
        let congestion_events = probe.congestion_events;
        Self { cwnd_packets, srtt, x_bytes_per_sec, loss_event_rate, congestion_events }
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

/// The network.
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
    /// Share of the measured window, 0..=1, in which the transmitter was busy.
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
    /// What waited in the queue at the end of the interval.
    pub backlog: Backlog,
}

/// What a run cost, in events (its processor time is known to whoever owns a clock).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Events handled.
    pub events: u64,
    /// Packets that hosts put on the wire.
    pub packets: u64,
    /// Links crossed by packets.
    pub hops: u64,
}
