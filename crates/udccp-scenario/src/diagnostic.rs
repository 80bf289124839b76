//! Errors in a file: what is wrong, where, and the nearest correct word.

use core::fmt;
use core::ops::Range;
use std::collections::HashSet;
use std::sync::Arc;

/// A text with places: a file, or a command-line argument.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceText {
    /// Its name in messages: the path as the user gave it, or `--set`.
    pub name: String,
    /// The whole text.
    pub text: String,
}

/// A part of a [`SourceText`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    /// The text.
    pub source: Arc<SourceText>,
    /// The range in bytes.
    pub range: Range<usize>,
}

impl Span {
    /// Whether both are in files of the same name. Their texts are not compared: a file may be read
    /// twice.
    pub fn is_in_file_of(&self, other: &Self) -> bool {
        self.source.name == other.source.name
    }

    /// Line and column, both counted from 1 (columns in characters).
    pub fn line_column(&self) -> (usize, usize) {
        let before = &self.source.text[..self.range.start.min(self.source.text.len())];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |i| i + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// The line in which the span begins, and the number of its characters in the span (at least
    /// one).
    fn excerpt(&self) -> (&str, usize) {
        let text = &self.source.text;
        let at = self.range.start.min(text.len());
        let start = text[..at].rfind('\n').map_or(0, |i| i + 1);
        let end = text[at..].find('\n').map_or(text.len(), |i| at + i);
        let stop = self.range.end.clamp(at, end);
        (&text[start..end], text[at..stop].chars().count().max(1))
    }
}

/// One error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// What is wrong, in one sentence.
    pub message: String,
    /// Where it is; `None` for an error of the whole file, such as a missing one.
    pub span: Option<Span>,
    /// How to correct it.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// An error at a place.
    pub fn at(span: &Span, message: impl Into<String>) -> Self {
        Self { message: message.into(), span: Some(span.clone()), hint: None }
    }

    /// An error of a whole file.
    pub fn whole(message: impl Into<String>) -> Self {
        Self { message: message.into(), span: None, hint: None }
    }

    /// Adds advice.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        if let Some(span) = &self.span {
            let (line, column) = span.line_column();
            let (text, width) = span.excerpt();
            let number = line.to_string();
            let pad = " ".repeat(number.len());
            write!(f, "\n{pad}--> {}:{line}:{column}", span.source.name)?;
            write!(f, "\n{pad} |\n{number} | {text}")?;
            write!(f, "\n{pad} | {}{}", " ".repeat(column - 1), "^".repeat(width))?;
        }
        match &self.hint {
            Some(hint) => write!(f, "\nhint: {hint}"),
            None => Ok(()),
        }
    }
}

/// All errors found in one reading. Never empty when returned as an error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Diagnostics(pub Vec<Diagnostic>);

impl Diagnostics {
    /// Adds an error, unless it is there already (the value of an axis is read at every grid
    /// point).
    pub fn push(&mut self, error: Diagnostic) {
        if !self.0.contains(&error) {
            self.0.push(error);
        }
    }

    /// Returns `value` if there are no errors.
    ///
    /// # Errors
    /// All the errors, in the order of the file.
    pub fn into_result<T>(mut self, value: Option<T>) -> Result<T, Self> {
        match value {
            Some(value) if self.0.is_empty() => Ok(value),
            _ => {
                self.0.sort_by_key(|d| d.span.as_ref().map_or(0, |s| s.range.start));
                Err(self)
            }
        }
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(error: Diagnostic) -> Self {
        Self(vec![error])
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, error) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("\n\nerror: ")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// The candidate that `word` was probably meant to be, if one is similar enough.
pub(crate) fn nearest<'a>(
    word: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let near = |c: &str| {
        let edits = strsim::damerau_levenshtein(word, c);
        (edits <= (word.chars().count() / 3).max(1)) || strsim::jaro_winkler(word, c) > 0.85
    };
    let distance = |c: &&str| (!is_short_for(word, c), strsim::damerau_levenshtein(word, c));
    candidates.into_iter().filter(|c| near(c)).min_by_key(distance)
}

/// Whether only letters were left out: `tcp/reno` is short for `tcp/newreno`.
fn is_short_for(word: &str, candidate: &str) -> bool {
    let mut rest = candidate.chars();
    word.chars().all(|letter| rest.any(|c| c == letter))
}

/// `did you mean ...?` if a candidate is similar, and in any case the list of candidates without
/// repetitions.
pub fn suggestion(word: &str, what: &str, candidates: &[&str]) -> String {
    if candidates.is_empty() {
        return format!("{what}: none");
    }
    let mut seen = HashSet::new();
    let once: Vec<&str> = candidates.iter().copied().filter(|name| seen.insert(*name)).collect();
    let list = once.join(", ");
    match nearest(word, candidates.iter().copied()) {
        Some(near) => format!("did you mean `{near}`? {what}: {list}"),
        None => format!("{what}: {list}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{nearest, suggestion};

    #[test]
    fn each_candidate_is_named_once() {
        let hint = suggestion("secnd", "flows", &["first", "second", "first", "second"]);
        assert_eq!(hint, "did you mean `second`? flows: first, second");
    }

    #[test]
    fn a_short_form_is_nearer_than_a_word_with_another_letter() {
        let protocols = ["tcp/veno", "tcp/newreno", "tcp/cubic", "dccp/ccid2"];
        assert_eq!(nearest("tcp/reno", protocols), Some("tcp/newreno"));
        assert_eq!(nearest("tcp/vemo", protocols), Some("tcp/veno"));
        assert_eq!(nearest("dccp/ccid-2", protocols), Some("dccp/ccid2"));
        assert_eq!(nearest("quic", protocols), None);
    }
}
