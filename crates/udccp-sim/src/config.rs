//! The configuration of a simulation: links, hosts, flows, times.

use core::fmt;
use core::ops::Range;
use core::sync::atomic::AtomicBool;
use std::sync::Arc;

use udccp_base::{DataRate, Duration, Seed, Transport};
use udccp_link::{LinkConfig, QueueLimit};

use crate::capture::Capture;
use crate::source::Source;
use crate::transfers::Absent;

/// The access link of one host. Both directions are the same, except for `variation`: it applies
/// to the packets that the host sends, as the host's timing noise (see
/// [`RateDelay::with_jitter`](udccp_link::RateDelay::with_jitter)).
pub type AccessConfig = LinkConfig;

/// One direction of a link between two routers.
pub type BottleneckConfig = LinkConfig;

/// A link between two neighbouring routers, in both directions, which may differ.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HopConfig {
    /// From left to right: in a dumbbell, from the senders to the receivers.
    pub forward: BottleneckConfig,
    /// From right to left.
    pub reverse: BottleneckConfig,
}

/// A dumbbell has one hop: senders on the left, receivers on the right, a bottleneck in each
/// direction.
pub type DumbbellConfig = HopConfig;

impl HopConfig {
    /// The same rate and queue in both directions, with the round-trip time divided between them
    /// (an odd nanosecond goes forward). Access delays are added to `rtt`.
    pub fn symmetric(rate: DataRate, rtt: Duration, limit: QueueLimit) -> Self {
        let half = rtt / 2;
        let forward =
            LinkConfig { rate: Some(rate), delay: rtt - half, limit, ..LinkConfig::default() };
        Self { reverse: LinkConfig { delay: half, ..forward.clone() }, forward }
    }
}

/// One flow: two hosts, each with its access link, and the application data of the sender.
pub struct PairConfig {
    /// Name of the flow, unique in the run.
    pub name: String,
    /// The active side, which is opened at the start and fed by the source.
    pub sender: Box<dyn Transport>,
    /// The passive side.
    pub receiver: Box<dyn Transport>,
    /// The source of application data.
    pub source: Box<dyn Source>,
    /// Link between the sender and its router. Pairs with the same links can share them.
    pub sender_access: Arc<AccessConfig>,
    /// Link between the receiver's router and the receiver.
    pub receiver_access: Arc<AccessConfig>,
    /// Number of the sender's router, from 0 at the left; `None`: the first. A flow whose `enters`
    /// is to the right of its `leaves` runs from right to left.
    pub enters: Option<usize>,
    /// Number of the receiver's router; `None`: the last.
    pub leaves: Option<usize>,
    /// When the sender opens, since the start of the run.
    pub start: Duration,
    /// The start is delayed by a time with uniform distribution in `0..start_jitter`. With a fixed
    /// phase instead, a fairness index can change by 0.1.
    pub start_jitter: Duration,
    /// When the source ends and the sender closes, since the start of the run; `None`: never.
    pub stop: Option<Duration>,
}

impl PairConfig {
    /// A flow that starts at once and does not stop, over access links without rate and delay.
    pub fn new(
        name: impl Into<String>,
        sender: Box<dyn Transport>,
        receiver: Box<dyn Transport>,
        source: Box<dyn Source>,
    ) -> Self {
        Self {
            name: name.into(),
            sender,
            receiver,
            source,
            sender_access: Arc::default(),
            receiver_access: Arc::default(),
            enters: None,
            leaves: None,
            start: Duration::ZERO,
            start_jitter: Duration::ZERO,
            stop: None,
        }
    }

    /// As [`Self::new`], for a pair whose transports are made when it starts, by the
    /// [`PairMaker`](crate::PairMaker) of its flow.
    pub fn later(name: impl Into<String>, source: Box<dyn Source>) -> Self {
        Self::new(name, Box::new(Absent::default()), Box::new(Absent::default()), source)
    }
}

impl fmt::Debug for PairConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PairConfig")
            .field("name", &self.name)
            .field("source", &self.source)
            .field("start", &self.start)
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}

/// How long to run, and what to measure and check.
#[derive(Debug)]
pub struct RunConfig<'a> {
    /// Length of the run. Events at exactly this time do not happen.
    pub duration: Duration,
    /// The measured window `from..to`, since the start of the run, without `to` itself.
    pub measure: Range<Duration>,
    /// Length of an interval of the series.
    pub interval: Duration,
    /// Seed of all random numbers of the run (start phases, loss).
    pub seed: Seed,
    /// Check the invariants at every step (about a third slower).
    pub check: bool,
    /// Where to write captures; `None`: nowhere.
    pub capture: Option<Capture<'a>>,
    /// Set by another thread to end the run without a result ([`crate::SimError::Stopped`]). The
    /// run checks it every few thousand events.
    pub stop: Option<&'a AtomicBool>,
}

impl RunConfig<'_> {
    /// A run that measures all the time, with intervals of one second.
    pub fn new(duration: Duration, seed: Seed) -> Self {
        Self {
            duration,
            measure: Duration::ZERO..duration,
            interval: Duration::from_secs(1),
            seed,
            check: cfg!(debug_assertions),
            capture: None,
            stop: None,
        }
    }
}
