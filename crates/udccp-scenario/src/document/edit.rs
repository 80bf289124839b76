//! Changes a tree before it is read: replaces `$name` by values of grid axes, and applies `key =
//! value` overrides.

use std::sync::Arc;

use toml::de::DeTable;

use super::{Entry, Node, Value};
use crate::diagnostic::{Diagnostic, Diagnostics, SourceText, Span, suggestion};

/// A `key = value` that replaces a value of a file.
#[derive(Clone, Debug)]
pub struct Override {
    /// Dotted path. An element of a list of named tables is selected by name or number:
    /// `flow.second.protocol`.
    pub path: String,
    /// Place of the path.
    pub span: Span,
    /// The new value.
    pub node: Node,
}

impl Override {
    /// Parses `key=value` from a command line. The value is TOML or plain text, so that quotes are
    /// not needed: `--set topology.bottleneck.rtt="50 ms"`.
    ///
    /// # Errors
    /// The argument has no `=`, or its value begins like a table or list and is not one.
    pub fn parse(argument: &str) -> Result<Self, Diagnostic> {
        let text = argument.to_owned();
        let source = Arc::new(SourceText { name: "--set".to_owned(), text });
        let all = Span { source: Arc::clone(&source), range: 0..argument.len() };
        let Some((path, value)) = argument.split_once('=') else {
            return Err(Diagnostic::at(&all, "expected KEY=VALUE")
                .hint("for example --set topology.bottleneck.rtt=\"50 ms\""));
        };
        let span = Span { range: 0..path.len(), ..all.clone() };
        let value_span = Span { range: path.len() + 1..argument.len(), ..all };
        let node = if value.trim_start().starts_with(['{', '[']) {
            compound_value(value_span, path.len())?
        } else {
            Node { span: value_span, value: plain_value(value.trim()) }
        };
        Ok(Self { path: path.trim().to_owned(), span, node })
    }
}

/// The table or list of an argument `key=value`, whose key has this length: as TOML, with a key of
/// the same length, so that places are those in the argument.
fn compound_value(span: Span, key: usize) -> Result<Node, Diagnostic> {
    let source = Arc::clone(&span.source);
    let line = format!("{}{}", "k".repeat(key), &source.text[key..]);
    let wrong = |why: &str| {
        Diagnostic::at(&span, format!("not valid TOML: {why}"))
            .hint("for example --set 'topology.bottleneck.queue={ kind = \"codel\" }'")
    };
    let parsed = DeTable::parse(&line).map_err(|e| wrong(e.message()))?;
    match super::table(&source, parsed.get_ref()) {
        Value::Table(mut entries) if entries.len() == 1 => Ok(entries.remove(0).node),
        _ => Err(wrong("more than one value")),
    }
}

/// A number or truth value if the text is one, otherwise the text itself.
fn plain_value(text: &str) -> Value {
    if let Ok(n) = text.parse() {
        return Value::Integer(n);
    }
    if let Ok(x) = text.parse() {
        return Value::Float(x);
    }
    match text {
        "true" => Value::Flag(true),
        "false" => Value::Flag(false),
        _ => Value::Text(text.trim_matches('"').to_owned()),
    }
}

/// Applies an override to the tree. Missing tables on the path are created. Unknown keys are
/// reported when the tree is read.
///
/// # Errors
/// The path goes through a value that is not a table, or names an element that does not exist.
pub fn set(root: &mut Node, change: &Override) -> Result<(), Diagnostics> {
    let parts: Vec<&str> = change.path.split('.').collect();
    let (last, folders) = parts.split_last().ok_or_else(|| not_a_table(change, ""))?;
    let mut at = root;
    for part in folders {
        at = child_at(at, part, change)?;
    }
    let Value::Table(entries) = &mut at.value else {
        return Err(not_a_table(change, last).into());
    };
    match entries.iter_mut().find(|e| e.key == *last) {
        Some(entry) => entry.node = change.node.clone(),
        None => entries.push(Entry {
            key: (*last).to_owned(),
            key_span: change.span.clone(),
            node: change.node.clone(),
        }),
    }
    Ok(())
}

fn child_at<'a>(
    node: &'a mut Node,
    part: &str,
    change: &Override,
) -> Result<&'a mut Node, Diagnostic> {
    match &mut node.value {
        Value::Table(entries) => {
            let found = entries.iter().position(|e| e.key == part);
            let index = found.unwrap_or_else(|| {
                let span = change.span.clone();
                let node = Node { span: span.clone(), value: Value::Table(Vec::new()) };
                entries.push(Entry { key: part.to_owned(), key_span: span, node });
                entries.len() - 1
            });
            Ok(&mut entries[index].node)
        }
        Value::List(items) => {
            let names: Vec<String> = items.iter().map(name_of).collect();
            let by_name = names.iter().position(|n| n == part);
            let index = by_name.or_else(|| part.parse().ok().filter(|i| *i < items.len()));
            index.map(|i| &mut items[i]).ok_or_else(|| {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                Diagnostic::at(&change.span, format!("there is no `{part}` in this list"))
                    .hint(suggestion(part, "choose from", &names))
            })
        }
        _ => Err(not_a_table(change, part)),
    }
}

fn name_of(node: &Node) -> String {
    let name = node.get("name").or_else(|| node.get("id"));
    name.map(Node::label).unwrap_or_default()
}

fn not_a_table(change: &Override, part: &str) -> Diagnostic {
    Diagnostic::at(&change.span, format!("`{part}` is inside a value that is not a table"))
}

/// Replaces every `"$name"` below `node` by the value of that axis. `whose` describes the axes in
/// the error message, for example `axes of [grid]`.
///
/// # Errors
/// There is no axis of this name; the error has the most similar one.
pub fn substitute(node: &mut Node, axes: &[(&str, &Node)], whose: &str) -> Result<(), Diagnostics> {
    match &mut node.value {
        Value::Text(text) => {
            let Some(name) = text.strip_prefix('$') else { return Ok(()) };
            let Some((_, value)) = axes.iter().find(|(axis, _)| *axis == name) else {
                return Err(unknown_axis(&node.span, name, axes, whose).into());
            };
            *node = (*value).clone();
            Ok(())
        }
        Value::List(items) => items.iter_mut().try_for_each(|i| substitute(i, axes, whose)),
        Value::Table(entries) => {
            entries.iter_mut().try_for_each(|e| substitute(&mut e.node, axes, whose))
        }
        _ => Ok(()),
    }
}

fn unknown_axis(span: &Span, name: &str, axes: &[(&str, &Node)], whose: &str) -> Diagnostic {
    let names: Vec<&str> = axes.iter().map(|(axis, _)| *axis).collect();
    let hint = if names.is_empty() {
        "a `$name` stands for an axis of [grid], and there is none".to_owned()
    } else {
        suggestion(name, whose, &names)
    };
    Diagnostic::at(span, format!("there is no grid axis `{name}`")).hint(hint)
}
