//! Hosts, routers and links as a graph, and the routes through it.

use std::sync::Arc;

use udccp_base::Seed;
use udccp_link::{LinkConfig, Variation};

use crate::chain::Chain;
use crate::element::Element;

/// A node of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Node {
    Host(u32),
    Router(u32),
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct LinkSpec {
    pub(crate) from: Node,
    pub(crate) to: Node,
    pub(crate) config: Arc<LinkConfig>,
}

/// The graph.
#[derive(Clone, Debug, Default)]
pub(crate) struct Network {
    pub(crate) hosts: usize,
    pub(crate) routers: usize,
    pub(crate) links: Vec<LinkSpec>,
}

/// For every router, the link to each host.
#[derive(Clone, Debug, Default)]
pub(crate) struct Routes {
    hosts: usize,
    links: Vec<u32>,
}

impl Routes {
    /// The link from a router towards a host; [`u32::MAX`] if there is no route.
    #[inline(always)]
    pub(crate) fn link(&self, router: u32, host: u32) -> u32 {
        let at = router as usize * self.hosts + host as usize;
        self.links.get(at).copied().unwrap_or(u32::MAX)
    }
}

/// Number of the sender's host of a pair; its receiver's is one more.
pub(crate) const fn sender_of(pair: usize) -> usize {
    2 * pair
}

impl Network {
    /// Two links per hop (forward and reverse), then four access links per pair.
    pub(crate) fn chain(chain: &Chain) -> Self {
        let routers = chain.hops.len() + 1;
        let mut net = Self { hosts: 2 * chain.pairs.len(), routers, links: Vec::new() };
        net.links.reserve_exact(2 * chain.hops.len() + 4 * chain.pairs.len());
        for (i, hop) in chain.hops.iter().enumerate() {
            let (left, right) = (Node::Router(i as u32), Node::Router(i as u32 + 1));
            net.link(left, right, hop.forward.clone().into());
            net.link(right, left, hop.reverse.clone().into());
        }
        for (i, pair) in chain.pairs.iter().enumerate() {
            let sender = Node::Host(sender_of(i) as u32);
            let receiver = Node::Host(sender_of(i) as u32 + 1);
            let (enters, leaves) = chain.ends_of(pair);
            let [enters, leaves] = [enters, leaves].map(|router| Node::Router(router as u32));
            net.access(sender, enters, &pair.sender_access);
            net.access(receiver, leaves, &pair.receiver_access);
        }
        net
    }

    fn access(&mut self, host: Node, router: Node, up: &Arc<LinkConfig>) {
        let down = match up.variation {
            Variation::None => Arc::clone(up),
            _ => LinkConfig { variation: Variation::None, ..LinkConfig::clone(up) }.into(),
        };
        self.link(host, router, Arc::clone(up));
        self.link(router, host, down);
    }

    fn link(&mut self, from: Node, to: Node, config: Arc<LinkConfig>) {
        self.links.push(LinkSpec { from, to, config });
    }

    /// The link that connects each host, in the direction of the network.
    pub(crate) fn uplinks(&self) -> Vec<usize> {
        let mut uplinks = vec![usize::MAX; self.hosts];
        for (i, link) in self.links.iter().enumerate() {
            if let Node::Host(host) = link.from {
                uplinks[host as usize] = i;
            }
        }
        uplinks
    }

    /// For every router, the link to each host on the route with the fewest hops.
    pub(crate) fn routes(&self) -> Routes {
        let between = self.between_routers();
        let mut links = vec![u32::MAX; self.hosts * self.routers];
        for (i, link) in self.links.iter().enumerate() {
            let (Node::Router(last), Node::Host(host)) = (link.from, link.to) else { continue };
            for (router, table) in links.chunks_exact_mut(self.hosts).enumerate() {
                table[host as usize] =
                    if router == last as usize { i as u32 } else { between[last as usize][router] };
            }
        }
        Routes { hosts: self.hosts, links }
    }

    /// `[last][router]`: the link from `router` towards the router `last`.
    fn between_routers(&self) -> Vec<Vec<u32>> {
        (0..self.routers).map(|last| self.towards(last)).collect()
    }

    /// Breadth-first search from `last`, against the direction of the links.
    fn towards(&self, last: usize) -> Vec<u32> {
        let mut via = vec![u32::MAX; self.routers];
        let mut reached = vec![last];
        let mut next = 0;
        while let Some(&here) = reached.get(next) {
            next += 1;
            for (i, link) in self.links.iter().enumerate() {
                let (Node::Router(from), Node::Router(to)) = (link.from, link.to) else {
                    continue;
                };
                if to as usize == here && !reached.contains(&(from as usize)) {
                    via[from as usize] = i as u32;
                    reached.push(from as usize);
                }
            }
        }
        via
    }
}

impl LinkSpec {
    /// Whether the link is between two routers. It is then sampled at every interval, and is an
    /// observation point.
    pub(crate) const fn is_bottleneck(&self) -> bool {
        matches!((self.from, self.to), (Node::Router(_), Node::Router(_)))
    }

    /// Builds the element, whose random numbers come from the streams of its name. `else_too` means
    /// that something besides the element handles what enters and leaves: then it cannot be a plain
    /// one.
    pub(crate) fn build(&self, seed: Seed, name: &str, else_too: bool) -> Element {
        if else_too || !self.config.is_plain() {
            return Element::Other(self.config.build(seed, name));
        }
        let plain = self.config.plain(seed, name);
        // The counters of access links are never read.
        Element::Plain(if self.is_bottleneck() { plain } else { plain.without_records() })
    }

    /// Whether the link may deliver packets twice.
    pub(crate) fn duplicates(&self) -> bool {
        self.config.duplicate > 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(from: Node, to: Node) -> LinkSpec {
        LinkSpec { from, to, config: Arc::default() }
    }

    #[test]
    fn routes_lead_through_a_row_of_routers() {
        use Node::{Host, Router};
        // h0 - r0 - r1 - r2 - h1, each way.
        let chain = [Host(0), Router(0), Router(1), Router(2), Host(1)];
        let mut net = Network { hosts: 2, routers: 3, links: Vec::new() };
        for pair in chain.windows(2) {
            net.links.push(link(pair[0], pair[1]));
            net.links.push(link(pair[1], pair[0]));
        }
        assert_eq!(net.routes().links, [1, 2, 3, 4, 5, 6]);
        assert_eq!(net.routes().link(1, 0), 3);
        assert_eq!(net.routes().link(0, u32::MAX), u32::MAX, "no such host");
        assert_eq!(net.uplinks(), [0, 7]);
    }
}
