//! Keeps X_recv_set, the receive rates that limit the sending rate (RFC 5348 sections 4.3 and
//! 8.2.2).

use udccp_base::{Duration, Instant};

use super::Rate;

/// Largest number of values, N of RFC 5348 section 8.2.2.
const SIZE: usize = 3;

/// The last few receive rates, with the times of their reports. Starts as {Infinity}.
#[derive(Clone, Debug)]
pub(crate) struct XRecvSet {
    items: [(Rate, Instant); SIZE],
    len: usize,
}

impl XRecvSet {
    //= 5348-1-1
    //= 5348-4.3-1
    /// {Infinity}, as if reported at `now`.
    pub(crate) fn new(now: Instant) -> Self {
        Self { items: [(Rate::MAX, now); SIZE], len: 1 }
    }

    /// The largest value.
    pub(crate) fn max(&self) -> Rate {
        self.items[..self.len].iter().map(|&(rate, _)| rate).max().unwrap_or_default()
    }

    /// Adds a value, and removes values older than two round-trip times (Update X_recv_set).
    pub(crate) fn update(&mut self, now: Instant, x_recv: Rate, rtt: Duration) {
        let mut kept = [(x_recv, now); SIZE];
        let mut len = 1;
        for &item in &self.items[..self.len] {
            if len < SIZE && now - item.1 <= rtt * 2 {
                kept[len] = item;
                len += 1;
            }
        }
        (self.items, self.len) = (kept, len);
    }

    /// Keeps only the largest value, ignoring Infinity (Maximize X_recv_set).
    pub(crate) fn maximize(&mut self, now: Instant, x_recv: Rate) {
        let old = self.items[..self.len].iter().map(|&(rate, _)| rate);
        let largest = old.filter(|&rate| rate != Rate::MAX).chain([x_recv]).max();
        self.replace(now, largest.unwrap_or(x_recv));
    }

    /// Halves all values.
    pub(crate) fn halve(&mut self) {
        for (rate, _) in &mut self.items[..self.len] {
            if *rate != Rate::MAX {
                *rate = rate.halved();
            }
        }
    }

    /// Makes `rate` the only value.
    pub(crate) fn replace(&mut self, now: Instant, rate: Rate) {
        self.items[0] = (rate, now);
        self.len = 1;
    }
}
