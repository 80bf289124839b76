//! Counts the traffic of each flow on each link between routers.

use udccp_link::{Counter, Tally};

/// Counts packets by hop and by path, when they leave a link between routers. A path crosses only
/// one of the two links of a hop.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    paths: usize,
    now: Vec<Counter>,
    /// In the measured window; while it lasts, the counts with which it began.
    measured: Vec<Tally>,
}

impl Crossings {
    /// Counters for `hops`, each of two links.
    pub(crate) fn new(hops: usize, paths: usize) -> Self {
        Self { paths, now: vec![Counter::default(); hops * paths], measured: Vec::new() }
    }

    #[inline]
    pub(crate) fn count(&mut self, link: usize, path: u32, len: u32) {
        if let Some(counter) = self.now.get_mut(link / 2 * self.paths + path as usize) {
            counter.count(len);
        }
    }

    pub(crate) fn window_begins(&mut self) {
        self.measured = self.now.iter().map(|now| now.tally()).collect();
    }

    pub(crate) fn window_ends(&mut self) {
        self.measured.resize(self.now.len(), Tally::default());
        for (measured, now) in self.measured.iter_mut().zip(&self.now) {
            *measured = now.tally() - *measured;
        }
    }

    /// The traffic on a hop in the measured window.
    pub(crate) fn measured(&self, hop: usize, path: usize) -> Tally {
        self.measured.get(hop * self.paths + path).copied().unwrap_or_default()
    }
}
