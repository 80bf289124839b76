//! Finds options that have no effect: those that a flow's protocol ignores, or what is beside them.

use udccp_proto::ccid::{ccid2, ccid3, ccid4, experimental};

use crate::diagnostic::{Diagnostic, Span};
use crate::document::{Entry, Node, Value};
use crate::protocol::{self, Family, Protocol};

const WINDOW: &[u8] = &[ccid2::NUMBER, experimental::CUBIC, experimental::BBR];
const RATE: &[u8] = &[ccid3::NUMBER, ccid4::NUMBER];

/// The options of DCCP that are for some CCIDs only.
const OF_SOME_CCIDS: &[(&str, &[u8])] = &[
    ("ack_ratio", WINDOW),
    ("initial_window", WINDOW),
    ("max_window", WINDOW),
    ("min_rto", WINDOW),
    ("window_cut", &[ccid2::NUMBER]),
    ("growth_after_cut", &[ccid2::NUMBER]),
    ("profile", &[ccid2::NUMBER]),
    ("oscillation_reduction", RATE),
    ("history_discounting", RATE),
];

/// The places of such options in a file, each with the error if it has no effect. One grid point
/// may ignore an option that another uses.
pub fn ignorable_options(root: &Node) -> Vec<(Span, Option<Diagnostic>)> {
    let mut found = Vec::new();
    if let Some(Value::List(flows)) = root.get("flow").map(|node| &node.value) {
        found.extend(flows.iter().flat_map(options_of));
    }
    for part in ["topology", "flow"] {
        root.get(part).into_iter().for_each(|node| options_of_kinds(node, &mut found));
    }
    found
}

/// The options of queues and traffic sources anywhere in a part of the file.
fn options_of_kinds(node: &Node, found: &mut Vec<(Span, Option<Diagnostic>)>) {
    if let Value::List(items) = &node.value {
        items.iter().for_each(|item| options_of_kinds(item, found));
    }
    let is_on = |key| node.get(key).is_some_and(|n| matches!(n.value, Value::Flag(true)));
    let is_one = |key| node.get(key).is_none_or(|n| matches!(n.value, Value::Integer(1)));
    let (key, ignored) = match node.get("kind").and_then(Node::as_text) {
        Some("pie") => {
            ("mark_below", (!is_on("ecn")).then_some("`mark_below` has no effect without `ecn`"))
        }
        Some("video") => {
            let alone = is_one("group").then_some("`ratio` has no effect in a group of one frame");
            ("ratio", alone)
        }
        _ => ("", None),
    };
    for entry in node.entries() {
        options_of_kinds(&entry.node, found);
        if entry.key == key {
            let error = ignored.map(|error| {
                Diagnostic::at(&entry.key_span, error).hint("remove it, or add what it is for")
            });
            found.push((entry.key_span.clone(), error));
        }
    }
}

fn options_of(flow: &Node) -> Vec<(Span, Option<Diagnostic>)> {
    let name = flow.get("protocol").and_then(Node::as_text).unwrap_or_default();
    let Some(protocol) = protocol::find(name) else { return Vec::new() };
    let mut found = Vec::new();
    for table in flow.entries() {
        let family = match table.key.as_str() {
            "dccp" => Family::Dccp,
            "tcp" => Family::Tcp,
            _ => continue,
        };
        for option in table.node.entries() {
            let ignored = match protocol.family == family {
                true => ignored(option, &table.node, protocol),
                false => Some(format!("{name} has no options of `{}`", table.key)),
            };
            let error = ignored.map(|error| {
                Diagnostic::at(&option.key_span, error)
                    .hint("remove it, or move it to a flow that uses it")
            });
            found.push((option.key_span.clone(), error));
        }
    }
    found
}

/// Why the protocol ignores an option of its family.
fn ignored(option: &Entry, beside: &Node, protocol: &Protocol) -> Option<String> {
    let key = option.key.as_str();
    if key == "wakes_every" && beside.get("timers").or(beside.get("timer_tick")).is_none() {
        return Some("`wakes_every` changes nothing without `timers` or `timer_tick`".to_owned());
    }
    let (_, ccids) = OF_SOME_CCIDS.iter().find(|(name, _)| *name == key)?;
    let is_used = protocol.ccid.is_none_or(|ccid| ccids.contains(&ccid));
    (!is_used).then(|| format!("{} does not use `{key}`", protocol.name))
}
