//! A flow: protocol, start, traffic, and the options of its protocol family.

use serde::{Deserialize, Serialize};
use udccp_base::{DataRate, DataSize, Duration};

use super::choice::words;
use super::link::Link;
use super::quantity::{Packets, Percent, Service, StartWindow};
use super::scenario::DEFAULT_PACKET;
use super::topology::changed;
use super::traffic::{Traffic, check};
use crate::diagnostic::Diagnostic;
use crate::document::{DiagnosticSink, FromNode, Node, Reader, Value};
use crate::protocol::Protocol;

/// One flow from its sender to its receiver.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flow {
    /// Its name in results.
    pub name: String,
    /// Its protocol.
    pub protocol: &'static Protocol,
    /// From left to right, or from right to left.
    #[serde(skip_serializing_if = "Direction::is_forward")]
    pub direction: Direction,
    /// Number of the leftmost router that it uses, from 1; the first where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enters: Option<u64>,
    /// Number of the rightmost router that it uses; the last where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves: Option<u64>,
    /// The sender's access link, where it is not that of the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Box<Link>>,
    /// The receiver's access link, where it is not that of the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_access: Option<Box<Link>>,
    /// When it starts.
    pub start: Duration,
    /// When its application stops; at the end of the run otherwise.
    pub stop: Option<Duration>,
    /// Largest IP packet (the path MTU).
    pub packet: DataSize,
    /// What its application sends.
    pub traffic: Traffic,
    /// Options used where the protocol is a DCCP.
    pub dccp: DccpOptions,
    /// Options used where the protocol is a TCP.
    pub tcp: TcpOptions,
}

words! {
    /// Which way a flow's data goes.
    Direction, "direction":
    /// From left to right.
    Forward = "forward",
    /// From right to left.
    Reverse = "reverse",
}

impl Direction {
    fn is_forward(&self) -> bool {
        *self == Self::Forward
    }
}

/// Most flows that one [[flow]] can stand for.
const MAX_COUNT: u64 = 10_000;

/// Options of a DCCP flow. What is absent keeps the protocol's default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DccpOptions {
    /// Acknowledge every this many packets; adapted by RFC 4341 section 6.1 where absent.
    pub ack_ratio: Option<u64>,
    /// First congestion window.
    pub initial_window: Option<StartWindow>,
    /// Part of the window that a congestion event cuts away (50 % in RFC 4341).
    pub window_cut: Option<Percent>,
    /// Whether packets sent before a cut let the window grow when they are acknowledged after it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub growth_after_cut: Option<GrowthAfterCut>,
    /// First Sequence Window in packets.
    pub sequence_window: Option<u64>,
    /// Upper bound of the congestion window.
    pub max_window: Option<Packets>,
    /// Lower bound of the retransmission timeout.
    pub min_rto: Option<Duration>,
    /// Explicit congestion notification.
    pub ecn: Option<bool>,
    /// CCIDs 3 and 4: lowers the rate while the round-trip time is above its mean.
    pub oscillation_reduction: Option<bool>,
    /// CCIDs 3 and 4: lets old loss intervals count less during a long one.
    pub history_discounting: Option<bool>,
    /// The host's timers fire only at multiples of this, as in a kernel with a coarse clock.
    pub timer_tick: Option<Duration>,
    /// How the host waits for its timers; for as long as they say where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timers: Option<HostTimers>,
    /// The host also wakes at multiples of this, as one whose application looks so often; what is
    /// due then leaves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wakes_every: Option<Duration>,
    /// Send buffer of the host's socket, as a kernel counts it: what may wait in the host's own
    /// queue. No limit where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub send_buffer: Option<DataSize>,
    /// Share of the packets on the sender's access link that are lost at random, which hits DCCP
    /// alone where flows of several protocols share a scenario.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_loss: Option<Percent>,
    /// Messages that may wait to be sent.
    pub send_queue: Option<Packets>,
    /// The service code that is served and asked for; `SC:PERF` where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// Which hosts are behind a NAT (RFC 5597) that filters by address and port; none where absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nat: Option<NatPlace>,
    /// Rate asked for by Quick-Start (RFC 5634); then all routers take part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quick_start: Option<DataRate>,
    /// The receiver invites the sender (RFC 5596) instead of waiting for anybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub invite: Option<bool>,
}

words! {
    /// What lets the window of CCID 2 grow after a cut.
    GrowthAfterCut, "growth after a cut":
    /// Only packets sent after the cut, as in TCP.
    Pauses = "pauses",
    /// Every packet acknowledged, as in Linux's CCID 2.
    Continues = "continues",
}

impl From<GrowthAfterCut> for udccp_cc::GrowthAfterCut {
    fn from(word: GrowthAfterCut) -> Self {
        match word {
            GrowthAfterCut::Pauses => Self::Pauses,
            GrowthAfterCut::Continues => Self::Continues,
        }
    }
}

words! {
    /// How a host waits for its timers.
    HostTimers, "wait for timers":
    /// As a program on Linux with `epoll_wait`: in whole milliseconds, and 50 us longer.
    Epoll = "epoll",
}

words! {
    /// Which hosts of a flow are behind a NAT of their own.
    NatPlace, "place of NATs":
    /// The sender.
    Sender = "sender",
    /// The receiver.
    Receiver = "receiver",
    /// Both.
    Both = "both",
}

words! {
    /// What the settings of a TCP host start from.
    TcpProfile, "TCP profile":
    /// A current host.
    Modern = "modern",
    /// Linux 2.6.22 of 2007 as it was installed.
    Linux2622 = "linux-2.6.22",
    /// The RFCs word for word.
    Rfc = "rfc",
}

words! {
    /// What one acknowledgement adds to a window that grows by acknowledgements.
    AckCounting, "way of counting acknowledgements":
    /// As many segments as it acknowledges.
    Segments = "segments",
    /// As many, at most two (RFC 3465).
    AtMostTwo = "at-most-two",
    /// One.
    OnePerAck = "one-per-ack",
    /// One in slow start, as many as it acknowledges in congestion avoidance.
    OneInSlowStart = "one-in-slow-start",
    /// One an acknowledgement in congestion avoidance, the segments it acknowledges in slow start.
    OneInAvoidance = "one-in-avoidance",
}

words! {
    /// How a window falls when recovery begins.
    Reduction, "window reduction":
    /// At once (RFC 6675).
    AtOnce = "at-once",
    /// In proportion to deliveries (RFC 6937).
    Proportional = "proportional",
    /// One segment every two acknowledgements.
    RateHalving = "rate-halving",
}

words! {
    /// How losses are found before the retransmission timer expires.
    LossDetection, "loss detection":
    /// By three segments that were SACKed above (RFC 6675).
    Sack = "sack",
    /// By time, with probes of a silent tail (RFC 8985).
    RackTlp = "rack-tlp",
}

/// Options of a TCP flow. What is absent is as the profile has it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TcpOptions {
    /// The profile.
    pub profile: TcpProfile,
    /// Acknowledge every second segment instead of each.
    pub delayed_ack: Option<bool>,
    /// How acknowledgements are counted.
    pub ack_counting: Option<AckCounting>,
    /// How the window falls.
    pub window_reduction: Option<Reduction>,
    /// How losses are found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_detection: Option<LossDetection>,
    /// First congestion window.
    pub initial_window: Option<StartWindow>,
    /// Part of the window that a congestion event cuts away (NewReno only; 50 %).
    pub window_cut: Option<Percent>,
    /// Upper bound of the congestion window.
    pub max_window: Option<Packets>,
    /// Slow start threshold that the host remembers from an earlier connection.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_ssthresh: Option<Packets>,
    /// Receive buffer: the largest window advertised.
    pub receive_buffer: Option<DataSize>,
    /// Send buffer.
    pub send_buffer: Option<DataSize>,
    /// Lower bound of the retransmission timeout.
    pub min_rto: Option<Duration>,
    /// Timestamps (RFC 7323): 12 bytes of every packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamps: Option<bool>,
    /// Whether paced segments leave in trains, as with segmentation offload, or one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offload: Option<bool>,
    /// Whether segments wait in the socket instead of the host's own queue (TCP Small Queues).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub small_queues: Option<bool>,
    /// Explicit congestion notification.
    pub ecn: Option<bool>,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            profile: TcpProfile::Modern,
            delayed_ack: None,
            ack_counting: None,
            window_reduction: None,
            loss_detection: None,
            initial_window: None,
            window_cut: None,
            max_window: None,
            initial_ssthresh: None,
            receive_buffer: None,
            send_buffer: None,
            min_rto: None,
            timestamps: None,
            offload: None,
            small_queues: None,
            ecn: None,
        }
    }
}

impl Flow {
    /// Reads a [[flow]], which may stand for `count` flows, each `every` later than the one before.
    /// `access` is what the topology says of access links.
    pub(super) fn group(
        node: &Node,
        access: Option<&Node>,
        errors: &DiagnosticSink,
    ) -> Option<Vec<Self>> {
        let flow = Self::read(node, access, errors);
        let count = node.get("count");
        let every = node.get("every").map(|n| Duration::from_node(n, errors));
        let Some(count) = count else {
            if let Some(every) = node.get("every") {
                let error = "`every` stands between the flows of a group";
                errors.push(Diagnostic::at(&every.span, error).hint("say how many: count = 14"));
            }
            return flow.map(|flow| vec![flow]);
        };
        let number = u64::from_node(count, errors)?;
        if !(1..=MAX_COUNT).contains(&number) {
            let error = format!("a group has 1 to {MAX_COUNT} flows, not {number}");
            errors.push(Diagnostic::at(&count.span, error));
            return None;
        }
        let (flow, every) = (flow?, every.unwrap_or(Some(Duration::ZERO))?);
        let member = |k: u64| Self {
            name: format!("{}-{}", flow.name, k + 1),
            start: flow.start + every * k,
            ..flow.clone()
        };
        let members: Vec<Self> = (0..number).map(member).collect();
        let last = members.last().map_or(Duration::ZERO, |f| f.start);
        if let Some(stop) = flow.stop.filter(|stop| *stop <= last) {
            let span = node.get("stop").map_or(&node.span, |n| &n.span);
            let error = format!("the last flow of the group starts at {last}, after {stop}");
            errors.push(Diagnostic::at(span, error));
        }
        Some(members)
    }

    fn read(node: &Node, access: Option<&Node>, errors: &DiagnosticSink) -> Option<Self> {
        let label = node.get("name").map(Node::label).unwrap_or_default();
        let mut reader = Reader::new(node, format!("[[flow]] \"{label}\""), errors)?;
        let name: Option<String> = reader.need("name");
        let protocol = reader.need("protocol");
        for key in ["count", "every"] {
            reader.raw(key);
        }
        let direction = reader.or("direction", Direction::Forward);
        let (enters, leaves) = (reader.want("enters"), reader.want("leaves"));
        let own = own_access(reader.raw("access"), access, "flow.access", errors);
        let receiver = reader.raw("receiver_access");
        let receiver = own_access(receiver, access, "flow.receiver_access", errors);
        let start = reader.or("start", Duration::ZERO);
        let stop: Option<Duration> = reader.want("stop");
        let packet = reader.or("packet", DEFAULT_PACKET);
        let traffic = reader.need("traffic");
        let dccp = reader.or("dccp", DccpOptions::default());
        let tcp = reader.or("tcp", TcpOptions::default());
        check_name(name.as_deref(), node, errors);
        check_host_loss(&dccp, node, access, errors);
        if let (Some(traffic), Some(protocol)) = (&traffic, protocol) {
            check(traffic, protocol, node, errors);
        }
        if !(200..=65_535).contains(&packet.bytes()) {
            let span = node.get("packet").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(span, format!("an IP packet cannot have {packet}")));
        }
        if stop.is_some_and(|stop| stop <= start) {
            let span = node.get("stop").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(span, format!("the flow starts at {start}")));
        }
        reader.finish();
        let (name, protocol, traffic) = (name?, protocol?, traffic?);
        Some(Self {
            name,
            protocol,
            direction,
            enters,
            leaves,
            access: own?,
            receiver_access: receiver?,
            start,
            stop,
            packet,
            traffic,
            dccp,
            tcp,
        })
    }
}

/// The access link of one host: as the topology has it, but for what is said here. The outer
/// `None` is an error.
#[expect(clippy::option_option, reason = "absent is not wrong")]
fn own_access(
    own: Option<&Node>,
    common: Option<&Node>,
    what: &str,
    errors: &DiagnosticSink,
) -> Option<Option<Box<Link>>> {
    let Some(own) = own else { return Some(None) };
    let is_table = matches!(own.value, Value::Table(_));
    let merged = match common.filter(|_| is_table) {
        Some(common) => changed(common, Some(own), &[]),
        None => own.clone(),
    };
    Link::access(&merged, what, errors).map(|link| Some(link.into()))
}

/// One link loses packets for one reason.
fn check_host_loss(
    dccp: &DccpOptions,
    node: &Node,
    access: Option<&Node>,
    errors: &DiagnosticSink,
) {
    let mut links = node.get("access").into_iter().chain(access);
    if dccp.host_loss.is_some() && links.any(|link| link.get("loss").is_some()) {
        let span =
            node.get("dccp").and_then(|n| n.get("host_loss")).map_or(&node.span, |n| &n.span);
        let why = "`host_loss` and `loss` of the access link exclude each other: leave one out";
        errors.push(Diagnostic::at(span, why));
    }
}

/// A flow's name is a path in `--set` and a file name of captures.
fn check_name(name: Option<&str>, node: &Node, errors: &DiagnosticSink) {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_some_and(|n| n.is_empty() || !n.chars().all(fine)) {
        let span = node.get("name").map_or(&node.span, |n| &n.span);
        let error = "a flow's name is made of letters, digits, '-' and '_'";
        errors.push(Diagnostic::at(span, error));
    }
}

impl FromNode for DccpOptions {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "flow.dccp", errors)?;
        let options = Self {
            ack_ratio: reader.want("ack_ratio"),
            initial_window: reader.want("initial_window"),
            window_cut: reader.want("window_cut"),
            growth_after_cut: reader.want("growth_after_cut"),
            sequence_window: reader.want("sequence_window"),
            max_window: reader.want("max_window"),
            min_rto: reader.want("min_rto"),
            ecn: reader.want("ecn"),
            oscillation_reduction: reader.want("oscillation_reduction"),
            history_discounting: reader.want("history_discounting"),
            timer_tick: reader.want("timer_tick"),
            timers: reader.want("timers"),
            wakes_every: reader.want("wakes_every"),
            send_buffer: reader.want("send_buffer"),
            host_loss: reader.want("host_loss"),
            send_queue: reader.want("send_queue"),
            service: reader.want("service"),
            nat: reader.want("nat"),
            quick_start: reader.want("quick_start"),
            invite: reader.want("invite"),
        };
        let never_zero = [
            ("timer_tick", options.timer_tick, "timers that fire always have no tick"),
            (
                "wakes_every",
                options.wakes_every,
                "a host does not wake all the time: name a longer time, or none",
            ),
        ];
        for (key, time, why) in never_zero {
            if time.is_some_and(Duration::is_zero) {
                let span = node.get(key).map_or(&node.span, |n| &n.span);
                errors.push(Diagnostic::at(span, why));
            }
        }
        if options.send_buffer.is_some_and(|size| size.bytes() == 0) {
            let span = node.get("send_buffer").map_or(&node.span, |n| &n.span);
            let why = "a socket without a buffer sends nothing: name a size, or leave it out";
            errors.push(Diagnostic::at(span, why));
        }
        if options.timer_tick.is_some() && options.timers.is_some() {
            let span = node.get("timers").map_or(&node.span, |n| &n.span);
            let why = "`timers` and `timer_tick` exclude each other: leave one out";
            errors.push(Diagnostic::at(span, why));
        }
        if options.ack_ratio.is_some_and(|r| !(1..=0xffff).contains(&r)) {
            let span = node.get("ack_ratio").map_or(&node.span, |n| &n.span);
            errors.push(Diagnostic::at(span, "an Ack Ratio is in 1..=65535"));
        }
        reader.finish();
        Some(options)
    }
}

impl FromNode for TcpOptions {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "flow.tcp", errors)?;
        let options = Self {
            profile: reader.or("profile", TcpProfile::Modern),
            delayed_ack: reader.want("delayed_ack"),
            ack_counting: reader.want("ack_counting"),
            window_reduction: reader.want("window_reduction"),
            loss_detection: reader.want("loss_detection"),
            initial_window: reader.want("initial_window"),
            window_cut: reader.want("window_cut"),
            max_window: reader.want("max_window"),
            initial_ssthresh: reader.want("initial_ssthresh"),
            receive_buffer: reader.want("receive_buffer"),
            send_buffer: reader.want("send_buffer"),
            min_rto: reader.want("min_rto"),
            timestamps: reader.want("timestamps"),
            offload: reader.want("offload"),
            small_queues: reader.want("small_queues"),
            ecn: reader.want("ecn"),
        };
        reader.finish();
        Some(options)
    }
}
