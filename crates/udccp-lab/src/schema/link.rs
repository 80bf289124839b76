//! One link as a file describes it: an access link, a bottleneck, a hop.

use serde::Serialize;
use udccp_base::{DataRate, Duration};
use udccp_sim::{LinkConfig, LossConfig, Variation};

use super::choice::words;
use super::quantity::{Limit, Percent};
use crate::diagnostic::Diagnostic;
use crate::document::{Faults, Node, Reader};

words! {
    /// Queue disciplines.
    Queue, "queue":
    /// Drops what arrives while the queue is full.
    DropTail = "drop-tail",
}

/// How long a link takes, besides serialisation and waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Propagation {
    /// Of this link, one way.
    Delay(Duration),
    /// Of the whole path from host to host, there and back; what the access links leave of it is
    /// split equally between the directions of this link.
    Rtt(Duration),
}

/// A link. What is said of a bottleneck or an access link holds for both of its directions, but
/// for `loss`, which is that of the forward direction, and `jitter`, which is the host's.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Its rate.
    pub rate: DataRate,
    /// Its propagation delay.
    #[serde(flatten)]
    pub propagation: Propagation,
    /// Its queue discipline.
    pub queue: Queue,
    /// The limit of the queue.
    pub limit: Limit,
    /// Packets lost by chance, independently of each other.
    pub loss: Percent,
    /// Timing noise: each packet reaches the far end later by a time drawn uniformly from zero to
    /// this, in order.
    pub jitter: Duration,
}

impl Link {
    /// Keys of a bottleneck that say something of its forward direction alone.
    pub(super) const FORWARD_ONLY: [&str; 1] = ["loss"];

    /// An access link: `delay` is that of the link, nothing limits its queue unless said.
    pub fn access(node: &Node, what: &str, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, what, faults)?;
        let rate = reader.need("rate");
        let delay = reader.or("delay", Duration::ZERO);
        let limit = reader.or("limit", Limit::Unlimited);
        let jitter = reader.or("jitter", Duration::ZERO);
        reader.finish();
        let propagation = Propagation::Delay(delay);
        let (queue, loss) = (Queue::DropTail, Percent(0.0));
        Some(Self { rate: rate?, propagation, queue, limit, loss, jitter })
    }

    /// A link between two routers: `rtt` (of the whole path) or `delay` (of the link), and a limit.
    pub fn bottleneck(node: &Node, what: &str, faults: &Faults) -> Option<Self> {
        let mut reader = Reader::new(node, what, faults)?;
        let rate = reader.need("rate");
        let propagation = propagation(&mut reader, node, what);
        let queue = reader.or("queue", Queue::DropTail);
        let limit = reader.need("limit");
        let loss = reader.or("loss", Percent(0.0));
        reader.finish();
        let (propagation, jitter) = (propagation?, Duration::ZERO);
        Some(Self { rate: rate?, propagation, queue, limit: limit?, loss, jitter })
    }

    /// One-way propagation delay of this link, in a path whose other links take `others` one way.
    pub fn delay(&self, others: Duration) -> Duration {
        match self.propagation {
            Propagation::Delay(delay) => delay,
            Propagation::Rtt(rtt) => (rtt / 2).saturating_sub(others),
        }
    }

    /// As an access link of the simulator, on a path of round-trip time `rtt`.
    pub fn access_config(&self, rtt: Duration) -> LinkConfig {
        self.config(Duration::ZERO, rtt)
    }

    /// As a link between routers of the simulator, on a path of round-trip time `rtt` whose other
    /// links take `others` one way.
    pub fn bottleneck_config(&self, others: Duration, rtt: Duration) -> LinkConfig {
        self.config(others, rtt)
    }

    fn config(&self, others: Duration, rtt: Duration) -> LinkConfig {
        LinkConfig {
            rate: Some(self.rate),
            delay: self.delay(others),
            limit: self.limit.resolve(self.rate, rtt),
            loss: match self.loss.0 {
                0.0 => LossConfig::None,
                percent => LossConfig::Random(percent / 100.0),
            },
            variation: Variation::Uniform(self.jitter),
            ..LinkConfig::default()
        }
    }
}

fn propagation(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Propagation> {
    let faults = reader.faults();
    match (node.get("delay").is_some(), node.get("rtt").is_some()) {
        (true, true) => {
            let fault = format!("{what} has both `delay` and `rtt`");
            let hint = "`delay` is of this link, `rtt` of the whole path: keep one";
            faults.push(Diagnostic::at(&node.get("rtt")?.span, fault).hint(hint));
            None
        }
        (true, false) => {
            reader.raw("rtt");
            reader.need("delay").map(Propagation::Delay)
        }
        _ => {
            let rtt = reader.need("rtt").map(Propagation::Rtt);
            reader.raw("delay");
            rtt
        }
    }
}
