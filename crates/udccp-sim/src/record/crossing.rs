//! Counts the traffic of each flow on each link between routers.

use udccp_link::{Counter, Tally};

/// Counts packets by hop and by path, when they leave a link between routers. A path crosses only
/// one of the two links of a hop.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    paths: usize,
    now: Vec<Counter>,
    /// The counts with which the measured window began; empty if there were none.
    before: Vec<Tally>,
    /// Those in the measured window, if it is over.
    measured: Option<Vec<Tally>>,
}

impl Crossings {
    /// Counters for `hops`, each of two links.
    pub(crate) fn new(hops: usize, paths: usize) -> Self {
        let now = vec![Counter::default(); hops * paths];
        Self { paths, now, before: Vec::new(), measured: None }
    }

    #[inline]
    pub(crate) fn count(&mut self, link: usize, path: u32, len: u32) {
        if let Some(counter) = self.now.get_mut(link / 2 * self.paths + path as usize) {
            counter.count(len);
        }
    }

    pub(crate) fn window_begins(&mut self) {
        if self.now.iter().any(|now| *now != Counter::default()) {
            self.before = self.now.iter().map(|now| now.tally()).collect();
        }
    }

    pub(crate) fn window_ends(&mut self) {
        self.measured = Some((0..self.now.len()).map(|at| self.since_begin(at)).collect());
        self.before = Vec::new();
    }

    fn since_begin(&self, at: usize) -> Tally {
        let now = self.now.get(at).map_or(Tally::default(), |now| now.tally());
        now - self.before.get(at).copied().unwrap_or_default()
    }

    /// The traffic on a hop in the measured window, until now if it is not over.
    pub(crate) fn measured(&self, hop: usize, path: usize) -> Tally {
        let at = hop * self.paths + path;
        match &self.measured {
            Some(measured) => measured.get(at).copied().unwrap_or_default(),
            None => self.since_begin(at),
        }
    }
}
