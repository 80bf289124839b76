//! `[[topology.change]]`: scheduled changes of links.

use serde::{Serialize, Serializer};
use udccp_base::{Duration, Instant};
use udccp_sim::{Change, LinkConfig, hop_name, link_name};

use super::{Flow, Topology, loss};
use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{DiagnosticSink, FromNode as _, Node, Reader, rate_or_zero};

/// A change of one direction of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkChange {
    /// When.
    pub at: Duration,
    /// The link by its name in the simulator: `bottleneck forward`, `hop 2 reverse`. For an access
    /// link, without direction: `first sender`.
    pub link: String,
    /// The change.
    pub change: Change,
}

impl Serialize for LinkChange {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        super::link::shortened(&format!("{self:?}"), s)
    }
}

/// The changes of one link, in the simulator's form.
pub(crate) fn of_link(changes: &[LinkChange], link: &str) -> Vec<(Instant, Change)> {
    let mine = changes.iter().filter(|change| change.link == link);
    mine.map(|change| (Instant::ZERO + change.at, change.change.clone())).collect()
}

/// Names that a change may use, each with its links.
struct Names(Vec<(String, Vec<String>)>);

impl Names {
    fn of(topology: &Topology, flows: &[Flow]) -> Self {
        let mut names = Vec::new();
        let hops = topology.hops().count();
        for hop in 0..hops {
            let ways = [2 * hop, 2 * hop + 1].map(|link| link_name(link, hops));
            names.push((hop_name(hop, hops), ways.to_vec()));
            names.extend(ways.map(|way| (way.clone(), vec![way])));
        }
        let ends = |f: &Flow| ["sender", "receiver"].map(|end| format!("{} {end}", f.name));
        let access: Vec<String> = flows.iter().flat_map(ends).collect();
        names.extend(access.iter().map(|end| (end.clone(), vec![end.clone()])));
        names.push(("access".to_owned(), access));
        Self(names)
    }

    fn links(&self, node: &Node, errors: &DiagnosticSink) -> Option<&[String]> {
        let name = String::from_node(node, errors)?;
        let found = self.0.iter().find(|(known, _)| *known == name);
        if found.is_none() {
            let known: Vec<&str> = self.0.iter().map(|(known, _)| known.as_str()).collect();
            let error = Diagnostic::at(&node.span, format!("there is no link \"{name}\""));
            errors.push(error.hint(suggestion(&name, "links", &known)));
        }
        found.map(|(_, links)| links.as_slice())
    }
}

/// Reads all `[[topology.change]]` of a file and rejects those that contradict each other.
pub(super) fn read(
    root: &Node,
    topology: &Topology,
    flows: &[Flow],
    end: Duration,
    errors: &DiagnosticSink,
) -> Option<Vec<LinkChange>> {
    let node = root.get("topology")?;
    let tables = Reader::new(node, "[topology]", errors)?.tables("change");
    let names = Names::of(topology, flows);
    let mut changes: Vec<LinkChange> = Vec::new();
    for table in tables {
        for change in read_one(table, &names, topology, end, errors)? {
            let same = |other: &&LinkChange| {
                let kind = core::mem::discriminant(&change.change);
                other.at == change.at
                    && other.link == change.link
                    && core::mem::discriminant(&other.change) == kind
            };
            if changes.iter().any(|other| same(&other)) {
                let span = table.get("at").map_or(&table.span, |n| &n.span);
                let what = word(&change.change);
                let error =
                    format!("two changes of the {what} of \"{}\" at {}", change.link, change.at);
                errors.push(Diagnostic::at(span, error));
            }
            changes.push(change);
        }
    }
    Some(changes)
}

fn word(change: &Change) -> &'static str {
    match change {
        Change::Rate(_) => "rate",
        Change::Delay(_) => "delay",
        Change::Loss(_) => "loss",
        Change::Down(_) => "state",
    }
}

fn read_one(
    node: &Node,
    names: &Names,
    topology: &Topology,
    end: Duration,
    errors: &DiagnosticSink,
) -> Option<Vec<LinkChange>> {
    let mut reader = Reader::new(node, "[[topology.change]]", errors)?;
    let at = reader.need::<Duration>("at");
    let links = reader.node("link").and_then(|n| names.links(n, errors));
    let rate = reader.raw("rate").and_then(|n| rate_or_zero(n, errors)).map(Change::Rate);
    let delay = reader.want("delay").map(Change::Delay);
    let loss = reader.raw("loss").and_then(|n| loss::read(n, errors)).map(Change::Loss);
    let down = reader.want("down").map(Change::Down);
    reader.finish();
    let (at, links) = (at?, links?);
    let span = |key: &str| node.get(key).map_or(&node.span, |n| &n.span);
    if at >= end {
        let error = format!("the change is at {at}, but the run ends at {end}");
        errors.push(Diagnostic::at(span("at"), error));
    }
    let is_traced = |link: &String| config_of(topology, link).trace.is_some();
    if rate.is_some() && links.iter().any(is_traced) {
        let error = Diagnostic::at(span("rate"), "a link with a `trace` has no rate to change");
        errors.push(error.hint("the trace says when it transmits; `down` stops it"));
    }
    let has_bucket = |link: &String| config_of(topology, link).token_bucket.is_some();
    if (rate.is_some() || delay.is_some() || down.is_some()) && links.iter().any(has_bucket) {
        let error = "on a link with a `token_bucket`, only the `loss` can change";
        let error = Diagnostic::at(&node.span, error);
        errors.push(error.hint("without `token_bucket`, the rate and the delay can change too"));
    }
    let what: Vec<Change> = [rate, delay, loss, down].into_iter().flatten().collect();
    if what.is_empty() {
        let error = Diagnostic::at(span("at"), "nothing changes");
        errors.push(error.hint("give `rate`, `delay`, `loss` or `down`"));
    }
    let mut changes = Vec::new();
    for change in what {
        // If the link is named without a direction, loss changes in the forward one, as in the
        // description of a link.
        let both = links.len() == 2 && links[0].ends_with(" forward");
        let count = if both && matches!(change, Change::Loss(_)) { 1 } else { links.len() };
        let one = |link: &String| LinkChange { at, link: link.clone(), change: change.clone() };
        changes.extend(links[..count].iter().map(one));
    }
    Some(changes)
}

/// The description of the link of this name.
fn config_of<'a>(topology: &'a Topology, link: &str) -> &'a LinkConfig {
    let hops = topology.hops().count();
    let links = topology.hops().flat_map(|(link, reverse)| [link, reverse.unwrap_or(link)]);
    let mut named = links.enumerate().filter(|(i, _)| link_name(*i, hops) == link);
    &named.next().map_or(&topology.access, |(_, link)| link).config
}
