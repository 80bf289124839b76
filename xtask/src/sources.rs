//! The files that the rules check: those that git tracks or would track.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A text file of the repository.
pub(crate) struct Source {
    /// Path below the root, with forward slashes.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// All tracked and untracked-but-not-ignored text files whose name ends in one of `endings`.
pub(crate) fn read(root: &Path, endings: &[&str]) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for path in list(root)? {
        if !endings.iter().any(|e| path.ends_with(e)) {
            continue;
        }
        // A deleted file is still listed until the deletion is committed; there is nothing to
        // check.
        if let Ok(text) = std::fs::read_to_string(root.join(&path)) {
            sources.push(Source { path, text });
        }
    }
    Ok(sources)
}

fn list(root: &Path) -> Result<Vec<String>> {
    let output = Command::new("git")
        .args(["ls-files", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output()
        .context("running git ls-files")?;
    ensure!(output.status.success(), "git ls-files failed; is this a git checkout?");
    let text = String::from_utf8(output.stdout).context("file names are UTF-8")?;
    let mut paths: Vec<String> = text.lines().map(str::to_owned).collect();
    paths.sort();
    paths.dedup();
    Ok(paths)
}

/// The folders below `crates/` with a manifest.
pub(crate) fn crates(root: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root.join("crates")).context("reading crates/")? {
        let folder = entry?.path();
        if folder.join("Cargo.toml").is_file() {
            found.push(folder);
        }
    }
    found.sort();
    Ok(found)
}
