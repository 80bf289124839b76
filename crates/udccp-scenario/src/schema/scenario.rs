//! A run as described in a file: topology, time, flows. All grid axes are replaced by values.

use std::collections::BTreeSet;

use serde::Serialize;
use udccp_base::Duration;
use udccp_link::Backlog;

use super::change::{self, LinkChange};
use super::flow::Flow;
use super::link::Link;
use super::topology::Topology;
use super::traffic::Traffic;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::document::{DiagnosticSink, FromNode, Node, Reader};

/// Version of the file format.
pub const SCHEMA: u64 = 1;

/// A run without its seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Scenario {
    /// The network.
    pub topology: Topology,
    /// Scheduled changes of the network.
    #[serde(rename = "change", skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LinkChange>,
    /// How long, and when to measure.
    pub time: Time,
    /// The flows, in the order of the file.
    #[serde(rename = "flow")]
    pub flows: Vec<Flow>,
}

/// The times of a run.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Time {
    /// Length of the run.
    pub duration: Duration,
    /// Each flow starts later than its `start` by a random time below this, drawn from the run's
    /// seed, so that runs have different starting phases.
    pub phase: Duration,
    /// When to measure.
    pub measure: Measure,
}

/// The measured interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Measure {
    /// Start.
    pub from: Duration,
    /// End.
    pub to: Duration,
    /// Length of one sample of the series.
    pub every: Duration,
}

impl Scenario {
    /// Reads the scenario in a file.
    ///
    /// # Errors
    /// All invalid keys, units and names, with their lines.
    pub fn read(root: &Node) -> Result<Self, Diagnostics> {
        let errors = DiagnosticSink::default();
        let scenario = Self::from_root(root, &errors);
        errors.finish(scenario)
    }

    fn from_root(root: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(root, "the file", errors)?;
        let time = reader.need::<Time>("time");
        let topology = reader.need::<Topology>("topology");
        let nodes = reader.tables("flow");
        if nodes.is_empty() {
            errors.push(
                Diagnostic::whole(format!("{}: there is no flow", root.span.source.name))
                    .hint("add one: [[flow]] with name, protocol, start and traffic"),
            );
        }
        let access = root.get("topology").and_then(|t| t.get("access"));
        let groups: Vec<Option<Vec<Flow>>> =
            nodes.iter().map(|n| Flow::group(n, access, errors)).collect();
        let groups: Vec<Vec<Flow>> = groups.into_iter().collect::<Option<_>>()?;
        let count = groups.iter().map(Vec::len).sum();
        let mut flows: Vec<Flow> = Vec::with_capacity(count);
        let mut written = Vec::with_capacity(count);
        let mut names = BTreeSet::new();
        for (mut flow, node) in groups.into_iter().zip(&nodes).flat_map(|(g, n)| {
            let node: &Node = n;
            g.into_iter().map(move |flow| (flow, node))
        }) {
            if !names.insert(flow.name.clone()) {
                let error = format!("two flows are called \"{}\"", flow.name);
                errors.push(Diagnostic::at(&node.span, error));
            }
            if let Some(before) = flows.last() {
                flow.share_with(before);
            }
            flows.push(flow);
            written.push(node);
        }
        let (topology, time) = (topology?, time?);
        let changes = change::read(root, &topology, &flows, time.duration, errors)?;
        let scenario = Self { topology, changes, time, flows };
        scenario.check(&written, errors);
        scenario.check_room(root, &written, errors);
        Some(scenario)
    }

    /// Checks that involve several keys.
    fn check(&self, nodes: &[&Node], errors: &DiagnosticSink) {
        for (flow, node) in self.flows.iter().zip(nodes) {
            self.check_start(flow, node, errors);
            self.check_way(flow, node, errors);
        }
    }

    /// A packet for which a token bucket has no room would never leave `tbf`. On a link with a
    /// trace every packet waits, and so needs room in the queue.
    fn check_room(&self, root: &Node, nodes: &[&Node], errors: &DiagnosticSink) {
        let rtt = self.topology.rtt();
        let check = |link: &Link, packet: u64, node: &Node| {
            let bucket = link.config.token_bucket.map_or(u64::MAX, u64::from);
            if bucket < packet {
                let error = format!(
                    "a token bucket of {bucket} bytes lets no packet of {packet} bytes through"
                );
                let hint = "make `token_bucket` as large as the largest `packet`, or larger";
                errors.push(Diagnostic::at(&node.span, error).hint(hint));
            }
            let limit = link.limit.resolve(link.rate, rtt);
            if link.config.trace.is_some() && !limit.admits(Backlog::default(), packet as u32) {
                let limit = link.limit;
                let error = format!(
                    "a queue of {limit} on a link with a trace holds no packet of {packet} bytes"
                );
                let hint = "every packet waits for an opportunity: make `limit` larger";
                errors.push(Diagnostic::at(&node.span, error).hint(hint));
            }
        };
        let largest = self.flows.iter().map(|flow| flow.packet.bytes()).max().unwrap_or_default();
        let node = root.get("topology").unwrap_or(root);
        for (link, reverse) in self.topology.hops() {
            [Some(link), reverse].into_iter().flatten().for_each(|link| check(link, largest, node));
        }
        check(&self.topology.access, largest, node);
        for (flow, node) in self.flows.iter().zip(nodes) {
            let own = flow.access.iter().chain(&flow.receiver_access);
            own.for_each(|link| check(link, flow.packet.bytes(), node));
        }
    }

    /// A flow must start before the run ends and before it stops, with any phase.
    fn check_start(&self, flow: &Flow, node: &Node, errors: &DiagnosticSink) {
        let Time { duration, phase, .. } = self.time;
        let at = |key: &str| node.get(key).map_or(&node.span, |n| &n.span);
        let name = &flow.name;
        if flow.start >= duration {
            let error =
                format!("flow \"{name}\" starts at {}, but the run ends at {duration}", flow.start);
            errors.push(Diagnostic::at(at("start"), error));
            return;
        }
        // Its transfers come at random times, without a phase.
        if matches!(*flow.traffic, Traffic::Poisson { .. }) {
            return;
        }
        let latest = flow.start + phase;
        let hint = format!("a run adds up to {phase} to `start` (the `phase` of [time])");
        let stop = flow.stop.filter(|stop| *stop > flow.start && *stop <= latest);
        if latest > duration {
            let error = format!(
                "flow \"{name}\" may start as late as {latest}, but the run ends at {duration}"
            );
            errors.push(Diagnostic::at(at("start"), error).hint(hint));
        } else if let Some(stop) = stop {
            let error =
                format!("flow \"{name}\" may start as late as {latest}, but stops at {stop}");
            errors.push(Diagnostic::at(at("stop"), error).hint(hint));
        }
    }

    /// A flow must enter before it leaves, at routers that exist.
    fn check_way(&self, flow: &Flow, node: &Node, errors: &DiagnosticSink) {
        let last = self.topology.routers() as u64;
        for (key, router) in [("enters", flow.enters), ("leaves", flow.leaves)] {
            let Some(node) = node.get(key) else { continue };
            if router.is_some_and(|router| !(1..=last).contains(&router)) {
                let error = format!("there is no router {}", router.unwrap_or_default());
                let hint = format!("routers are numbered from 1 at the left to {last}");
                errors.push(Diagnostic::at(&node.span, error).hint(hint));
                return;
            }
        }
        let (enters, leaves) = (flow.enters.unwrap_or(1), flow.leaves.unwrap_or(last));
        if enters >= leaves {
            let at = node.get("enters").or_else(|| node.get("leaves"));
            let span = at.map_or(&node.span, |n| &n.span);
            let error = format!(
                "flow \"{}\" enters at router {enters} and leaves at router {leaves}",
                flow.name
            );
            let hint = "the second number must be larger; direction = \"reverse\" sends from \
                        right to left";
            errors.push(Diagnostic::at(span, error).hint(hint));
        }
    }
}

impl FromNode for Time {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[time]", errors)?;
        let duration: Option<Duration> = reader.need("duration");
        let phase = reader.or("phase", Duration::ZERO);
        let measure = reader.raw("measure").map(|n| (Measure::from_node(n, errors), n));
        reader.finish();
        let duration = duration?;
        let measure = match measure {
            Some((measure, node)) => {
                let measure = measure?;
                measure.check(duration, node, errors);
                measure
            }
            None => Measure { from: Duration::ZERO, to: duration, every: Duration::from_secs(1) },
        };
        check_samples(duration, measure.every, node, errors);
        Some(Self { duration, phase, measure })
    }
}

/// Most samples of a series. Each flow and each link has one in memory.
const MAX_SAMPLES: u64 = 1_000_000;

fn check_samples(duration: Duration, every: Duration, node: &Node, errors: &DiagnosticSink) {
    let samples = duration.as_nanos().checked_div(every.as_nanos()).unwrap_or_default();
    if samples > MAX_SAMPLES {
        let own = node.get("measure").and_then(|measure| measure.get("every"));
        let span = own.or_else(|| node.get("duration")).map_or(&node.span, |n| &n.span);
        let error =
            format!("{duration} has {samples} intervals of {every}, more than {MAX_SAMPLES}");
        errors.push(Diagnostic::at(span, error).hint("make `every` of `measure` longer"));
    }
}

impl FromNode for Measure {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "time.measure", errors)?;
        let from = reader.need("from");
        let to = reader.need("to");
        let every = reader.or("every", Duration::from_secs(1));
        reader.finish();
        Some(Self { from: from?, to: to?, every })
    }
}

impl Measure {
    fn check(&self, duration: Duration, node: &Node, errors: &DiagnosticSink) {
        let span = |key: &str| node.get(key).map_or(&node.span, |n| &n.span);
        if self.to > duration {
            let error = format!("measuring ends at {}, but the run ends at {duration}", self.to);
            errors.push(Diagnostic::at(span("to"), error));
        }
        if self.from >= self.to {
            let error = format!("measuring begins at {} and ends at {}", self.from, self.to);
            errors.push(Diagnostic::at(span("from"), error));
        }
        if self.every.is_zero() {
            errors.push(Diagnostic::at(span("every"), "the length of a sample must be above zero"));
        }
    }
}
