//! Typed reading of tables. Keys that are read are known; any others are errors.

use core::cell::RefCell;
use core::fmt::Display;
use core::str::FromStr;

use udccp_base::{DataRate, DataSize, Duration};

use super::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, Span, suggestion};

/// Collects errors while reading continues, so that all are reported at once.
#[derive(Debug, Default)]
pub struct DiagnosticSink(RefCell<Diagnostics>);

impl DiagnosticSink {
    /// Adds an error.
    pub fn push(&self, error: Diagnostic) {
        self.0.borrow_mut().push(error);
    }

    /// Returns `value` if there were no errors.
    ///
    /// # Errors
    /// All errors that were added.
    pub fn finish<T>(self, value: Option<T>) -> Result<T, Diagnostics> {
        self.0.into_inner().into_result(value)
    }
}

/// A type that can be read from a TOML value.
pub trait FromNode: Sized {
    /// Reads the value, or adds the error.
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self>;
}

/// Parses a text with `FromStr`. Adds its error, which shows the correct form, at the value.
pub fn parse_text<T: FromStr<Err: Display>>(
    node: &Node,
    errors: &DiagnosticSink,
    form: &str,
) -> Option<T> {
    let Some(text) = node.as_text() else {
        let message = format!("expected {form}, found {}", node.kind());
        errors.push(Diagnostic::at(&node.span, message).hint(unit_hint(node, form)));
        return None;
    };
    text.parse().map_err(|e: T::Err| errors.push(split(&node.span, &e.to_string()))).ok()
}

/// A number without a unit is the most common error in quantities.
fn unit_hint(node: &Node, form: &str) -> String {
    match node.value {
        Value::Integer(_) | Value::Float(_) => {
            format!("a quantity needs its unit: write {form}")
        }
        _ => format!("write {form}"),
    }
}

/// The units' own errors read "error; advice".
fn split(span: &Span, message: &str) -> Diagnostic {
    match message.split_once("; ") {
        Some((error, advice)) => Diagnostic::at(span, error).hint(advice),
        None => Diagnostic::at(span, message),
    }
}

macro_rules! from_text {
    ($type:ty, $form:expr) => {
        impl $crate::document::FromNode for $type {
            fn from_node(
                node: &$crate::document::Node,
                errors: &$crate::document::DiagnosticSink,
            ) -> Option<Self> {
                $crate::document::parse_text(node, errors, $form)
            }
        }
    };
}
from_text!(Duration, "a time such as \"25 ms\"");
from_text!(DataSize, "a size such as \"1500 B\"");
pub(crate) use from_text;

/// A rate that may be zero.
pub(crate) fn rate_or_zero(node: &Node, errors: &DiagnosticSink) -> Option<DataRate> {
    parse_text(node, errors, "a rate such as \"100 Mbit/s\"")
}

/// A rate is above zero: with a link or source that does nothing, a run would succeed but mean
/// nothing.
impl FromNode for DataRate {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let rate = rate_or_zero(node, errors)?;
        if rate.bits_per_sec() > 0 {
            return Some(rate);
        }
        let error = Diagnostic::at(&node.span, "a rate must be above zero");
        let hint = "to stop a link for a while, write rate = \"0 bit/s\" in a [[topology.change]]";
        errors.push(error.hint(hint));
        None
    }
}

impl FromNode for String {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        parse_text(node, errors, "a string in quotes")
    }
}

impl FromNode for bool {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        match node.value {
            Value::Flag(flag) => Some(flag),
            _ => wrong(node, errors, "true or false"),
        }
    }
}

impl FromNode for u64 {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        match node.value {
            Value::Integer(n) if n >= 0 => Some(n as Self),
            _ => wrong(node, errors, "a whole number of 0 or more"),
        }
    }
}

impl FromNode for f64 {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        match node.value {
            Value::Integer(n) => Some(n as Self),
            Value::Float(x) if x.is_finite() => Some(x),
            Value::Float(_) => wrong(node, errors, "a finite number"),
            _ => wrong(node, errors, "a number"),
        }
    }
}

impl FromNode for Node {
    fn from_node(node: &Node, _: &DiagnosticSink) -> Option<Self> {
        Some(node.clone())
    }
}

impl<T: FromNode> FromNode for Vec<T> {
    fn from_node(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        match &node.value {
            Value::List(items) => {
                let read: Vec<Option<T>> = items.iter().map(|i| T::from_node(i, errors)).collect();
                read.into_iter().collect()
            }
            _ => wrong(node, errors, "a list in brackets"),
        }
    }
}

fn wrong<T>(node: &Node, errors: &DiagnosticSink, form: &str) -> Option<T> {
    let message = format!("expected {form}, found {}", node.kind());
    errors.push(Diagnostic::at(&node.span, message));
    None
}

/// Reads a table key by key. Keys that are read are known; [`Reader::finish`] reports the others.
#[derive(Debug)]
pub struct Reader<'a> {
    node: &'a Node,
    what: String,
    known: Vec<&'static str>,
    errors: &'a DiagnosticSink,
}

impl<'a> Reader<'a> {
    /// Starts to read `node`; `what` is its name in messages (for example `[time]`).
    pub fn new(
        node: &'a Node,
        what: impl Into<String>,
        errors: &'a DiagnosticSink,
    ) -> Option<Self> {
        let what = what.into();
        if !matches!(node.value, Value::Table(_)) {
            let message = format!("{what} is a table, found {}", node.kind());
            errors.push(Diagnostic::at(&node.span, message));
            return None;
        }
        Some(Self { node, what, known: Vec::new(), errors })
    }

    /// Where errors go.
    pub fn errors(&self) -> &'a DiagnosticSink {
        self.errors
    }

    /// The place of the table.
    pub fn span(&self) -> &'a Span {
        &self.node.span
    }

    /// The value of `key`, not parsed. The key becomes a known one.
    pub fn raw(&mut self, key: &'static str) -> Option<&'a Node> {
        self.knows(&[key]);
        self.node.get(key)
    }

    /// Marks these keys as known; they are read elsewhere or not at all.
    pub fn knows(&mut self, keys: &[&'static str]) {
        for key in keys {
            if !self.known.contains(key) {
                self.known.push(key);
            }
        }
    }

    /// The value of `key`, not parsed. An error if it is missing.
    pub fn node(&mut self, key: &'static str) -> Option<&'a Node> {
        if self.node.get(key).is_none() {
            self.missing(key);
        }
        self.raw(key)
    }

    /// The value of `key`; `None` if it is missing, or invalid, which is an error.
    pub fn want<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        let errors = self.errors;
        self.raw(key).and_then(|node| T::from_node(node, errors))
    }

    /// The value of `key`. An error if it is missing.
    pub fn need<T: FromNode>(&mut self, key: &'static str) -> Option<T> {
        let errors = self.errors;
        self.node(key).and_then(|node| T::from_node(node, errors))
    }

    /// The value of `key`, or `default` if it is missing.
    pub fn or<T: FromNode>(&mut self, key: &'static str, default: T) -> T {
        self.want(key).unwrap_or(default)
    }

    /// The tables of `[[key]]`, numbered from 1.
    pub fn tables(&mut self, key: &'static str) -> Vec<&'a Node> {
        match self.raw(key).map(|n| (&n.value, n)) {
            None => Vec::new(),
            Some((Value::List(items), _)) => items.iter().collect(),
            Some((_, node)) => {
                let message = format!("`{key}` is a list of tables, found {}", node.kind());
                let hint = format!("write [[{key}]] with two brackets");
                self.errors.push(Diagnostic::at(&node.span, message).hint(hint));
                Vec::new()
            }
        }
    }

    /// Adds the error that `key` is missing.
    fn missing(&self, key: &str) {
        let mut head = self.node.span.clone();
        // A table spans all its lines; its first line is enough to find it.
        let text = &head.source.text[head.range.clone()];
        head.range.end = head.range.start + text.find('\n').unwrap_or(text.len());
        let message = format!("{} lacks the key `{key}`", self.what);
        self.errors.push(Diagnostic::at(&head, message));
    }

    /// Reports all keys that were not read.
    pub fn finish(self) {
        for Entry { key, key_span, .. } in self.node.entries() {
            if !self.known.contains(&key.as_str()) {
                let message = format!("unknown key `{key}` in {}", self.what);
                let hint = suggestion(key, "known keys", &self.known);
                self.errors.push(Diagnostic::at(key_span, message).hint(hint));
            }
        }
    }
}
