//! Names the code that results on real networks depend on, beside the laboratory's: a hash over the
//! sources of agents, sockets and backends. A stored result of a backend is used again only by the
//! same code.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Sources whose change changes such results.
const CRATES: [&str; 6] = [
    "udccp/src",
    "udccp-netns/src",
    "udccp-agent/src",
    "udccp-testbed/src",
    "udccp-emu/src",
    "udccp-linux/src",
];

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let beside = own.parent().map(Path::to_owned).unwrap_or_default();
    let mut files = Vec::new();
    for path in CRATES.map(|c| beside.join(c)) {
        println!("cargo:rerun-if-changed={}", path.display());
        collect(&path, &mut files);
    }
    files.sort();
    let mut hash = Sha256::new();
    for file in files {
        hash.update(file.strip_prefix(&beside).unwrap_or(&file).to_string_lossy().as_bytes());
        hash.update(fs::read(&file).unwrap_or_default());
    }
    let digest: String = hash.finalize().iter().take(4).map(|b| format!("{b:02x}")).collect();
    println!("cargo:rustc-env=UDCCP_BACKENDS_HASH={digest}");
}

/// All files at or below `path`, tests left out (none where a crate was unpacked without its
/// neighbours: then its version alone names it).
fn collect(path: &Path, files: &mut Vec<PathBuf>) {
    if path.file_stem().is_some_and(|name| name == "tests") {
        return;
    }
    if path.is_file() {
        files.push(path.to_owned());
    }
    let Ok(entries) = fs::read_dir(path) else { return };
    for entry in entries.flatten() {
        collect(&entry.path(), files);
    }
}
