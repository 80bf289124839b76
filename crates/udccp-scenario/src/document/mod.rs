//! A TOML text as a tree in which every key and value has its place, so that later checks can point
//! at a line.

mod edit;
mod reader;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::diagnostic::{Diagnostic, Diagnostics, SourceText, Span, suggestion};
use crate::library;

pub use edit::{Override, set, substitute};
pub use reader::{DiagnosticSink, FromNode, Reader, parse_text};
pub(crate) use reader::{from_text, rate_or_zero};

/// The folder to which paths in a file are relative.
pub fn base_folder(path: &Path) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new(""));
    let above = match folder.parent() {
        Some(above) if folder.ends_with("experiments") => above,
        _ => folder,
    };
    if above.as_os_str().is_empty() { PathBuf::from(".") } else { above.to_owned() }
}

/// A value with its place.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its place.
    pub span: Span,
    /// The value.
    pub value: Value,
}

/// The kinds of values that the schema uses.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    Text(String),
    /// A whole number.
    Integer(i64),
    /// A number with a fraction.
    Float(f64),
    /// `true` or `false`.
    Flag(bool),
    /// `[ ... ]`, or repeated `[[name]]`.
    List(Vec<Node>),
    /// `{ ... }` or `[name]`, in the order of the file.
    Table(Vec<Entry>),
    /// A type that the schema does not use (dates).
    Other(&'static str),
}

/// One `key = value`.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Place of the key.
    pub key_span: Span,
    /// The value.
    pub node: Node,
}

impl Entry {
    /// Key and value. If the value identifies the table, the value alone.
    fn label(&self) -> String {
        match self.key.as_str() {
            "kind" => self.node.label(),
            key => format!("{key} {}", self.node.label()),
        }
    }
}

impl Node {
    /// The type in words, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Text(_) => "a text",
            // A negative whole number is wrong only because of its sign.
            Value::Integer(n) if *n < 0 => "a negative number",
            Value::Integer(_) => "a whole number",
            Value::Float(_) => "a number",
            Value::Flag(_) => "a truth value",
            Value::List(_) => "a list",
            Value::Table(_) => "a table",
            Value::Other(kind) => kind,
        }
    }

    /// The entries of a table; empty for other values.
    pub fn entries(&self) -> &[Entry] {
        match &self.value {
            Value::Table(entries) => entries,
            _ => &[],
        }
    }

    /// The value of `key`; `None` if there is none.
    pub fn get(&self, key: &str) -> Option<&Self> {
        self.entries().iter().find(|e| e.key == key).map(|e| &e.node)
    }

    /// The text; `None` for other values.
    pub fn as_text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as text on one line, for labels: `codel, target 10 ms` for the table
    /// `{ kind = "codel", target = "10 ms" }`.
    pub fn label(&self) -> String {
        match &self.value {
            Value::Text(text) => text.clone(),
            Value::Integer(n) => n.to_string(),
            Value::Float(x) => x.to_string(),
            Value::Flag(b) => b.to_string(),
            Value::List(items) if !items.is_empty() => {
                items.iter().map(Self::label).collect::<Vec<_>>().join(", ")
            }
            Value::Table(entries) if !entries.is_empty() => {
                entries.iter().map(Entry::label).collect::<Vec<_>>().join(", ")
            }
            Value::List(_) | Value::Table(_) | Value::Other(_) => self.kind().to_owned(),
        }
    }
}

/// Reads a file as a tree.
///
/// # Errors
/// The file cannot be read, or is not TOML (with the line).
pub fn load(path: &Path) -> Result<Node, Diagnostics> {
    let text = library::read(path).map_err(|e| {
        let error = Diagnostic::whole(format!("cannot read {}: {e}", path.display()));
        match e.kind() {
            ErrorKind::NotFound => error.hint(others(path.parent(), path)),
            ErrorKind::IsADirectory => error.hint(others(Some(path), path)),
            _ => error,
        }
    })?;
    parse(&path.display().to_string(), text)
}

/// Possible files: those of a folder, and the built-in ones.
fn others(folder: Option<&Path>, wanted: &Path) -> String {
    let folder = folder.filter(|f| !f.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".toml")).collect();
    names.sort();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let wanted = wanted.file_name().unwrap_or_default().to_string_lossy();
    format!(
        "{}; the scenarios {} and the experiments of `udccp lab list` are built in",
        suggestion(&wanted, "files there", &names),
        library::scenarios().join(", ")
    )
}

/// Reads a text as a tree; `name` is its name in messages.
///
/// # Errors
/// The text is not TOML; the error has the line.
pub fn parse(name: &str, text: String) -> Result<Node, Diagnostics> {
    let source = Arc::new(SourceText { name: name.to_owned(), text });
    let parsed = DeTable::parse(&source.text).map_err(|e| {
        let span = Span { source: Arc::clone(&source), range: e.span().unwrap_or(0..0) };
        Diagnostic::at(&span, format!("not valid TOML: {}", e.message()))
    })?;
    let range = 0..source.text.len();
    let value = table(&source, parsed.get_ref());
    Ok(Node { span: Span { source: Arc::clone(&source), range }, value })
}

fn table(source: &Arc<SourceText>, table: &DeTable<'_>) -> Value {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_span: Span { source: Arc::clone(source), range: key.span() },
            node: node(source, value),
        })
        .collect();
    entries.sort_by_key(|e| e.key_span.range.start);
    Value::Table(entries)
}

fn node(source: &Arc<SourceText>, value: &Spanned<DeValue<'_>>) -> Node {
    let span = Span { source: Arc::clone(source), range: value.span() };
    let value = match value.get_ref() {
        DeValue::String(text) => Value::Text(text.to_string()),
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix())
            .map_or(Value::Other("a number out of range"), Value::Integer),
        DeValue::Float(x) => {
            x.as_str().parse().map_or(Value::Other("a number out of range"), Value::Float)
        }
        DeValue::Boolean(flag) => Value::Flag(*flag),
        DeValue::Datetime(_) => Value::Other("a date"),
        DeValue::Array(items) => Value::List(items.iter().map(|i| node(source, i)).collect()),
        DeValue::Table(entries) => table(source, entries),
    };
    Node { span, value }
}
