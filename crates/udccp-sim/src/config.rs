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

/// One end's access link. It is the same in both directions, but for its `variation`: that is the
/// timing noise of the host, in what it sends (see
/// [`RateDelay::with_jitter`](udccp_link::RateDelay::with_jitter)).
pub type AccessConfig = LinkConfig;

/// One direction of a link between two routers.
pub type BottleneckConfig = LinkConfig;

/// A link between two neighbouring routers, each way; its directions need not be equal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HopConfig {
    /// From left to right: in a dumbbell, from the senders to the receivers.
    pub forward: BottleneckConfig,
    /// From right to left.
    pub reverse: BottleneckConfig,
}

/// A dumbbell is one hop: senders on the left, receivers on the right, one bottleneck each way.
pub type DumbbellConfig = HopConfig;

impl HopConfig {
    /// The same rate and queue in both directions, and the round-trip time split over them (an odd
    /// nanosecond goes forward). Access delays come on top of `rtt`.
    pub fn symmetric(rate: DataRate, rtt: Duration, limit: QueueLimit) -> Self {
        let half = rtt / 2;
        let forward =
            LinkConfig { rate: Some(rate), delay: rtt - half, limit, ..LinkConfig::default() };
        Self { reverse: LinkConfig { delay: half, ..forward.clone() }, forward }
    }
}

/// One flow: two hosts, each with its access link, and what the sender has to say.
pub struct PairConfig {
    /// Name of the flow; differs from all others of the run.
    pub name: String,
    /// The active side: it is opened at the start, and fed by the source.
    pub sender: Box<dyn Transport>,
    /// The passive side.
    pub receiver: Box<dyn Transport>,
    /// Application data.
    pub source: Box<dyn Source>,
    /// Link between the sender and its router. Pairs with the same links share them.
    pub sender_access: Arc<AccessConfig>,
    /// Link between the receiver's router and the receiver.
    pub receiver_access: Arc<AccessConfig>,
    /// Number of the sender's router, counted from 0 at the left; `None` is the first. A flow that
    /// enters to the right of where it leaves travels from right to left.
    pub enters: Option<usize>,
    /// Number of the receiver's router; `None` is the last.
    pub leaves: Option<usize>,
    /// When the sender opens, since the start of the run.
    pub start: Duration,
    /// The start is later by a time drawn uniformly from `0..start_jitter`: a fixed phase alone
    /// can move a fairness index by 0.1.
    pub start_jitter: Duration,
    /// When the source ends and the sender closes, since the start of the run; `None` never.
    pub stop: Option<Duration>,
}

impl PairConfig {
    /// A flow that starts at once and never stops, over access links that cost no time.
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

/// How long to run, what to measure, and what to watch for.
#[derive(Debug)]
pub struct RunConfig<'a> {
    /// Length of the run. What is due at this instant no longer happens.
    pub duration: Duration,
    /// The measured window `from..to`, since the start of the run; `to` itself is outside.
    pub measure: Range<Duration>,
    /// Length of an interval of the series.
    pub interval: Duration,
    /// Where all chance of the run comes from (start phases, loss).
    pub seed: Seed,
    /// Check the invariants at every step (slower by a third or so).
    pub check: bool,
    /// Where packets are written to.
    pub capture: Option<Capture<'a>>,
    /// Another thread sets it to end the run without a result ([`crate::SimError::Stopped`]); the
    /// run looks at it every few thousand events.
    pub stop: Option<&'a AtomicBool>,
}

impl RunConfig<'_> {
    /// A run that measures all of its time, in intervals of a second.
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
