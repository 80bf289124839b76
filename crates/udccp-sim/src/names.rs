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
    /// The names of all pairs in a row, and where each ends.
    pairs: String,
    ends: Vec<u32>,
}

impl Names {
    pub(crate) fn new(hops: usize, pairs: &[PairConfig]) -> Self {
        let mut ends = Vec::with_capacity(pairs.len());
        let mut all = String::with_capacity(pairs.iter().map(|pair| pair.name.len()).sum());
        for pair in pairs {
            all += &pair.name;
            ends.push(all.len() as u32);
        }
        Self { hops, pairs: all, ends }
    }

    /// The name of a pair.
    fn pair(&self, index: usize) -> &str {
        let begin = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.pairs[begin as usize..self.ends[index] as usize]
    }

    /// The name of a component, hosts before links.
    pub(crate) fn component(&self, number: usize) -> String {
        match number.checked_sub(2 * self.ends.len()) {
            None => {
                let end = if number.is_multiple_of(2) { "sender" } else { "receiver" };
                format!("{} {end}", self.pair(number / 2))
            }
            Some(link) => self.link(link),
        }
    }

    /// The name of a link.
    pub(crate) fn link(&self, index: usize) -> String {
        match index.checked_sub(2 * self.hops) {
            None => link_name(index, self.hops),
            Some(access) => {
                format!("{} {}", self.pair(access / ACCESS.len()), ACCESS[access % ACCESS.len()])
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Bulk;

    #[test]
    fn components_have_the_names_of_their_pairs() {
        let pair = |name| PairConfig::later(name, Box::new(Bulk::new()));
        let names = Names::new(1, &["a", "", "voice"].map(pair));
        let all = ["a sender", "a receiver", " sender", " receiver", "voice sender"];
        assert!(all.iter().enumerate().all(|(i, name)| names.component(i) == *name));
        assert_eq!(names.component(6), "bottleneck forward");
        assert_eq!((&*names.link(2), &*names.link(13)), ("a sender up", "voice receiver down"));
    }
}
