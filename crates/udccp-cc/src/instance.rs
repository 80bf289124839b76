//! Stores a window algorithm without a box if it is NewReno, which most connections use.

use core::fmt;
use core::ops::{Deref, DerefMut};

use udccp_base::DataRate;

use crate::algorithm::Algorithm;
use crate::control::{AckSample, CongestionControl};
use crate::newreno::NewReno;

/// A window algorithm of one sender. NewReno, the default, needs no allocation.
#[derive(Clone)]
pub struct Instance(Held);

#[derive(Clone)]
enum Held {
    NewReno(NewReno),
    Other(Box<dyn CongestionControl>),
}

/// Calls a method of the algorithm.
macro_rules! of {
    ($held:expr, $cc:ident => $call:expr) => {
        match $held {
            Held::NewReno($cc) => $call,
            Held::Other($cc) => $call,
        }
    };
}

impl Instance {
    /// Creates an instance with an initial window of `initial_cwnd` packets (at least 1).
    pub fn new(algorithm: &Algorithm, initial_cwnd: u32) -> Self {
        Self(match algorithm {
            Algorithm::NewReno { cut, after_cut } => {
                Held::NewReno(NewReno::new(initial_cwnd, *cut, *after_cut))
            }
            other => Held::Other(other.build(initial_cwnd)),
        })
    }
}

/// The methods of [`CongestionControl`] that senders call for each packet, without dynamic dispatch
/// for NewReno.
impl Instance {
    /// The congestion window in packets.
    #[inline]
    pub fn cwnd(&self) -> u32 {
        of!(&self.0, cc => cc.cwnd())
    }

    /// Whether the window is below the threshold.
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        of!(&self.0, cc => cc.in_slow_start())
    }

    /// New packets were acknowledged.
    #[inline]
    pub fn on_ack(&mut self, ack: &AckSample) {
        match &mut self.0 {
            Held::NewReno(newreno) => newreno.on_ack(ack),
            // With the clone, inlined code does not write the sample to memory for NewReno.
            Held::Other(other) => other.on_ack(&ack.clone()),
        }
    }

    /// The rate at which the algorithm wants packets paced.
    #[inline]
    pub fn pacing_rate(&self) -> Option<DataRate> {
        of!(&self.0, cc => cc.pacing_rate())
    }
}

impl Deref for Instance {
    type Target = dyn CongestionControl;

    #[inline]
    fn deref(&self) -> &Self::Target {
        match &self.0 {
            Held::NewReno(newreno) => newreno,
            Held::Other(other) => other.as_ref(),
        }
    }
}

impl DerefMut for Instance {
    #[inline]
    fn deref_mut(&mut self) -> &mut Self::Target {
        match &mut self.0 {
            Held::NewReno(newreno) => newreno,
            Held::Other(other) => other.as_mut(),
        }
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}
