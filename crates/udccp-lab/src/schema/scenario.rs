//! One run as a file describes it: topology, time, flows. Everything is resolved: no axis left.

use serde::Serialize;
use udccp_base::{DataRate, DataSize, Duration};

use super::choice::words;
use super::flow::Flow;
use super::quantity::{Limit, Percent};
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{Faults, FromNode, Node, Reader};

/// Version of the file format.
pub const SCHEMA: u64 = 1;

/// One run, without its seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// The network.
    pub topology: Topology,
    /// How long, and when to measure.
    pub time: Time,
    /// The flows, in the order of the file.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
}

/// The network between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topology {
    /// Its shape.
    pub shape: Shape,
    /// The link between each host and its router, the same for all.
    pub access: Access,
    /// The link between the two routers.
    pub bottleneck: Bottleneck,
}

words! {
    /// Shapes of networks.
    Shape, "topology shape":
    /// Senders, router, bottleneck, router, receivers.
    Dumbbell = "dumbbell",
}

words! {
    /// Queue disciplines.
    Queue, "queue":
    /// Drops what arrives while the queue is full.
    DropTail = "drop-tail",
}

/// An access link, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Access {
    /// Its rate.
    pub rate: DataRate,
    /// Its propagation delay, one way.
    pub delay: Duration,
    /// The limit of its queue at the host.
    pub limit: Limit,
    /// Timing noise of the host: each packet that it sends reaches the router later by a time drawn
    /// uniformly from zero to this, in order.
    pub jitter: Duration,
}

/// The bottleneck, the same in both directions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bottleneck {
    /// Its rate.
    pub rate: DataRate,
    /// Round-trip propagation time of the whole path from host to host. What the access links
    /// leave of it is split equally between the directions of the bottleneck.
    pub rtt: Duration,
    /// Its queue discipline.
    pub queue: Queue,
    /// The limit of the queue.
    pub limit: Limit,
    /// Packets lost by chance in the forward direction, independently of each other.
    pub loss: Percent,
}

impl Topology {
    /// One-way propagation delay of the bottleneck.
    pub fn bottleneck_delay(&self) -> Duration {
        (self.bottleneck.rtt / 2).saturating_sub(self.access.delay * 2)
    }
}

/// When things happen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Time {
    /// Length of the run.
    pub duration: Duration,
    /// Each flow starts later than its `start` by a time below this, drawn from the run's seed:
    /// runs differ in their starting phases.
    pub phase: Duration,
    /// When to measure.
    pub measure: Measure,
}

/// The measuring interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Begin.
    pub from: Duration,
    /// End.
    pub to: Duration,
    /// Length of one sample of the series.
    pub every: Duration,
}

impl Scenario {
    /// Reads the parts of a file that make up a run.
    ///
    /// # Errors
    /// Every key, unit or name that is wrong, with its line.
    pub fn read(root: &Node) -> Result<Self, Diagnostics> {
        let faults = Faults::default();
        let scenario = Self::from_root(root, &faults);
        faults.finish(scenario)
    }

    fn from_root(root: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(root, "the file", faults)?;
        let time = reader.need::<Time>("time");
        let topology = reader.need::<Topology>("topology");
        let nodes = reader.tables("flow");
        if nodes.is_empty() {
            faults.push(
                Diagnostic::whole(format!("{}: there is no flow", root.span.source.name))
                    .hint("add one: [[flow]] with name, protocol, start and traffic"),
            );
        }
        let flows: Vec<Option<Flow>> = nodes.iter().map(|n| Flow::from_node(n, faults)).collect();
        let flows: Vec<Flow> = flows.into_iter().collect::<Option<_>>()?;
        for (i, flow) in flows.iter().enumerate() {
            if flows[..i].iter().any(|f| f.name == flow.name) {
                let fault = format!("two flows are called \"{}\"", flow.name);
                faults.push(Diagnostic::at(&nodes[i].span, fault));
            }
        }
        let scenario = Self { topology: topology?, time: time?, flows };
        scenario.check(&nodes, faults);
        Some(scenario)
    }

    /// What no single key can see.
    fn check(&self, nodes: &[&Node], faults: &Faults) {
        for (flow, node) in self.flows.iter().zip(nodes) {
            let span = node.get("start").map_or(&node.span, |n| &n.span);
            if flow.start >= self.time.duration {
                let fault = format!(
                    "flow \"{}\" starts at {}, the run ends at {}",
                    flow.name, flow.start, self.time.duration
                );
                faults.push(Diagnostic::at(span, fault));
            }
        }
    }
}

impl FromNode for Topology {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "[topology]", faults)?;
        let shape = reader.need("shape");
        let access = reader.need::<Access>("access");
        let bottleneck = reader.need::<Bottleneck>("bottleneck");
        let rtt_span = node.get("bottleneck").and_then(|b| b.get("rtt")).map(|n| n.span.clone());
        reader.finish();
        let topology = Self { shape: shape?, access: access?, bottleneck: bottleneck? };
        let least = topology.access.delay * 4;
        if topology.bottleneck.rtt < least {
            let fault = format!("the access links alone have a round-trip time of {least}");
            faults.push(Diagnostic::at(&rtt_span?, fault).hint("`rtt` is of the whole path"));
        }
        Some(topology)
    }
}

impl FromNode for Access {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "topology.access", faults)?;
        let rate = reader.need("rate");
        let delay = reader.or("delay", Duration::ZERO);
        let limit = reader.or("limit", Limit::Unlimited);
        let jitter = reader.or("jitter", Duration::ZERO);
        reader.finish();
        Some(Self { rate: rate?, delay, limit, jitter })
    }
}

impl FromNode for Bottleneck {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "topology.bottleneck", faults)?;
        let rate = reader.need("rate");
        let rtt = reader.need("rtt");
        let queue = reader.or("queue", Queue::DropTail);
        let limit = reader.need("limit");
        let loss = reader.or("loss", Percent(0.0));
        reader.finish();
        Some(Self { rate: rate?, rtt: rtt?, queue, limit: limit?, loss })
    }
}

impl FromNode for Time {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "[time]", faults)?;
        let duration: Option<Duration> = reader.need("duration");
        let phase = reader.or("phase", Duration::ZERO);
        let measure = reader.raw("measure").map(|n| (Measure::from_node(n, faults), n));
        reader.finish();
        let duration = duration?;
        let measure = match measure {
            Some((measure, node)) => {
                let measure = measure?;
                measure.check(duration, node, faults);
                measure
            }
            None => Measure { from: Duration::ZERO, to: duration, every: Duration::from_secs(1) },
        };
        Some(Self { duration, phase, measure })
    }
}

impl FromNode for Measure {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, "time.measure", faults)?;
        let from = reader.need("from");
        let to = reader.need("to");
        let every = reader.or("every", Duration::from_secs(1));
        reader.finish();
        Some(Self { from: from?, to: to?, every })
    }
}

impl Measure {
    fn check(&self, duration: Duration, node: &Node, faults: &Faults) {
        let span = |key: &str| node.get(key).map_or(&node.span, |n| &n.span);
        if self.to > duration {
            let fault = format!("measuring ends at {}, the run ends at {duration}", self.to);
            faults.push(Diagnostic::at(span("to"), fault));
        }
        if self.from >= self.to {
            let fault = format!("measuring begins at {} and ends at {}", self.from, self.to);
            faults.push(Diagnostic::at(span("from"), fault));
        }
        if self.every.is_zero() {
            faults.push(Diagnostic::at(span("every"), "a sample needs a length above zero"));
        }
    }
}

impl FromNode for Flow {
    fn from_node(node: &Node, faults: &Faults) -> Option<Self> {
        Self::read(node, faults)
    }
}

/// Size of an IP packet where a file does not say.
pub(super) const DEFAULT_PACKET: DataSize = DataSize::from_bytes(1500);
