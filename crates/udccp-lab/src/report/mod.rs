//! Reports: one self-contained HTML page per experiment, and an index page. Pages load nothing
//! else, so they work offline, in print, and on a phone.

mod answers;
mod cell_text;
mod claims;
mod csv;
mod data;
mod figures;
mod html;
mod index;
mod markdown;
mod page;
mod reasons;
mod score;
mod sources;
mod style;
mod summary;
mod svg;
mod table_header;
mod tables;
mod tally;
mod text;
mod variants;

pub use style::{Marker, Style, style_of};

use std::path::{Path, PathBuf};

use crate::analysis::Analysis;

pub use data::{cells, charts, protocol};

/// Why a report cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {path}: {error}")]
pub struct ReportError {
    /// The file or folder.
    pub path: PathBuf,
    /// The system's error.
    #[source]
    pub error: std::io::Error,
}

/// When and where a report is written, for its index page; empty fields are omitted.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// The date.
    pub date: String,
    /// The machine.
    pub machine: String,
}

/// The page of one experiment, without answers of other experiments.
pub fn page(analysis: &Analysis<'_>) -> String {
    page::page(analysis, &[])
}

/// Tables and verdicts as plain text, for a terminal.
pub fn text(analysis: &Analysis<'_>) -> String {
    text::text(analysis)
}

/// Tables as Markdown, with one column per source.
pub fn markdown(analysis: &Analysis<'_>) -> String {
    markdown::markdown(analysis)
}

/// Writes `index.html` and a page per experiment to a folder. Returns the path of the index page.
///
/// # Errors
/// A folder or file cannot be written.
pub fn write(
    folder: &Path,
    analyses: &[Analysis<'_>],
    about: &About,
) -> Result<PathBuf, ReportError> {
    let cannot = |path: &Path, error| ReportError { path: path.to_owned(), error };
    std::fs::create_dir_all(folder).map_err(|e| cannot(folder, e))?;
    for analysis in analyses {
        let path = folder.join(format!("{}.html", analysis.experiment.id));
        std::fs::write(&path, page::page(analysis, analyses)).map_err(|e| cannot(&path, e))?;
    }
    let path = folder.join("index.html");
    std::fs::write(&path, index::index(analyses, about)).map_err(|e| cannot(&path, e))?;
    Ok(path)
}
