//! Reads words from a fixed list; errors show the list.

use crate::diagnostic::{Diagnostic, suggestion};
use crate::document::{DiagnosticSink, FromNode, Node};

/// Reads a word as one of a list of (word, value).
pub fn choose<T: Copy>(
    node: &Node,
    errors: &DiagnosticSink,
    what: &str,
    table: &[(&str, T)],
) -> Option<T> {
    let word = String::from_node(node, errors)?;
    let found = table.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
    if found.is_none() {
        let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
        let error = Diagnostic::at(&node.span, format!("\"{word}\" is not a valid {what}"));
        errors.push(error.hint(suggestion(&word, "choose from", &names)));
    }
    found
}

/// Adds an error if the value of an optional key is zero.
pub(super) fn never_zero(node: &Node, errors: &DiagnosticSink, key: &str, is_zero: bool) {
    if is_zero {
        let span = node.get(key).map_or(&node.span, |n| &n.span);
        let error = format!("`{key}` must be above zero: give a larger value, or leave it out");
        errors.push(Diagnostic::at(span, error));
    }
}

/// An enum whose values are words in files: reading, printing and (de)serialising by one table.
#[macro_export]
macro_rules! words {
    (
        $(#[$meta:meta])*
        $type:ident, $what:literal:
        $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $type {
            $($(#[$doc])* $variant),+
        }

        impl $type {
            /// Every word with its value.
            pub const WORDS: &'static [(&'static str, Self)] = &[$(($word, Self::$variant)),+];

            /// The word in files.
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl $crate::document::FromNode for $type {
            fn from_node(
                node: &$crate::document::Node,
                errors: &$crate::document::DiagnosticSink,
            ) -> Option<Self> {
                $crate::schema::choice::choose(node, errors, $what, Self::WORDS)
            }
        }

        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.word())
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let word = String::deserialize(d)?;
                let found = Self::WORDS.iter().find(|(name, _)| *name == word);
                found.map(|(_, value)| *value).ok_or_else(|| {
                    serde::de::Error::custom(format!("\"{word}\" is not a valid {}", $what))
                })
            }
        }
    };
}
pub use words;
