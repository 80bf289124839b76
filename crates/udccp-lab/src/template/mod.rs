//! A new experiment: a file that runs as it stands, with a hint at every place.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use udccp_scenario::diagnostic::Diagnostics;
use udccp_scenario::document::{self, Node, Value};
use udccp_scenario::library;

/// The files, with `PAPER` where the name belongs.
const EXPERIMENT: &str = include_str!("experiment.toml");
const REFERENCE: &str = include_str!("reference.csv");

/// Why an experiment cannot be begun.
#[derive(Debug, thiserror::Error)]
pub enum NewError {
    /// The name is not a file name that works everywhere.
    #[error("\"{0}\" is not a valid name for an experiment")]
    Name(String),
    /// The experiment to begin from cannot be read.
    #[error(transparent)]
    From(#[from] Diagnostics),
    /// There is a file already.
    #[error("{} already exists", .0.display())]
    There(PathBuf),
    /// A file cannot be written.
    #[error("cannot write {}: {error}", .path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        error: io::Error,
    },
}

/// Writes the template of an experiment into `folder`, and the stub of its published numbers into
/// the folder `reference` beside it. Returns both paths.
///
/// # Errors
/// A name of other characters than small letters, digits and dashes; files that are there already
/// (nothing is written then) or cannot be written.
pub fn new_experiment(folder: &Path, name: &str) -> Result<Vec<PathBuf>, NewError> {
    check_name(name)?;
    let files = [
        (folder.join(format!("{name}.toml")), EXPERIMENT.replace("PAPER", name)),
        (beside(folder).join(format!("reference/{name}.csv")), REFERENCE.replace("PAPER", name)),
    ];
    write_all(&files)
}

/// Writes a copy of the experiment at `from` (a file, or one that comes with the program) into
/// `folder` under the name `name`, and the files that it refers to beside the folder. Tables of
/// published numbers are copied under a name of their own, so that a change in one experiment does
/// not change the other. Returns the paths of the files that are new; a file that it refers to may
/// be there already.
///
/// # Errors
/// A bad name; an experiment that cannot be read; a file that is there already and says something
/// else (nothing is written then), or that cannot be written.
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

/// The file of a table of the experiment `old` in its copy `new`.
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

/// The folder that the experiments of `folder` name their files relative to.
fn beside(folder: &Path) -> PathBuf {
    let base = document::base_folder(&folder.join("x.toml"));
    base.strip_prefix(".").map(Path::to_owned).unwrap_or(base)
}

/// The text of an experiment with another `id`, and other names of its files.
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
    // From the end, so that what comes before stays in its place.
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

/// Writes files, none of which may be there.
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
