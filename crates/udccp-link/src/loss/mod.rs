//! Random, regular and recorded loss.

use std::sync::Arc;

use udccp_base::{Duration, Instant, Rng};

use crate::change::Change;
use crate::filter::{Rule, Verdict};
use crate::stats::DropReason;

/// Which packets a link loses.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum LossConfig {
    /// None.
    #[default]
    None,
    /// Each with this probability (0 to 1), independently (Bernoulli loss).
    Random(f64),
    /// In bursts.
    GilbertElliott(GilbertElliott),
    /// Every n-th packet: number n, 2 n, 3 n...
    EveryNth(u64),
    /// The first packet at or after every multiple of this time. Only one packet is lost even if
    /// several multiples have passed since the last.
    Every(Duration),
    /// The first packet at or after each of these times (ascending).
    At(Arc<[Instant]>),
    /// As recorded: one entry per packet, `true` is lost. It repeats.
    Flags(Arc<[bool]>),
    /// The packets of these numbers, counted from 1 (ascending).
    Numbers(Arc<[u64]>),
}

/// The model with two states, good and bad (E. N. Gilbert, "Capacity of a Burst-Noise Channel",
/// 1960; E. O. Elliott, "Estimates of Error Rates for Codes on Burst-Noise Channels", 1963), with
/// the parameter names of netem and most others. The state when a packet arrives determines its
/// chance of loss; after that the state may change. The first packet finds the good state.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GilbertElliott {
    /// Probability of a change from good to bad, 0 to 1.
    pub p: f64,
    /// Probability of a change from bad to good, 0 to 1.
    pub r: f64,
    /// Probability that a packet passes in the bad state, 0 to 1.
    pub h: f64,
    /// Probability that a packet passes in the good state, 0 to 1.
    pub k: f64,
}

impl GilbertElliott {
    /// The model with bursts of `burst` packets (at least 1) on average and a share `loss` (0 to
    /// below 1) of packets lost. The bad state loses all packets and the good state none: `r = 1 /
    /// burst`, `p = r loss / (1 - loss)`. `None` if `p` would exceed 1.
    pub fn with_bursts(loss: f64, burst: f64) -> Option<Self> {
        let r = 1.0 / burst;
        let p = r * loss / (1.0 - loss);
        let exists = burst >= 1.0 && (0.0..1.0).contains(&loss) && p <= 1.0;
        exists.then_some(Self { p, r, h: 0.0, k: 1.0 })
    }

    /// The share of packets lost in the long run (G. Hasslinger and O. Hohlfeld, "The
    /// Gilbert-Elliott Model for Packet Loss in Real Time Services on the Internet", 2008, eq. 3).
    pub fn loss(&self) -> f64 {
        let Self { p, r, h, k } = *self;
        if p + r <= 0.0 {
            // The model never leaves the good state.
            return 1.0 - k;
        }
        (1.0 - k) * r / (p + r) + (1.0 - h) * p / (p + r)
    }
}

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

#[cfg(test)]
mod tests;
