//! One run as a file describes it: topology, time, flows. Everything is resolved: no axis left.

use serde::Serialize;
use udccp_base::{DataSize, Duration};

use super::choice::words;
use super::flow::Flow;
use super::link::{Link, Propagation};
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
    pub access: Link,
    /// The link between the two routers.
    pub bottleneck: Link,
}

words! {
    /// Shapes of networks.
    Shape, "topology shape":
    /// Senders, router, bottleneck, router, receivers.
    Dumbbell = "dumbbell",
}

impl Topology {
    /// One-way propagation delay of the bottleneck.
    pub fn bottleneck_delay(&self) -> Duration {
        self.bottleneck.delay(self.access_delays())
    }

    /// Round-trip propagation time from host to host.
    pub fn rtt(&self) -> Duration {
        match self.bottleneck.propagation {
            Propagation::Rtt(rtt) => rtt,
            Propagation::Delay(delay) => (delay + self.access_delays()) * 2,
        }
    }

    /// One-way propagation delay of the two access links together.
    pub fn access_delays(&self) -> Duration {
        self.access.delay(Duration::ZERO) * 2
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
        let access = reader.node("access").map(|n| Link::access(n, "topology.access", faults));
        let bottleneck = reader.node("bottleneck");
        let bottleneck = bottleneck.map(|n| Link::bottleneck(n, "topology.bottleneck", faults));
        let rtt_span = node.get("bottleneck").and_then(|b| b.get("rtt")).map(|n| n.span.clone());
        reader.finish();
        let topology = Self { shape: shape?, access: access??, bottleneck: bottleneck?? };
        let least = topology.access_delays() * 2;
        if topology.rtt() < least {
            let fault = format!("the access links alone have a round-trip time of {least}");
            faults.push(Diagnostic::at(&rtt_span?, fault).hint("`rtt` is of the whole path"));
        }
        Some(topology)
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
