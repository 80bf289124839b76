//! Creates a new experiment: a file that runs unchanged, with hints everywhere.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use udccp_scenario::diagnostic::Diagnostics;
use udccp_scenario::document::{self, Node, Value};
use udccp_scenario::library;

/// The files, with `PAPER` as a placeholder for the name.
const EXPERIMENT: &str = include_str!("experiment.toml");
const REFERENCE: &str = include_str!("reference.csv");

/// Why an experiment cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is not a portable file name.
    #[error("\"{0}\" is not a valid name for an experiment")]
    Name(String),
    /// The experiment to copy cannot be read.
    #[error(transparent)]
    From(#[from] Diagnostics),
    /// A file exists already.
    #[error("{} already exists", .0.display())]
    There(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        #[source]
        error: io::Error,
    },
}

/// Writes the template of an experiment to `folder`, and a stub of its published numbers to the
/// folder `reference` next to it. Returns both paths.
///
/// # Errors
/// The name has characters other than lower-case letters, digits and dashes; a file exists (then
/// nothing is written) or cannot be written.
pub fn new_experiment(folder: &Path, name: &str) -> Result<Vec<PathBuf>, NewError> {
    check_name(name)?;
    let files = [
        (folder.join(format!("{name}.toml")), EXPERIMENT.replace("PAPER", name)),
        (beside(folder).join(format!("reference/{name}.csv")), REFERENCE.replace("PAPER", name)),
    ];
    write_all(&files)
}

/// Copies the experiment `from` (a file, or a built-in one) to `folder` under the name `name`, and
/// the files that it refers to next to that folder. Tables of published numbers get a new name, so
/// that a change in one experiment does not affect the other. Returns the paths of new files; other
/// files that it refers to may exist already.
///
/// # Errors
/// An invalid name; an experiment that cannot be read; a file that exists with other content (then
/// nothing is written) or cannot be written.
pub fn copy_experiment(folder: &Path, name: &str, from: &Path) -> Result<Vec<PathBuf>, NewError> {
    check_name(name)?;
    let root = document::load(from)?;
    let path = folder.join(format!("{name}.toml"));
    if path.exists() {
        return Err(NewError::There(path));
    }
    let source = document::base_folder(from);
    let stem = from.file_stem().unwrap_or_default().to_string_lossy();
    let old = root.get("id").and_then(Node::as_text).unwrap_or(&stem);
    let mut files = Vec::new();
    let mut new_names = BTreeMap::new();
    let mut nodes = Vec::new();
    texts_of(&root, &mut nodes);
    let mut texts: Vec<&str> = nodes.iter().map(|(text, _)| *text).collect();
    texts.sort_unstable();
    texts.dedup();
    for text in texts.into_iter().filter(|t| t.ends_with(".csv") || t.ends_with(".txt")) {
        let Ok(contents) = library::read(&source.join(text)) else { continue };
        let new = if text.ends_with(".csv") { own_table(text, old, name) } else { text.to_owned() };
        let path = beside(folder).join(&new);
        new_names.insert(text, new);
        match fs::read_to_string(&path) {
            Ok(there) if there == contents => {}
            Ok(_) => return Err(NewError::There(path)),
            Err(_) => files.push((path, contents)),
        }
    }
    files.insert(0, (path, renamed(&root, name, &nodes, &new_names)));
    write_all(&files)
}

/// The name of a table file of the experiment `old` in its copy `new`.
fn own_table(file: &str, old: &str, new: &str) -> String {
    let path = Path::new(file);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    match stem {
        _ if old == new => file.to_owned(),
        stem if stem == old => path.with_file_name(format!("{new}.csv")).display().to_string(),
        stem => path.with_file_name(format!("{new}-{stem}.csv")).display().to_string(),
    }
}

fn check_name(name: &str) -> Result<(), NewError> {
    let fine = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_fine = !name.is_empty() && !name.starts_with('-') && name.chars().all(fine);
    if is_fine { Ok(()) } else { Err(NewError::Name(name.to_owned())) }
}

/// The folder to which paths in experiments of `folder` are relative.
fn beside(folder: &Path) -> PathBuf {
    let base = document::base_folder(&folder.join("x.toml"));
    base.strip_prefix(".").map(Path::to_owned).unwrap_or(base)
}

/// The text of an experiment with another `id` and renamed files.
fn renamed(
    root: &Node,
    name: &str,
    nodes: &[(&str, &Node)],
    new_names: &BTreeMap<&str, String>,
) -> String {
    let new = |(text, node): (&str, &Node)| {
        let new = new_names.get(text).filter(|new| *new != text)?;
        Some((node.span.range.clone(), new.as_str()))
    };
    let id = root.get("id").map(|id| (id.span.range.clone(), name));
    let mut changes: Vec<_> = nodes.iter().copied().filter_map(new).chain(id).collect();
    // From the end, so that earlier positions remain valid.
    changes.sort_by_key(|(range, _)| core::cmp::Reverse(range.start));
    let mut text = root.span.source.text.clone();
    for (range, new) in changes {
        text.replace_range(range, &format!("\"{new}\""));
    }
    text
}

/// Every text in a tree, with its node.
fn texts_of<'a>(node: &'a Node, texts: &mut Vec<(&'a str, &'a Node)>) {
    match &node.value {
        Value::Text(text) => texts.push((text, node)),
        Value::List(items) => items.iter().for_each(|item| texts_of(item, texts)),
        Value::Table(entries) => entries.iter().for_each(|e| texts_of(&e.node, texts)),
        _ => {}
    }
}

/// Writes files, none of which may exist.
fn write_all(files: &[(PathBuf, String)]) -> Result<Vec<PathBuf>, NewError> {
    if let Some((there, _)) = files.iter().find(|(path, _)| path.exists()) {
        return Err(NewError::There(there.clone()));
    }
    for (path, text) in files {
        let cannot = |error| NewError::Write { path: path.clone(), error };
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(cannot)?;
        }
        let mut file = File::create_new(path).map_err(cannot)?;
        file.write_all(text.as_bytes()).map_err(cannot)?;
    }
    Ok(files.iter().map(|(path, _)| path.clone()).collect())
}
