//! Averages loss intervals into the loss event rate (RFC 5348 sections 5.4 and 5.5).

use super::NINTERVAL;

/// w_0 to w_(n-1).
const WEIGHTS: [f64; NINTERVAL] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// The smallest fraction of an old interval's weight that one discount leaves.
const THRESHOLD: f64 = 0.25;

/// The last loss intervals I_0 (the current one) to I_n, with their discount factors.
#[derive(Clone, Debug)]
pub struct LossAverage {
    /// Lengths in data packets.
    lengths: [f64; NINTERVAL + 1],
    /// DF_i.
    discounts: [f64; NINTERVAL + 1],
    /// Number of known intervals, including the current one; 0 before the first loss.
    known: usize,
    /// Whether old intervals lose weight during a long interval.
    discounting: bool,
    /// Whether the current interval is excluded because it is short (RFC 4828 section 3).
    is_short: bool,
}

impl LossAverage {
    //= 5348-5.5-2
    /// Creates an average without losses. `discounting` turns history discounting on (section 5.5).
    pub fn new(discounting: bool) -> Self {
        let (lengths, discounts) = ([0.0; NINTERVAL + 1], [1.0; NINTERVAL + 1]);
        Self { lengths, discounts, known: 0, discounting, is_short: false }
    }

    /// The lengths in data packets, newest first; the first is the current interval.
    pub fn lengths(&self) -> &[f64] {
        &self.lengths[..self.known]
    }

    /// The first loss event. The interval before it counts as `first` packets.
    pub fn start(&mut self, first: u32) {
        *self = Self::new(self.discounting);
        (self.lengths[0], self.lengths[1]) = (1.0, f64::from(first.max(1)));
        self.known = 2;
    }

    /// A new loss event. The current interval ends with `length` packets.
    pub fn begin(&mut self, length: f64) {
        self.set_current(length);
        let general = self.general();
        for discount in &mut self.discounts[1..] {
            *discount *= general;
        }
        self.lengths.rotate_right(1);
        self.discounts.rotate_right(1);
        (self.lengths[0], self.discounts[0]) = (1.0, 1.0);
        self.known = (self.known + 1).min(NINTERVAL + 1);
    }

    /// Sets the length of the current interval.
    pub fn set_current(&mut self, length: f64) {
        self.set(0, length);
    }

    //= 4828-3-9
    /// Sets whether the current interval is short and must not count yet (RFC 4828 section 3).
    pub fn set_short(&mut self, is_short: bool) {
        self.is_short = is_short;
    }

    /// Sets the length of interval `index`, counted from the current one.
    pub fn set(&mut self, index: usize, length: f64) {
        if index < self.known {
            self.lengths[index] = length.max(1.0);
        }
    }

    /// Interval `index` did not begin with a loss event after all: merges it with the one before.
    pub fn join(&mut self, index: usize) {
        if index + 1 >= self.known {
            return;
        }
        let joined = self.lengths[index] + self.lengths[index + 1];
        self.lengths.copy_within(index + 1.., index);
        self.discounts.copy_within(index + 1.., index);
        self.lengths[index] = joined;
        self.known -= 1;
        if self.known < 2 {
            self.known = 0;
        }
    }

    /// Number of closed intervals in the average.
    fn closed(&self) -> usize {
        self.known.saturating_sub(1).min(NINTERVAL)
    }

    //= 5348-5.5-1
    /// The general discount factor DF. Less than 1 while the current interval is more than twice
    /// the average of the closed ones.
    fn general(&self) -> f64 {
        let (total, weight) = self.closed_sums();
        let (current, mean) = (self.lengths[0], total / weight);
        if self.discounting && !self.is_short && weight > 0.0 && current > 2.0 * mean {
            (2.0 * mean / current).max(THRESHOLD)
        } else {
            1.0
        }
    }

    /// Weighted sum of the closed intervals' lengths, and the sum of the weights.
    fn closed_sums(&self) -> (f64, f64) {
        let mut sums = (0.0, 0.0);
        for (i, weight) in WEIGHTS.iter().enumerate().take(self.closed()) {
            let weight = weight * self.discounts[i + 1];
            sums.0 += self.lengths[i + 1] * weight;
            sums.1 += weight;
        }
        sums
    }

    /// The loss event rate p. It is 0 before any loss, and otherwise greater than 0 and at most 1.
    pub fn rate(&self) -> f64 {
        if self.known < 2 {
            return 0.0;
        }
        let (closed_total, closed_weights) = self.closed_sums();
        let without_current = closed_weights / closed_total;
        if self.is_short {
            return without_current.min(1.0);
        }
        let general = self.general();
        let (mut total, mut weights) = (self.lengths[0] * WEIGHTS[0], WEIGHTS[0]);
        for (i, weight) in WEIGHTS.iter().enumerate().take(self.closed()).skip(1) {
            let weight = weight * self.discounts[i] * general;
            total += self.lengths[i] * weight;
            weights += weight;
        }
        (weights / total).min(without_current).min(1.0)
    }
}
