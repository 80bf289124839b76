//! Files with one number per line.

use std::path::Path;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::diagnostic::{Diagnostic, SourceText, Span};
use crate::document::{DiagnosticSink, Node, base_folder};
use crate::library;

/// Frame sizes from a file, one in bytes per line. Empty lines and text after a `#` are ignored.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// The file's name in the scenario.
    pub file: String,
    /// The sizes.
    pub bytes: Arc<[u32]>,
}

/// A scenario contains the content of a trace, so that the key of a run depends on it.
impl Serialize for Trace {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut hash = Sha256::new();
        self.bytes.iter().for_each(|size| hash.update(size.to_be_bytes()));
        let digest = hash.finalize();
        let hex = digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect::<String>();
        s.collect_str(&format_args!("{} frames, {hex}", self.bytes.len()))
    }
}

/// The serialised form: the name of the contents, without them. The caller adds the frames.
impl<'de> Deserialize<'de> for Trace {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self { file: String::deserialize(d)?, bytes: Arc::new([]) })
    }
}

/// Largest frame in bytes; no camera makes larger ones.
const MAX_FRAME: u32 = 64 << 20;

impl Trace {
    /// Reads the file that `node` names, relative to the folder of the scenario.
    pub(super) fn read(node: &Node, errors: &DiagnosticSink) -> Option<Self> {
        let file = node.as_text()?.to_owned();
        let path = base_folder(Path::new(&node.span.source.name)).join(&file);
        let text = match library::read(&path) {
            Ok(text) => text,
            Err(error) => {
                let error = format!("cannot read {}: {error}", path.display());
                let hint = "the path of a trace is relative to the folder of the scenario";
                errors.push(Diagnostic::at(&node.span, error).hint(hint));
                return None;
            }
        };
        let sizes = sizes(&file, text, errors)?;
        if sizes.is_empty() {
            let error = Diagnostic::at(&node.span, format!("{} has no frames", path.display()));
            errors.push(error.hint("write one size in bytes per line"));
            return None;
        }
        Some(Self { file, bytes: sizes.into() })
    }
}

fn sizes(name: &str, text: String, errors: &DiagnosticSink) -> Option<Vec<u32>> {
    let source = Arc::new(SourceText { name: name.to_owned(), text });
    let mut sizes = Vec::new();
    let mut begin = 0;
    for line in source.text.split('\n') {
        let written = line.split('#').next().unwrap_or_default().trim();
        if !written.is_empty() {
            match written.parse() {
                Ok(size) if (1..=MAX_FRAME).contains(&size) => sizes.push(size),
                _ => {
                    let range = begin..begin + line.trim_end().len();
                    let span = Span { source: Arc::clone(&source), range };
                    let error = format!("\"{written}\" is not a frame size");
                    let hint = format!("a whole number of bytes, 1 to {MAX_FRAME}");
                    errors.push(Diagnostic::at(&span, error).hint(hint));
                    return None;
                }
            }
        }
        begin += line.len() + 1;
    }
    Some(sizes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run's key is a hash of its scenario. Other frames give another key, whatever the name of
    /// the file, and the same frames give the same key.
    #[test]
    fn the_key_of_a_run_depends_on_the_frames_of_a_trace() {
        let key = |file: &str, frames: [u32; 3]| {
            let trace = Trace { file: file.to_owned(), bytes: Arc::new(frames) };
            serde_json::to_string(&trace).expect("text")
        };
        assert_eq!(key("a", [700, 800, 900]), key("b", [700, 800, 900]));
        assert_ne!(key("a", [700, 800, 900]), key("a", [700, 801, 900]));
    }
}
