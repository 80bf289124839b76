//! `[answer]`: an open question of a study and its answer, where each sentence has claims that the
//! runs must confirm.

use udccp_scenario::diagnostic::{Diagnostic, suggestion};
use udccp_scenario::document::{DiagnosticSink, Node, Reader};

/// The answer that an experiment gives to a question of a study.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The study's experiment, whose page shows the answer too.
    pub study: String,
    /// The question.
    pub question: String,
    /// The answer, in sentences that are each based on claims of this file.
    pub sentences: Vec<Sentence>,
}

/// A sentence of an answer.
#[derive(Clone, Debug)]
pub struct Sentence {
    /// The sentence.
    pub says: String,
    /// The claims on which it is based, by their `id`; at least one.
    pub claims: Vec<String>,
}

impl Answer {
    /// Reads `[answer]`; `claims` are the ids of the file's claims.
    pub(super) fn read(node: &Node, claims: &[String], errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[answer]", errors)?;
        let (study, question) = (reader.need("study"), reader.need("question"));
        let nodes = reader.tables("sentence");
        let sentences = nodes.into_iter().filter_map(|n| Sentence::read(n, claims, errors));
        let sentences: Vec<Sentence> = sentences.collect();
        reader.finish();
        if node.get("sentence").is_none() {
            let error = Diagnostic::at(&node.span, "an answer needs at least one sentence");
            errors.push(error.hint("write [[answer.sentence]] with `says` and `claims`"));
        }
        Some(Self { study: study?, question: question?, sentences })
    }
}

impl Sentence {
    fn read(node: &Node, known: &[String], errors: &DiagnosticSink) -> Option<Self> {
        let mut reader = Reader::new(node, "[[answer.sentence]]", errors)?;
        let says = reader.need("says");
        let claims: Option<Vec<String>> = reader.need("claims");
        reader.finish();
        let claims = claims?;
        let at = node.get("claims").map_or(&node.span, |n| &n.span);
        if claims.is_empty() {
            let error = Diagnostic::at(at, "a sentence needs at least one claim");
            errors.push(error.hint("name a [[claim]] that has an `id`"));
        }
        let text: Vec<&str> = known.iter().map(String::as_str).collect();
        for id in claims.iter().filter(|id| !known.contains(id)) {
            let error = Diagnostic::at(at, format!("no [[claim]] has the id \"{id}\""));
            errors.push(error.hint(suggestion(id, "ids", &text)));
        }
        Some(Self { says: says?, claims })
    }
}
