//! `queue = "codel"` or `queue = { kind = "codel", … }`.

use udccp_base::{DataRate, DataSize, Duration};
use udccp_sim::{
    Adaptive, CoDelConfig, FqCoDelConfig, PieConfig, QueueConfig, QueueLimit, RedConfig, RedUnit,
};

use super::choice::choose;
use super::quantity::{Packets, Percent};
use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{DiagnosticSink, Node, Reader, Value};

/// Queue disciplines.
#[derive(Clone, Copy)]
enum Kind {
    DropTail,
    DropHead,
    Red,
    CoDel,
    FqCoDel,
    Pie,
}

const KINDS: &[(&str, Kind)] = &[
    ("drop-tail", Kind::DropTail),
    ("drop-head", Kind::DropHead),
    ("red", Kind::Red),
    ("codel", Kind::CoDel),
    ("fq-codel", Kind::FqCoDel),
    ("pie", Kind::Pie),
];

/// The units of RED's counters.
const UNITS: &[(&str, RedUnit)] = &[("packets", RedUnit::Packets), ("bytes", RedUnit::Bytes)];

/// Reads a queue of a link of this rate: a word, or a table with its `kind`.
pub(super) fn read(node: &Node, rate: DataRate, errors: &DiagnosticSink) -> Option<QueueConfig> {
    let kind = match &node.value {
        Value::Table(_) => {
            let Some(kind) = node.get("kind") else {
                let words: Vec<&str> = KINDS.iter().map(|(word, _)| *word).collect();
                let error = Diagnostic::at(&node.span, "a queue needs a `kind`");
                errors.push(error.hint(suggestion("", "choose from", &words)));
                return None;
            };
            choose(kind, errors, "queue", KINDS)?
        }
        _ => choose(node, errors, "queue", KINDS)?,
    };
    // A word is a table without further keys.
    let empty = Node { span: node.span.clone(), value: Value::Table(Vec::new()) };
    let table = if matches!(node.value, Value::Table(_)) { node } else { &empty };
    let mut reader = Reader::new(table, "the queue", errors)?;
    reader.raw("kind");
    let queue = match kind {
        Kind::DropTail => Some(QueueConfig::DropTail),
        Kind::DropHead => Some(QueueConfig::DropHead),
        Kind::Red => red(&mut reader, node, rate).map(QueueConfig::Red),
        Kind::CoDel => Some(QueueConfig::CoDel(codel(&mut reader, false))),
        Kind::FqCoDel => fq_codel(&mut reader).map(QueueConfig::FqCoDel),
        Kind::Pie => Some(QueueConfig::Pie(pie(&mut reader))),
    };
    reader.finish();
    queue
}

fn packet(reader: &mut Reader<'_>, key: &'static str, default: u32) -> u32 {
    let size = reader.or(key, DataSize::from_bytes(u64::from(default)));
    if size.bytes() == 0 {
        wrong(reader, key, format!("`{key}` must be above zero"));
    }
    u32::try_from(size.bytes()).unwrap_or(u32::MAX).max(1)
}

/// A gain of PIE. Below zero it would drop the more, the shorter the queue is.
fn gain(reader: &mut Reader<'_>, key: &'static str, default: f64) -> f64 {
    let gain = reader.or(key, default);
    if gain < 0.0 {
        wrong(reader, key, format!("`{key}` is {gain}; a gain is 0 or more"));
    }
    gain
}

fn wrong(reader: &mut Reader<'_>, key: &'static str, error: String) {
    let span = reader.raw(key).map_or(reader.span(), |n| &n.span);
    reader.errors().push(Diagnostic::at(span, error));
}

fn codel(reader: &mut Reader<'_>, ecn: bool) -> CoDelConfig {
    let default = CoDelConfig::default();
    CoDelConfig {
        target: reader.or("target", default.target),
        interval: reader.or("interval", default.interval),
        max_packet: packet(reader, "max_packet", default.max_packet),
        ecn: reader.or("ecn", ecn),
        limit: default.limit,
    }
}

fn fq_codel(reader: &mut Reader<'_>) -> Option<FqCoDelConfig> {
    let default = FqCoDelConfig::default();
    let codel = codel(reader, default.codel.ecn);
    let quantum = packet(reader, "quantum", default.quantum);
    let flows = reader.or("flows", u64::from(default.flows));
    if !(1..=65_536).contains(&flows) {
        let error = format!("{flows} flow queues; the number must be 1 to 65536");
        wrong(reader, "flows", error);
        return None;
    }
    Some(FqCoDelConfig { codel, flows: flows as u32, quantum })
}

fn pie(reader: &mut Reader<'_>) -> PieConfig {
    let default = PieConfig::default();
    let mark_below = reader.or("mark_below", Percent(100.0 * default.mark_below));
    PieConfig {
        target: reader.or("target", default.target),
        update: reader.or("update", default.update).max(Duration::from_micros(1)),
        alpha: gain(reader, "alpha", default.alpha),
        beta: gain(reader, "beta", default.beta),
        max_burst: reader.or("max_burst", default.max_burst),
        mean_packet: packet(reader, "mean_packet", default.mean_packet),
        ecn: reader.or("ecn", default.ecn),
        mark_below: mark_below.0 / 100.0,
        limit: default.limit,
    }
}

/// Thresholds are given, or computed from a target delay as in Adaptive RED.
fn thresholds(
    reader: &mut Reader<'_>,
    node: &Node,
    adaptive: bool,
    automatic: impl Fn(Duration) -> (f64, f64),
) -> Option<(f64, f64)> {
    let errors = reader.errors();
    let target = reader.want::<Duration>("target");
    if node.get("min").is_none() && node.get("max").is_none() {
        reader.knows(&["min", "max"]);
        if !adaptive && target.is_none() {
            let error = Diagnostic::at(&node.span, "RED has no thresholds");
            errors.push(error.hint(
                "write { kind = \"red\", adaptive = true }, or give `min` and `max` in packets",
            ));
            return None;
        }
        return Some(automatic(target.unwrap_or(Duration::from_millis(5))));
    }
    let (min, max) = (reader.need::<Packets>("min"), reader.need::<Packets>("max"));
    if let (Some(_), Some(span)) = (target, node.get("target").map(|n| &n.span)) {
        let error = Diagnostic::at(span, "RED has a `target` in addition to its thresholds");
        errors.push(error.hint("`target` sets `min` and `max`: keep one or the other"));
    }
    Some((f64::from(min?.0), f64::from(max?.0)))
}

fn red(reader: &mut Reader<'_>, node: &Node, rate: DataRate) -> Option<RedConfig> {
    let errors = reader.errors();
    let adaptive = reader.or("adaptive", false);
    let mean_packet = packet(reader, "mean_packet", 1000);
    let max_probability = reader.or("max_probability", Percent(10.0)).0 / 100.0;
    let (gentle, ecn) = (reader.or("gentle", true), reader.or("ecn", false));
    let unit = reader.raw("unit").map(|unit| choose(unit, errors, "unit of RED", UNITS));
    let weight = reader.want("weight");
    // All keys are known before the first return: the others would be called unknown.
    let automatic = |target| RedConfig::automatic_thresholds(rate, mean_packet, target);
    let (min, max) = thresholds(reader, node, adaptive, automatic)?;
    if min >= max {
        let span = node.get("min").map_or(&node.span, |n| &n.span);
        let error = format!("`min` is {min} packets, `max` {max}");
        errors.push(Diagnostic::at(span, error).hint("RED drops early between `min` and `max`"));
    }
    let default = RedConfig::between(min, max, Some(rate), QueueLimit::Unlimited);
    let automatic = RedConfig::automatic_weight(rate, mean_packet);
    let weight = weight.unwrap_or(if adaptive { automatic } else { default.weight });
    if !(weight > 0.0 && weight <= 1.0) {
        let error = format!("a weight of {weight}; it must be above 0 and at most 1");
        wrong(reader, "weight", error);
    }
    Some(RedConfig {
        max_probability,
        weight,
        gentle,
        unit: unit.unwrap_or(Some(RedUnit::Packets))?,
        mean_packet,
        ecn,
        adaptive: adaptive.then(Adaptive::default),
        ..default
    })
}
