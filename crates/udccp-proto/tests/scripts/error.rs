//! Errors of a script: in its text, and unexpected packets.

use std::fmt;

/// A line and its error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptError {
    /// Counted from 1.
    pub(crate) line: usize,
    pub(crate) says: String,
    pub(crate) hint: Option<String>,
}

impl ScriptError {
    pub(crate) fn new(line: usize, says: impl Into<String>) -> Self {
        Self { line, says: says.into(), hint: None }
    }

    /// An unknown word, with the most similar known one.
    pub(crate) fn unknown(line: usize, what: &str, word: &str, known: &[&str]) -> Self {
        let lower = word.to_lowercase();
        let distance = |k: &&&str| strsim::damerau_levenshtein(&lower, &k.to_lowercase());
        let hint = known.iter().min_by_key(distance).map(|k| format!("did you mean {k:?}?"));
        Self { line, says: format!("{what} {word:?} is not known"), hint }
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.says)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "\n  hint: {hint}"))
    }
}
