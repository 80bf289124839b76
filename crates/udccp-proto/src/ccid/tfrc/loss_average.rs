//! Averages loss intervals into the loss event rate (RFC 5348 sections 5.4 and 5.5).

use super::NINTERVAL;

/// w_0 to w_(n-1).
const WEIGHTS: [f64; NINTERVAL] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];
/// The smallest fraction of an old interval's weight that one discount leaves.
const THRESHOLD: f64 = 0.25;

/// The last loss intervals I_0 (the current one) to I_n, with their discount factors.
#[derive(Clone, Debug)]
pub struct LossAverage {
    /// Absent before the first loss: many connections have none, in one direction at least.
    past: Option<Box<Past>>,
    /// Whether old intervals lose weight during a long interval.
    discounting: bool,
    /// Whether the current interval is excluded because it is short (RFC 4828 section 3).
    is_short: bool,
}

/// All intervals, newest first.
#[derive(Clone, Debug)]
struct Past {
    /// Lengths in data packets.
    lengths: [f64; NINTERVAL + 1],
    /// DF_i.
    discounts: [f64; NINTERVAL + 1],
    /// Number of known intervals, including the current one.
    known: usize,
}

impl Default for Past {
    fn default() -> Self {
        Self { lengths: [0.0; NINTERVAL + 1], discounts: [1.0; NINTERVAL + 1], known: 0 }
    }
}

impl LossAverage {
    //= 5348-5.5-2
    /// Creates an average without losses. `discounting` turns history discounting on (section 5.5).
    pub fn new(discounting: bool) -> Self {
        Self { past: None, discounting, is_short: false }
    }

    /// The lengths in data packets, newest first; the first is the current interval.
    pub fn lengths(&self) -> &[f64] {
        self.past.as_ref().map_or(&[], |past| &past.lengths[..past.known])
    }

    /// The first loss event. The interval before it counts as `first` packets.
    pub fn start(&mut self, first: u32) {
        let past = self.past.get_or_insert_default();
        **past = Past { known: 2, ..Past::default() };
        (past.lengths[0], past.lengths[1]) = (1.0, f64::from(first.max(1)));
        self.is_short = false;
    }

    /// Forgets all loss events.
    pub(crate) fn clear(&mut self) {
        (self.past, self.is_short) = (None, false);
    }

    /// A new loss event. The current interval ends with `length` packets.
    pub fn begin(&mut self, length: f64) {
        self.set_current(length);
        let discounts_now = self.discounts_now();
        let past = self.past.get_or_insert_default();
        let general = past.general(past.lengths[0], discounts_now);
        for discount in &mut past.discounts[1..] {
            *discount *= general;
        }
        past.lengths.rotate_right(1);
        past.discounts.rotate_right(1);
        (past.lengths[0], past.discounts[0]) = (1.0, 1.0);
        past.known = (past.known + 1).min(NINTERVAL + 1);
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
        if let Some(past) = self.past.as_mut().filter(|past| index < past.known) {
            past.lengths[index] = length.max(1.0);
        }
    }

    /// Interval `index` did not begin with a loss event after all: merges it with the one before.
    pub fn join(&mut self, index: usize) {
        let Some(past) = self.past.as_mut().filter(|past| index + 1 < past.known) else { return };
        let joined = past.lengths[index] + past.lengths[index + 1];
        past.lengths.copy_within(index + 1.., index);
        past.discounts.copy_within(index + 1.., index);
        past.lengths[index] = joined;
        past.known -= 1;
        if past.known < 2 {
            past.known = 0;
        }
    }

    /// Whether a long current interval takes weight from the old ones.
    const fn discounts_now(&self) -> bool {
        self.discounting && !self.is_short
    }

    /// The loss event rate p. It is 0 before any loss, and otherwise greater than 0 and at most 1.
    pub fn rate(&self) -> f64 {
        self.past.as_ref().map_or(0.0, |past| self.rate_of(past, past.lengths[0]))
    }

    /// As [`Self::rate`], if the length of the current interval were `length`.
    pub(super) fn rate_at(&self, length: f64) -> f64 {
        self.past.as_ref().map_or(0.0, |past| self.rate_of(past, length.max(1.0)))
    }

    fn rate_of(&self, past: &Past, current: f64) -> f64 {
        if past.known < 2 {
            return 0.0;
        }
        let (closed_total, closed_weights) = past.closed_sums();
        let without_current = closed_weights / closed_total;
        if self.is_short {
            return without_current.min(1.0);
        }
        let general = past.general(current, self.discounts_now());
        let (mut total, mut weights) = (current * WEIGHTS[0], WEIGHTS[0]);
        for (i, weight) in WEIGHTS.iter().enumerate().take(past.closed()).skip(1) {
            let weight = weight * past.discounts[i] * general;
            total += past.lengths[i] * weight;
            weights += weight;
        }
        (weights / total).min(without_current).min(1.0)
    }
}

impl Past {
    /// Number of closed intervals in the average.
    fn closed(&self) -> usize {
        self.known.saturating_sub(1).min(NINTERVAL)
    }

    //= 5348-5.5-1
    /// The general discount factor DF. Less than 1 while the `current` interval is more than twice
    /// the average of the closed ones, and `discounts`.
    fn general(&self, current: f64, discounts: bool) -> f64 {
        let (total, weight) = self.closed_sums();
        let mean = total / weight;
        if discounts && weight > 0.0 && current > 2.0 * mean {
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
}
