//! Counts the traffic of each flow on each link between routers.

use udccp_link::{Counter, Tally};

/// Counts packets by link between routers and by path, when they leave the link.
#[derive(Debug, Default)]
pub(crate) struct Crossings {
    paths: usize,
    now: Vec<Counter>,
    /// In the measured window; while it lasts, the counts with which it began.
    measured: Vec<Tally>,
}

impl Crossings {
    /// Counters for the links `0..links`.
    pub(crate) fn new(links: usize, paths: usize) -> Self {
        Self { paths, now: vec![Counter::default(); links * paths], measured: Vec::new() }
    }

    #[inline]
    pub(crate) fn count(&mut self, link: usize, path: u32, len: u32) {
        if let Some(counter) = self.now.get_mut(link * self.paths + path as usize) {
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

    /// The traffic on a link in the measured window.
    pub(crate) fn measured(&self, link: usize, path: usize) -> Tally {
        self.measured.get(link * self.paths + path).copied().unwrap_or_default()
    }
}
