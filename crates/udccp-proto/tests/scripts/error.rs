//! Failures of a script: errors in its text, and packets that it did not expect.

use std::fmt;

/// A line and what is wrong there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ScriptError {
    /// 1 is the first line.
    pub(crate) line: usize,
    pub(crate) says: String,
    pub(crate) hint: Option<String>,
}

impl ScriptError {
    pub(crate) fn new(line: usize, says: impl Into<String>) -> Self {
        Self { line, says: says.into(), hint: None }
    }

    /// An unknown word, with the known one that is nearest.
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
