//! The state of a loss model.

use udccp_base::{Duration, Instant, Rng};

use super::config::LossConfig;
use crate::change::Change;
use crate::filter::{Rule, Verdict};
use crate::stats::DropReason;

/// A loss model and its state.
#[derive(Debug)]
pub struct Loss {
    config: LossConfig,
    rng: Rng,
    is_bad: bool,
    /// Packets seen so far, or entries of a list used so far.
    seen: u64,
    used: usize,
    next: Instant,
}

impl Loss {
    /// Random numbers come from `rng`, which nothing else should use.
    pub fn new(config: LossConfig, rng: Rng) -> Self {
        let mut loss = Self {
            config: LossConfig::None,
            rng,
            is_bad: false,
            seen: 0,
            used: 0,
            next: Instant::ZERO,
        };
        loss.become_another(Instant::ZERO, config);
        loss
    }

    fn become_another(&mut self, now: Instant, config: LossConfig) {
        self.config = config;
        (self.is_bad, self.seen, self.used) = (false, 0, 0);
        if let LossConfig::Every(every) = self.config {
            self.next = next_multiple(now, every);
        }
        if let LossConfig::At(times) = &self.config {
            self.used = times.partition_point(|at| *at < now);
        }
    }

    fn loses(&mut self, now: Instant) -> bool {
        self.seen += 1;
        match &self.config {
            LossConfig::None => false,
            LossConfig::Random(probability) => self.rng.chance(*probability),
            LossConfig::GilbertElliott(model) => {
                let (arrives, leaves) =
                    if self.is_bad { (model.h, model.r) } else { (model.k, model.p) };
                let lost = !self.rng.chance(arrives);
                self.is_bad ^= self.rng.chance(leaves);
                lost
            }
            LossConfig::EveryNth(n) => *n > 0 && self.seen.is_multiple_of(*n),
            LossConfig::Every(every) => {
                let lost = now >= self.next;
                if lost {
                    self.next = next_multiple(now, *every);
                }
                lost
            }
            LossConfig::At(times) => {
                let due = times[self.used..].partition_point(|at| *at <= now);
                self.used += due;
                due > 0
            }
            LossConfig::Flags(flags) => {
                let lost = flags.get(self.used).is_some_and(|lost| *lost);
                self.used = (self.used + 1) % flags.len().max(1);
                lost
            }
            LossConfig::Numbers(numbers) => {
                let lost = numbers.get(self.used) == Some(&self.seen);
                self.used += usize::from(lost);
                lost
            }
        }
    }
}

/// The first multiple of `every` after `now`.
fn next_multiple(now: Instant, every: Duration) -> Instant {
    let step = every.as_nanos().max(1);
    Instant::from_nanos((now.as_nanos() / step).saturating_add(1).saturating_mul(step))
}

impl Rule for Loss {
    fn judge(&mut self, now: Instant, _len: u32) -> Verdict {
        if self.loses(now) { Verdict::Drop(DropReason::RandomLoss) } else { Verdict::Pass }
    }

    fn change(&mut self, now: Instant, change: &Change) {
        if let Change::Loss(config) = change {
            self.become_another(now, config.clone());
        }
    }
}
