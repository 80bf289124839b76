//! The network of a scenario: access links, and routers in a row.

use serde::Serialize;
use udccp_base::Duration;

use super::choice::words;
use super::link::{Link, Propagation};
use crate::diagnostic::Diagnostic;
use crate::document::{DiagnosticSink, FromNode, Node, Reader, Value};

words! {
    /// Shapes of networks.
    Shape, "topology shape":
    /// Senders, router, bottleneck, router, receivers.
    Dumbbell = "dumbbell",
    /// Several routers in a row.
    Chain = "chain",
    /// Several routers in a row, where flows enter and leave at any of them.
    ParkingLot = "parking-lot",
}

/// The network between the hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Topology {
    /// Its shape.
    pub shape: Shape,
    /// The link between each host and its router, unless a flow has its own.
    pub access: Link,
    /// The link between the first two routers (the only one in a dumbbell).
    pub bottleneck: Link,
    /// The same from right to left, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Link>,
    /// The hops after the first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub further: Vec<Hop>,
}

/// A link between two neighbouring routers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hop {
    /// From left to right, and back if there is no `reverse`.
    pub link: Link,
    /// From right to left.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reverse: Option<Link>,
}

/// Most hops of a row.
const MAX_HOPS: u64 = 32;

impl Topology {
    /// Both directions of every hop, from left to right. The second is `None` if it equals the
    /// first.
    pub fn hops(&self) -> impl Iterator<Item = (&Link, Option<&Link>)> {
        let first = core::iter::once((&self.bottleneck, self.reverse.as_ref()));
        first.chain(self.further.iter().map(|hop| (&hop.link, hop.reverse.as_ref())))
    }

    /// Number of routers.
    pub const fn routers(&self) -> usize {
        self.further.len() + 2
    }

    /// One-way propagation delay of a link between routers. An `rtt` is for the whole path: after
    /// subtracting the access links it is divided equally among all hops and directions.
    pub fn delay_of(&self, link: &Link) -> Duration {
        match link.propagation {
            Propagation::Delay(delay) => delay,
            Propagation::Rtt(_) => link.delay(self.access_delays()) / (self.routers() as u64 - 1),
        }
    }

    /// One-way propagation delay of the bottleneck.
    pub fn bottleneck_delay(&self) -> Duration {
        self.delay_of(&self.bottleneck)
    }

    /// Round-trip propagation time from host to host, over the whole row.
    pub fn rtt(&self) -> Duration {
        if let (Propagation::Rtt(rtt), None) = (self.bottleneck.propagation, &self.reverse) {
            return rtt;
        }
        let both = |(link, reverse): (&Link, Option<&Link>)| {
            self.delay_of(link) + self.delay_of(reverse.unwrap_or(link))
        };
        self.hops().map(both).fold(self.access_delays() * 2, |sum, delay| sum + delay)
    }

    /// One-way propagation delay of the two access links together.
    pub fn access_delays(&self) -> Duration {
        self.access.delay(Duration::ZERO) * 2
    }

    /// A path cannot be shorter than its access links, in either direction.
    fn check_rtt(&self, node: &Node, errors: &DiagnosticSink) {
        let least = self.access_delays() * 2;
        for (key, link) in
            [("bottleneck", Some(&self.bottleneck)), ("reverse", self.reverse.as_ref())]
        {
            // A `reverse` without an `rtt` has that of the bottleneck.
            let Some(rtt) = node.get(key).and_then(|link| link.get("rtt")) else { continue };
            if link.is_some_and(|l| matches!(l.propagation, Propagation::Rtt(rtt) if rtt < least)) {
                let error = format!("the access links alone have a round-trip time of {least}");
                errors.push(Diagnostic::at(&rtt.span, error).hint("`rtt` is of the whole path"));
            }
        }
    }
}

impl FromNode for Topology {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[topology]", errors)?;
        let shape: Option<Shape> = reader.need("shape");
        let access = reader.node("access").map(|n| Link::access(n, "topology.access", errors));
        let tables = reader.tables("hop");
        // Read together with the flows, because changes can refer to their links.
        reader.knows(&["change"]);
        let count = reader.raw("hops");
        let hops = match (shape, tables.as_slice()) {
            (Some(Shape::Chain | Shape::ParkingLot), tables @ [_, ..]) => {
                for key in ["bottleneck", "reverse", "hops"] {
                    if let Some(both) = reader.raw(key) {
                        let error = format!("`{key}` contradicts [[topology.hop]]");
                        let hint = "write every hop as [[topology.hop]], or `hops = 3` equal ones \
                                    as `bottleneck`";
                        errors.push(Diagnostic::at(&both.span, error).hint(hint));
                    }
                }
                tables.iter().map(|hop| Hop::from_node(hop, errors)).collect::<Option<Vec<_>>>()
            }
            _ => equal_hops(&mut reader, shape, count, tables.first().copied()),
        };
        reader.finish();
        let mut hops = hops?.into_iter();
        let first = hops.next()?;
        let topology = Self {
            shape: shape?,
            access: access??,
            bottleneck: first.link,
            reverse: first.reverse,
            further: hops.collect(),
        };
        topology.check_rtt(node, errors);
        Some(topology)
    }
}

/// As many hops equal to `bottleneck` as needed: one in a dumbbell.
fn equal_hops(
    reader: &mut Reader<'_>,
    shape: Option<Shape>,
    count: Option<&Node>,
    table: Option<&Node>,
) -> Option<Vec<Hop>> {
    let errors = reader.errors();
    let is_row = shape.is_some_and(|shape| shape != Shape::Dumbbell);
    if let Some(odd) = count.or(table).filter(|_| shape == Some(Shape::Dumbbell)) {
        let error = Diagnostic::at(&odd.span, "a dumbbell has one link between its routers");
        errors.push(error.hint("shape = \"chain\" or \"parking-lot\" has several"));
    }
    let bottleneck = reader.node("bottleneck")?;
    let reverse = reader.raw("reverse");
    let hop = read_hop(bottleneck, reverse, "topology.bottleneck", "topology.reverse", errors)?;
    if !is_row {
        return Some(vec![hop]);
    }
    let Some(count) = count else {
        let error = "a chain of routers needs its number of hops";
        let hint = "hops = 3 for equal ones, or [[topology.hop]] for each";
        errors.push(Diagnostic::at(&bottleneck.span, error).hint(hint));
        return None;
    };
    let number = u64::from_node(count, errors)?;
    if !(1..=MAX_HOPS).contains(&number) {
        let error = format!("a chain has 1 to {MAX_HOPS} hops, not {number}");
        errors.push(Diagnostic::at(&count.span, error));
        return None;
    }
    Some(vec![hop; number as usize])
}

impl FromNode for Hop {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let reverse = node.get("reverse");
        let both = [Some(node), reverse].into_iter().flatten();
        if let Some(rtt) = both.filter_map(|direction| direction.get("rtt")).next() {
            let error =
                Diagnostic::at(&rtt.span, "an `rtt` is that of the whole path, not of a hop");
            errors.push(error.hint("give each hop its one-way `delay`"));
            return None;
        }
        let forward = changed(node, None, &["reverse"]);
        read_hop(&forward, reverse, "[[topology.hop]]", "topology.hop.reverse", errors)
    }
}

/// A hop whose reverse direction equals the forward one, except for `reverse` and for random loss
/// and changes.
fn read_hop(
    forward: &Node,
    reverse: Option<&Node>,
    what: &str,
    reverse_what: &str,
    errors: &DiagnosticSink,
) -> Option<Hop> {
    let link = Link::bottleneck(forward, what, errors)?;
    let reverse = match reverse {
        Some(node) => {
            let mut without = Link::FORWARD_ONLY.to_vec();
            if node.get("delay").is_some() || node.get("rtt").is_some() {
                without.extend(["delay", "rtt"]);
            }
            let node = changed(forward, Some(node), &without);
            Some(Link::bottleneck(&node, reverse_what, errors)?)
        }
        None => None,
    };
    Some(Hop { link, reverse })
}

/// A table with the entries of `change` replacing those of `base`, without the keys in `without`. A
/// value that is not a table is returned unchanged and rejected when it is read.
pub(super) fn changed(base: &Node, change: Option<&Node>, without: &[&str]) -> Node {
    let parts = [Some(base), change].into_iter().flatten();
    if let Some(odd) = parts.rev().find(|part| !matches!(part.value, Value::Table(_))) {
        return odd.clone();
    }
    let kept = |key: &str| {
        !without.contains(&key) && change.is_none_or(|change| change.get(key).is_none())
    };
    let mut entries: Vec<_> = base.entries().iter().filter(|e| kept(&e.key)).cloned().collect();
    entries.extend(change.map(Node::entries).unwrap_or_default().iter().cloned());
    let span = change.map_or(&base.span, |change| &change.span).clone();
    Node { span, value: Value::Table(entries) }
}
