//! Which packets a link loses.

use std::sync::Arc;

use udccp_base::{Duration, Instant};

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
