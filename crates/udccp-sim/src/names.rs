//! Names of hosts and links. Computed on demand, because those of many flows take much memory.

use crate::config::PairConfig;

/// The name of a hop: `bottleneck` if there is only one, otherwise numbered from 1.
pub fn hop_name(index: usize, hops: usize) -> String {
    if hops == 1 { "bottleneck".to_owned() } else { format!("hop {}", index + 1) }
}

/// The name of a link between routers. Each hop has two, forward before reverse.
pub fn link_name(index: usize, hops: usize) -> String {
    let way = if index.is_multiple_of(2) { "forward" } else { "reverse" };
    format!("{} {way}", hop_name(index / 2, hops))
}

/// The links of a pair, in order.
const ACCESS: [&str; 4] = ["sender up", "sender down", "receiver up", "receiver down"];

/// Names of all components: two hosts per pair, two links per hop, then four links per pair.
#[derive(Debug)]
pub(crate) struct Names {
    hops: usize,
    pairs: Vec<String>,
}

impl Names {
    pub(crate) fn new(hops: usize, pairs: &[PairConfig]) -> Self {
        Self { hops, pairs: pairs.iter().map(|pair| pair.name.clone()).collect() }
    }

    /// The name of a component, hosts before links.
    pub(crate) fn component(&self, number: usize) -> String {
        match number.checked_sub(2 * self.pairs.len()) {
            None => {
                let end = if number.is_multiple_of(2) { "sender" } else { "receiver" };
                format!("{} {end}", self.pairs[number / 2])
            }
            Some(link) => self.link(link),
        }
    }

    /// The name of a link.
    pub(crate) fn link(&self, index: usize) -> String {
        match index.checked_sub(2 * self.hops) {
            None => link_name(index, self.hops),
            Some(access) => {
                format!("{} {}", self.pairs[access / ACCESS.len()], ACCESS[access % ACCESS.len()])
            }
        }
    }
}
