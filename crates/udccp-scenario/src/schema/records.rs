//! Files for links, with one entry per line. Empty lines and text after a `#` are ignored.

use std::path::Path;
use std::sync::Arc;

use udccp_base::Duration;
use udccp_sim::Opportunities;

use crate::diagnostic::{Diagnostic, SourceText, Span};
use crate::document::{DiagnosticSink, Node, base_folder};
use crate::library;

/// Reads the file that `node` names, each line with `parse`, whose error is the correct form. The
/// file is searched for like references.
pub(super) fn lines<T>(
    node: &Node,
    errors: &DiagnosticSink,
    parse: impl Fn(&str, Option<&T>) -> Result<T, String>,
) -> Option<Vec<T>> {
    let Some(name) = node.as_text() else {
        let error = format!("expected the name of a file, found {}", node.kind());
        errors.push(Diagnostic::at(&node.span, error));
        return None;
    };
    let path = base_folder(Path::new(&node.span.source.name)).join(name);
    let text = match library::read(&path) {
        Ok(text) => text,
        Err(error) => {
            let error = format!("cannot read {}: {error}", path.display());
            let hint = "the path of a record is relative to the folder of the scenario";
            errors.push(Diagnostic::at(&node.span, error).hint(hint));
            return None;
        }
    };
    let source = Arc::new(SourceText { name: name.to_owned(), text });
    let mut entries: Vec<T> = Vec::new();
    let mut begin = 0;
    for line in source.text.split('\n') {
        let written = line.split('#').next().unwrap_or_default().trim();
        if !written.is_empty() {
            match parse(written, entries.last()) {
                Ok(entry) => entries.push(entry),
                Err(hint) => {
                    let range = begin..begin + line.trim_end().len();
                    let span = Span { source: Arc::clone(&source), range };
                    let error = format!("\"{written}\" is not allowed here");
                    errors.push(Diagnostic::at(&span, error).hint(hint));
                    return None;
                }
            }
        }
        begin += line.len() + 1;
    }
    if entries.is_empty() {
        errors.push(Diagnostic::at(&node.span, format!("{} is empty", path.display())));
        return None;
    }
    Some(entries)
}

/// A trace in the format of mahimahi: in each line the millisecond of an opportunity to transmit
/// 1500 bytes, ascending.
pub(super) fn opportunities(node: &Node, errors: &DiagnosticSink) -> Option<Opportunities> {
    let times = lines(node, errors, |line, last: Option<&Duration>| {
        let hint =
            "each line is a whole number of milliseconds, no less than that of the line above";
        let at = line.parse().ok().filter(|ms| *ms < 1 << 40).map(Duration::from_millis);
        at.filter(|at| last.is_none_or(|last| last <= at)).ok_or_else(|| hint.to_owned())
    })?;
    let trace = Opportunities::new(times);
    if trace.is_none() {
        let error = Diagnostic::at(&node.span, "the last time of a trace must be above zero");
        errors.push(error.hint("the trace repeats after its last time"));
    }
    trace
}

/// Steps of a delay: in each line a time, and the delay from then on, both in milliseconds.
pub(super) fn delays(node: &Node, errors: &DiagnosticSink) -> Option<Arc<[(Duration, Duration)]>> {
    let steps = lines(node, errors, |line, last: Option<&(Duration, Duration)>| {
        let hint = "each line has two numbers of milliseconds, a time and the extra delay from \
                    then on; times must rise";
        let number = |text: &str| text.parse::<f64>().ok().filter(|x| (0.0..1e12).contains(x));
        let mut numbers = line.split_whitespace().map(number);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Some(at)), Some(Some(delay)), None) => {
                let [at, delay] = [at, delay].map(|ms| Duration::from_secs_f64(ms / 1e3));
                let rises = last.is_none_or(|(last, _)| *last < at);
                rises.then_some((at, delay)).ok_or_else(|| hint.to_owned())
            }
            _ => Err(hint.to_owned()),
        }
    })?;
    Some(steps.into())
}

/// One digit per packet, 1 for lost and 0 for not lost; any number of them in a line.
pub(super) fn flags(node: &Node, errors: &DiagnosticSink) -> Option<Arc<[bool]>> {
    let rows = lines(node, errors, |line, _: Option<&Vec<bool>>| {
        let flag = |c: char| match c {
            '0' => Ok(false),
            '1' => Ok(true),
            _ => Err("each packet is 0 (arrives) or 1 (is lost)".to_owned()),
        };
        line.chars().filter(|c| !c.is_whitespace()).map(flag).collect::<Result<Vec<bool>, _>>()
    })?;
    Some(rows.concat().into())
}

/// The numbers of the packets that are lost, one per line, from 1, ascending.
pub(super) fn numbers(node: &Node, errors: &DiagnosticSink) -> Option<Arc<[u64]>> {
    let numbers = lines(node, errors, |line, last: Option<&u64>| {
        let number = line.parse::<u64>().ok().filter(|n| *n > *last.unwrap_or(&0));
        let hint =
            "each line is the number of a packet, counted from 1, above that of the line above";
        number.ok_or_else(|| hint.to_owned())
    })?;
    Some(numbers.into())
}
