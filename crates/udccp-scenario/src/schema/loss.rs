//! `loss = "3 %"` or `loss = { kind = "gilbert-elliott", … }`.

use udccp_base::{Duration, Instant};
use udccp_sim::{GilbertElliott, LossConfig};

use super::choice::choose;
use super::quantity::{Packets, Percent};
use super::records;
use crate::diagnostic::Diagnostic;
use crate::document::{DiagnosticSink, FromNode, Node, Reader, Value};

/// Loss models.
#[derive(Clone, Copy)]
enum Kind {
    Random,
    GilbertElliott,
    Periodic,
    Trace,
}

const KINDS: &[(&str, Kind)] = &[
    ("random", Kind::Random),
    ("gilbert-elliott", Kind::GilbertElliott),
    ("periodic", Kind::Periodic),
    ("trace", Kind::Trace),
];

/// The contents of a record of losses.
#[derive(Clone, Copy)]
enum Lists {
    Flags,
    Numbers,
}

const LISTS: &[(&str, Lists)] = &[("flags", Lists::Flags), ("numbers", Lists::Numbers)];

/// Reads a loss model: a share, or a table with its `kind`.
pub(super) fn read(node: &Node, errors: &DiagnosticSink) -> Option<LossConfig> {
    if !matches!(node.value, Value::Table(_)) {
        return Percent::from_node(node, errors).map(LossConfig::from);
    }
    let mut reader = Reader::new(node, "loss", errors)?;
    let kind = choose(reader.node("kind")?, errors, "loss model", KINDS)?;
    let loss = match kind {
        Kind::Random => reader.need::<Percent>("share").map(LossConfig::from),
        Kind::GilbertElliott => gilbert_elliott(&mut reader, node).map(LossConfig::GilbertElliott),
        Kind::Periodic => periodic(&mut reader, node),
        Kind::Trace => {
            let lists = match reader.raw("lists") {
                Some(lists) => choose(lists, errors, "record of losses", LISTS)?,
                None => Lists::Flags,
            };
            let file = reader.node("file")?;
            match lists {
                Lists::Flags => records::flags(file, errors).map(LossConfig::Flags),
                Lists::Numbers => records::numbers(file, errors).map(LossConfig::Numbers),
            }
        }
    };
    reader.finish();
    loss
}

impl From<Percent> for LossConfig {
    fn from(share: Percent) -> Self {
        if share.0 > 0.0 { Self::Random(share.0 / 100.0) } else { Self::None }
    }
}

/// Either the share lost and the mean length of a burst, or the four probabilities of the model.
fn gilbert_elliott(reader: &mut Reader<'_>, node: &Node) -> Option<GilbertElliott> {
    let errors = reader.errors();
    let both = |a: &[&str]| a.iter().any(|key| node.get(key).is_some());
    if both(&["share", "burst"]) && both(&["p", "r", "h", "k"]) {
        let error = Diagnostic::at(&node.span, "bursts are described twice");
        errors.push(error.hint("give `share` and `burst`, or `p`, `r`, `h` and `k`"));
        reader.knows(&["share", "burst", "p", "r", "h", "k"]);
        return None;
    }
    if both(&["p", "r", "h", "k"]) {
        reader.knows(&["share", "burst"]);
        let (p, r) = (reader.need::<Percent>("p"), reader.need::<Percent>("r"));
        let (h, k) = (reader.or("h", Percent(0.0)), reader.or("k", Percent(100.0)));
        let of = |percent: Percent| percent.0 / 100.0;
        return Some(GilbertElliott { p: of(p?), r: of(r?), h: of(h), k: of(k) });
    }
    let (share, burst) = (reader.need::<Percent>("share"), reader.need::<Packets>("burst"));
    reader.knows(&["p", "r", "h", "k"]);
    let (share, burst) = (share?, burst?);
    let model = GilbertElliott::with_bursts(share.0 / 100.0, f64::from(burst.0));
    if model.is_none() {
        let error = format!("no channel loses {share} in bursts of {burst}");
        let hint = "a burst has 1 packet or more, and between two bursts at least one arrives";
        errors.push(Diagnostic::at(&node.span, error).hint(hint));
    }
    model
}

const PERIODIC: &str = "every = \"100 packets\", every = \"2 s\", or at = [\"10 s\", \"12.5 s\"]";

fn periodic(reader: &mut Reader<'_>, node: &Node) -> Option<LossConfig> {
    let errors = reader.errors();
    let (every, at) = (reader.raw("every"), reader.raw("at"));
    let error = match (every, at) {
        (Some(every), None) => {
            let text = every.as_text().unwrap_or_default();
            if let Ok(packets) = text.parse::<Packets>()
                && packets.0 > 0
            {
                return Some(LossConfig::EveryNth(u64::from(packets.0)));
            }
            if let Ok(time) = text.parse::<Duration>()
                && !time.is_zero()
            {
                return Some(LossConfig::Every(time));
            }
            Diagnostic::at(&every.span, format!("\"{}\" is not a period", every.label()))
        }
        (None, Some(at)) => {
            let Value::List(times) = &at.value else {
                let error =
                    Diagnostic::at(&at.span, format!("expected a list, found {}", at.kind()));
                errors.push(error.hint("write for example at = [\"10 s\", \"12.5 s\"]"));
                return None;
            };
            let times: Option<Vec<Duration>> =
                times.iter().map(|time| Duration::from_node(time, errors)).collect();
            let mut times: Vec<Instant> = times?.iter().map(|t| Instant::ZERO + *t).collect();
            if times.is_empty() {
                errors.push(Diagnostic::at(&at.span, "`at` lists no time").hint(PERIODIC));
                return None;
            }
            times.sort_unstable();
            return Some(LossConfig::At(times.into()));
        }
        _ => Diagnostic::at(&node.span, "periodic loss has `every` or `at`"),
    };
    errors.push(error.hint(PERIODIC));
    None
}
