//! Computes `UDCCP_BACKENDS_HASH`: a hash over the sources of this crate, of the backends (the
//! libraries that depend on this crate) and of every crate below them. A backend's stored result is
//! reused only if the hash is the same.

#[path = "../udccp-scenario/build/code.rs"]
mod code;

use std::fs;
use std::path::{Path, PathBuf};

use code::Code;

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let mut code = Code::of(&own);
    for backend in backends(&own) {
        let Code { crates, others, files, watched } = Code::of(&backend);
        code.crates.extend(crates);
        code.others.extend(others);
        code.files.extend(files);
        code.watched.extend(watched);
    }
    for path in &code.watched {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=UDCCP_BACKENDS_HASH={}", code.digest());
}

/// The folders of the libraries beside this crate that depend on it. Empty when the crate was
/// unpacked without its neighbours: its version alone then identifies the code.
fn backends(own: &Path) -> Vec<PathBuf> {
    let name = std::env::var("CARGO_PKG_NAME").unwrap_or_default();
    let folders = own.parent().and_then(|beside| fs::read_dir(beside).ok());
    let folders = folders.into_iter().flatten().flatten().map(|entry| entry.path());
    let uses_this = |folder: &PathBuf| {
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap_or_default();
        println!("cargo:rerun-if-changed={}", folder.join("Cargo.toml").display());
        code::dependencies(&manifest).iter().any(|below| below.name == name)
    };
    folders.filter(|folder| folder.join("src/lib.rs").is_file()).filter(uses_this).collect()
}
