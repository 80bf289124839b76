//! Names the code that results depend on: a hash over the sources of every crate below the
//! laboratory, and of the laboratory but for the parts that only read files and results. A stored
//! result is used again only by the same code; a change to a report keeps every result.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Sources beside this crate whose change changes results.
const CRATES: [&str; 8] = [
    "udccp-base/src",
    "udccp-cc/src",
    "udccp-link/src",
    "udccp-metrics/src",
    "udccp-proto/src",
    "udccp-sim/src",
    "udccp-tcp/src",
    "udccp-wire/src",
];

/// Sources of this crate that read files, keep and judge results, but change none.
const READING: [&str; 24] = [
    "src/analysis",
    "src/backend.rs",
    "src/campaign.rs",
    "src/diagnostic.rs",
    "src/document",
    "src/expected.rs",
    "src/export",
    "src/forecast.rs",
    "src/lib.rs",
    "src/library.rs",
    "src/narrow.rs",
    "src/plan.rs",
    "src/report",
    "src/schema/case.rs",
    "src/schema/claim.rs",
    "src/schema/context.rs",
    "src/schema/experiment.rs",
    "src/schema/grid.rs",
    "src/schema/metric.rs",
    "src/schema/reference.rs",
    "src/schema/table.rs",
    "src/store",
    "src/task.rs",
    "src/template",
];

/// Folders whose files are built in (src/library.rs). A new file there means to build again.
const BUILT_IN: [&str; 3] = ["../../experiments", "../../reference", "../../scenarios"];

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    for folder in BUILT_IN {
        println!("cargo:rerun-if-changed={}", own.join(folder).display());
    }
    let beside = own.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = Vec::new();
    let crates = CRATES.iter().map(|c| beside.join(c));
    for path in crates.chain(core::iter::once(own.join("src"))) {
        println!("cargo:rerun-if-changed={}", path.display());
        collect(&path, &mut files);
    }
    let reading: Vec<PathBuf> = READING.iter().map(|r| own.join(r)).collect();
    files.retain(|f| !reading.iter().any(|r| f.starts_with(r)));
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.strip_prefix(&beside).unwrap_or(&file).to_string_lossy().as_bytes());
        hash.update(fs::read(&file).unwrap_or_default());
    }
    let digest: String = hash.finalize().iter().take(6).map(|b| format!("{b:02x}")).collect();
    println!("cargo:rustc-env=UDCCP_CODE_HASH={digest}");
}

/// All Rust sources at or below `path`, tests left out (none where a crate was unpacked without its
/// neighbours: then its version alone names it).
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.file_stem().is_some_and(|name| name == "tests") {
        return;
    }
    if path.extension().is_some_and(|e| e == "rs") {
        files.push(path.to_owned());
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}
