//! A link as described in a file: an access link, a bottleneck, a hop.

use core::fmt::Write as _;

use serde::{Serialize, Serializer};
use sha2::{Digest, Sha256};
use udccp_base::{DataRate, DataSize, Duration};
use udccp_sim::{Gather, LinkConfig, Reorder, Variation};

use super::choice::choose;
use super::flow::SMALLEST_PACKET_BYTES;
use super::quantity::{Limit, Percent};
use super::{loss, queue, records};
use crate::diagnostic::Diagnostic;
use crate::document::{DiagnosticSink, Node, Reader};

/// How propagation delay is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Propagation {
    /// Of this link in one direction.
    Delay(Duration),
    /// Of the whole path from host to host and back. The rest after subtracting the access links is
    /// divided equally between the directions of this link.
    Rtt(Duration),
}

/// The distribution of a packet's additional delay.
#[derive(Clone, Copy)]
enum Distribution {
    Uniform,
    Normal,
    Trace,
}

const DISTRIBUTIONS: &[(&str, Distribution)] = &[
    ("uniform", Distribution::Uniform),
    ("normal", Distribution::Normal),
    ("trace", Distribution::Trace),
];

/// A link. The description of a link between routers applies to both directions, except for random
/// effects (`FORWARD_ONLY`). That of an access link applies to both, except for the variation of
/// the delay, which is that of the sending host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// Its rate; for a link with a trace, the mean rate of that.
    pub rate: DataRate,
    /// Its propagation delay.
    #[serde(flatten)]
    pub propagation: Propagation,
    /// The limit of its queue.
    pub limit: Limit,
    /// Everything else. Rate, delay and limit in it are not used.
    #[serde(serialize_with = "as_text")]
    pub config: LinkConfig,
}

/// As a text that differs between different links, because it is part of the key of a run.
fn as_text<S: Serializer>(config: &LinkConfig, s: S) -> Result<S::Ok, S::Error> {
    shortened(&format!("{config:?}"), s)
}

/// The text, or its hash if it is long (it may contain thousands of packets).
pub(super) fn shortened<S: Serializer>(text: &str, s: S) -> Result<S::Ok, S::Error> {
    if text.len() <= 1_000 {
        return s.serialize_str(text);
    }
    let mut short = String::from("sha256 ");
    for byte in Sha256::digest(text.as_bytes()) {
        let _ = write!(short, "{byte:02x}");
    }
    s.serialize_str(&short)
}

impl Link {
    /// Keys of a link between routers that apply only to its forward direction.
    pub(super) const FORWARD_ONLY: [&str; 6] =
        ["loss", "jitter", "delay_distribution", "reorder", "duplicate", "corrupt"];

    /// An access link: `delay` is that of the link, and its queue is unlimited by default.
    pub fn access(node: &Node, what: &str, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, what, errors)?;
        let rate = rate(&mut reader, what);
        let delay = reader.or("delay", Duration::ZERO);
        let limit = reader.or("limit", Limit::Unlimited);
        let config = config(&mut reader, rate);
        reader.finish();
        let propagation = Propagation::Delay(delay);
        Some(Self { rate: rate?, propagation, limit, config: config? })
    }

    /// A link between two routers: `rtt` (of the whole path) or `delay` (of the link), and a limit.
    pub fn bottleneck(node: &Node, what: &str, errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, what, errors)?;
        let rate = rate(&mut reader, what);
        let propagation = propagation(&mut reader, node, what);
        let limit = reader.need("limit");
        let config = config(&mut reader, rate);
        reader.finish();
        Some(Self { rate: rate?, propagation: propagation?, limit: limit?, config: config? })
    }

    /// One-way propagation delay of this link, on a path whose other links take `others` one way.
    pub fn delay(&self, others: Duration) -> Duration {
        match self.propagation {
            Propagation::Delay(delay) => delay,
            Propagation::Rtt(rtt) => (rtt / 2).saturating_sub(others),
        }
    }

    /// The configuration of the simulator's access link, on a path with round-trip time `rtt`.
    pub fn access_config(&self, rtt: Duration) -> LinkConfig {
        self.bottleneck_config(Duration::ZERO, rtt)
    }

    /// The configuration of the simulator's link between routers, on a path with round-trip time
    /// `rtt` whose other links take `others` one way.
    pub fn bottleneck_config(&self, others: Duration, rtt: Duration) -> LinkConfig {
        LinkConfig {
            rate: Some(self.rate),
            delay: self.delay(others),
            limit: self.limit.resolve(self.rate, rtt),
            ..self.config.clone()
        }
    }
}

/// The rate, or the mean rate of a trace.
fn rate(reader: &mut Reader<'_>, what: &str) -> Option<DataRate> {
    reader.knows(&["rate"]);
    let Some(trace) = reader.raw("trace") else { return reader.need("rate") };
    let errors = reader.errors();
    if let Some(rate) = reader.raw("rate") {
        let error = Diagnostic::at(&rate.span, format!("{what} has both `rate` and `trace`"));
        errors.push(error.hint("a trace says when the link transmits: keep one"));
        return None;
    }
    // A file that cannot be read is reported where the trace is read.
    let quiet = DiagnosticSink::default();
    records::opportunities(trace, &quiet).map(|trace| trace.mean_rate())
}

/// All keys that every link has, except rate, delay and limit.
fn config(reader: &mut Reader<'_>, rate: Option<DataRate>) -> Option<LinkConfig> {
    let errors = reader.errors();
    let trace = reader.raw("trace").map(|n| records::opportunities(n, errors));
    // Without a rate there is an error already; the rest is checked nevertheless.
    let rate = rate.unwrap_or(DataRate::from_mbps(1));
    let queue = reader.raw("queue").map(|n| queue::read(n, rate, errors));
    let loss = reader.raw("loss").map(|n| loss::read(n, errors));
    let variation = variation(reader);
    let reorder = reader.raw("reorder").map(|n| reorder(n, errors));
    let share = |percent: Percent| percent.0 / 100.0;
    let duplicate = share(reader.or("duplicate", Percent(0.0)));
    let corrupt = share(reader.or("corrupt", Percent(0.0)));
    let mtu = mtu(reader);
    let bucket = reader.want::<DataSize>("token_bucket");
    let token_bucket = bucket.map(|b| u32::try_from(b.bytes()).unwrap_or(u32::MAX));
    let mut positive = |key| reader.want(key).filter(|time: &Duration| !time.is_zero());
    let gather = Gather {
        delay_tick: positive("delay_tick"),
        interrupt_moderation: positive("interrupt_moderation"),
    };
    let (variation, free_order) = variation?;
    let config = LinkConfig {
        trace: match trace {
            Some(trace) => Some(trace?),
            None => None,
        },
        queue: queue.unwrap_or(Some(udccp_sim::QueueConfig::DropTail))?,
        loss: loss.unwrap_or(Some(udccp_sim::LossConfig::None))?,
        variation,
        free_order,
        reorder: match reorder {
            Some(reorder) => Some(reorder?),
            None => None,
        },
        duplicate,
        corrupt,
        mtu,
        token_bucket,
        gather,
        ..LinkConfig::default()
    };
    let conditional = ["token_bucket", "delay_tick", "interrupt_moderation"];
    if let Err(why) = config.check()
        && let Some(key) = conditional.iter().find_map(|key| reader.raw(key))
    {
        errors.push(Diagnostic::at(&key.span, why));
    }
    Some(config)
}

/// Acknowledgements and control packets have no `packet` of their own, but must fit too.
fn mtu(reader: &mut Reader<'_>) -> Option<u32> {
    let mtu = reader.want::<DataSize>("mtu")?;
    if mtu.bytes() < SMALLEST_PACKET_BYTES {
        let span = reader.raw("mtu").map_or(reader.span(), |node| &node.span);
        let error = Diagnostic::at(span, format!("an MTU of {mtu} is too small for any flow"));
        let hint = format!("write {SMALLEST_PACKET_BYTES} B or more, or leave `mtu` out");
        reader.errors().push(error.hint(hint));
        return None;
    }
    Some(u32::try_from(mtu.bytes()).unwrap_or(u32::MAX))
}

/// `jitter`, or `delay_distribution`; and whether packets may overtake each other.
fn variation(reader: &mut Reader<'_>) -> Option<(Variation, bool)> {
    let errors = reader.errors();
    let jitter = reader.raw("jitter");
    let uniform = reader.or("jitter", Duration::ZERO);
    let Some(node) = reader.raw("delay_distribution") else {
        let none = uniform.is_zero();
        return Some((if none { Variation::None } else { Variation::Uniform(uniform) }, false));
    };
    if let Some(jitter) = jitter {
        let error = Diagnostic::at(&jitter.span, "`jitter` contradicts the delay distribution");
        errors.push(error.hint("`jitter` is the distribution \"uniform\": keep one"));
        return None;
    }
    let mut reader = Reader::new(node, "delay_distribution", errors)?;
    let what = "distribution of delays";
    let kind = choose(reader.node("kind")?, errors, what, DISTRIBUTIONS)?;
    let variation = match kind {
        Distribution::Uniform => reader.need("below").map(Variation::Uniform),
        Distribution::Normal => reader.need("deviation").map(Variation::Normal),
        Distribution::Trace => {
            let file = reader.node("file");
            file.and_then(|n| records::delays(n, errors)).map(Variation::Trace)
        }
    };
    let in_order = reader.or("in_order", true);
    reader.finish();
    Some((variation?, !in_order))
}

fn reorder(node: &Node, errors: &DiagnosticSink) -> Option<Reorder> {
    let mut reader = Reader::new(node, "reorder", errors)?;
    let share = reader.need::<Percent>("share");
    let gap = reader.or("gap", 1_u64);
    if gap == 0 {
        let span = node.get("gap").map_or(&node.span, |n| &n.span);
        errors.push(Diagnostic::at(span, "`gap` must be above zero: 1 takes all packets"));
    }
    let by = reader.want("by");
    reader.finish();
    Some(Reorder { probability: share?.0 / 100.0, gap, by })
}

fn propagation(reader: &mut Reader<'_>, node: &Node, what: &str) -> Option<Propagation> {
    let errors = reader.errors();
    match (node.get("delay").is_some(), node.get("rtt").is_some()) {
        (true, true) => {
            let error = format!("{what} has both `delay` and `rtt`");
            let hint = "`delay` is of this link, `rtt` of the whole path: keep one";
            errors.push(Diagnostic::at(&node.get("rtt")?.span, error).hint(hint));
            reader.knows(&["rtt", "delay"]);
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
