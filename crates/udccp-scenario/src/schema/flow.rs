//! A flow: protocol, start and traffic.

use std::sync::Arc;

use serde::{Serialize, Serializer};
use udccp_base::{DataSize, Duration};

use super::choice::words;
use super::dccp_options::DccpOptions;
use super::link::Link;
use super::tcp_options::TcpOptions;
use super::topology::changed;
use super::traffic::{Traffic, check};
use crate::diagnostic::Diagnostic;
use crate::document::{DiagnosticSink, FromNode, Node, Reader};
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
    /// Number of the leftmost router that it uses, from 1; by default the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enters: Option<u64>,
    /// Number of the rightmost router that it uses; by default the last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leaves: Option<u64>,
    /// The sender's access link, if it differs from that of the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub access: Option<Box<Link>>,
    /// The receiver's access link, if it differs from that of the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub receiver_access: Option<Box<Link>>,
    /// When it starts.
    pub start: Duration,
    /// When its application stops; by default at the end of the run.
    pub stop: Option<Duration>,
    /// Largest IP packet (the path MTU).
    pub packet: DataSize,
    /// What its application sends, shared with flows that have the same.
    #[serde(serialize_with = "contents")]
    pub traffic: Arc<Traffic>,
    /// Options for a DCCP protocol, shared likewise.
    #[serde(serialize_with = "contents")]
    pub dccp: Arc<DccpOptions>,
    /// Options for a TCP protocol, shared likewise.
    #[serde(serialize_with = "contents")]
    pub tcp: Arc<TcpOptions>,
}

fn contents<T: Serialize, S: Serializer>(shared: &Arc<T>, to: S) -> Result<S::Ok, S::Error> {
    shared.serialize(to)
}

words! {
    /// The direction of a flow's data.
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

/// Most flows in one `[[flow]]`.
const MAX_COUNT: u64 = 10_000;
/// Smallest size of a flow's largest IP packets: room for headers, options and some data.
pub(super) const SMALLEST_PACKET_BYTES: u64 = 200;
/// Size of an IP packet by default.
const DEFAULT_PACKET: DataSize = DataSize::from_bytes(1500);

impl Flow {
    /// Reads a `[[flow]]`, which may stand for `count` flows that start `every` apart. `access`
    /// describes the access links of the topology.
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
                let error = "`every` is the time between the flows of a group";
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
        if !(SMALLEST_PACKET_BYTES..=65_535).contains(&packet.bytes()) {
            let span = node.get("packet").map_or(&node.span, |n| &n.span);
            let error = format!("a flow cannot have packets of {packet}");
            errors.push(Diagnostic::at(span, error).hint("the size must be 200 B to 65535 B"));
        }
        if let Some(stop) = stop.filter(|stop| *stop <= start) {
            let span = node.get("stop").map_or(&node.span, |n| &n.span);
            let error = format!("the flow stops at {stop}, but starts at {start}");
            errors.push(Diagnostic::at(span, error));
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
            traffic: traffic.into(),
            dccp: dccp.into(),
            tcp: tcp.into(),
        })
    }

    /// Shares what `other` has and is the same here: traffic and options.
    pub(super) fn share_with(&mut self, other: &Self) {
        if self.traffic == other.traffic {
            self.traffic = Arc::clone(&other.traffic);
        }
        if self.dccp == other.dccp {
            self.dccp = Arc::clone(&other.dccp);
        }
        if self.tcp == other.tcp {
            self.tcp = Arc::clone(&other.tcp);
        }
    }
}

/// The access link of one host: that of the topology with the changes given here. The outer `None`
/// is an error.
#[expect(clippy::option_option, reason = "absent is not wrong")]
fn own_access(
    own: Option<&Node>,
    common: Option<&Node>,
    what: &str,
    errors: &DiagnosticSink,
) -> Option<Option<Box<Link>>> {
    let Some(own) = own else { return Some(None) };
    let merged = common.map_or_else(|| own.clone(), |common| changed(common, Some(own), &[]));
    Link::access(&merged, what, errors).map(|link| Some(link.into()))
}

/// A link can have only one kind of loss.
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

/// A flow's name is used in paths of `--set` and in file names of captures.
fn check_name(name: Option<&str>, node: &Node, errors: &DiagnosticSink) {
    let fine = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_some_and(|n| n.is_empty() || !n.chars().all(fine)) {
        let span = node.get("name").map_or(&node.span, |n| &n.span);
        let error = "a flow's name is made of letters, digits, '-' and '_'";
        errors.push(Diagnostic::at(span, error));
    }
}
