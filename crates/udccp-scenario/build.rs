//! Computes the version of the code that results depend on: a hash over the sources of this crate
//! and of all crates below it. A stored result is reused only by the same code; changes to reports
//! keep all results.

#[path = "build/code.rs"]
mod code;

use std::path::PathBuf;

/// Folders whose files are built in (src/library.rs). A new file there requires a rebuild.
const BUILT_IN: [&str; 3] = ["../../experiments", "../../reference", "../../scenarios"];

fn main() {
    let own = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    for folder in BUILT_IN {
        println!("cargo:rerun-if-changed={}", own.join(folder).display());
    }
    let code = code::Code::of(&own);
    for path in &code.watched {
        println!("cargo:rerun-if-changed={}", path.display());
    }
    println!("cargo:rustc-env=UDCCP_CODE_HASH={}", code.digest());
}
