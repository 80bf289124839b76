//! Compiles this crate a second time, as the shared library that `udccp run` preloads.
//!
//! The library links to nothing: it takes `dlsym`, `getenv` and the address of `errno` from
//! whatever C library the program has, so one file serves glibc and musl. Cargo cannot embed one
//! crate's cdylib in another crate, so this calls the compiler.

use std::env;
use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed=build.rs");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    let library = PathBuf::from(variable("OUT_DIR")).join("libudccp_preload.so");
    println!("cargo:rustc-env=UDCCP_PRELOAD={}", library.display());
    let is_supported = variable("CARGO_CFG_TARGET_OS") == "linux"
        && matches!(variable("CARGO_CFG_TARGET_ARCH").as_str(), "x86_64" | "aarch64");
    if !is_supported {
        std::fs::write(&library, b"").expect("cannot write to OUT_DIR");
        return;
    }
    let mut rustc = Command::new(variable("RUSTC"));
    rustc.args(["--crate-name", "udccp_preload", "--edition", "2024", "--crate-type", "cdylib"]);
    rustc.args(["--cfg", "udccp_shim", "--check-cfg", "cfg(udccp_shim)"]);
    for setting in ["panic=abort", "opt-level=3", "codegen-units=1", "strip=symbols"] {
        rustc.args(["-C", setting]);
    }
    rustc.args(["-C", "link-arg=-nostdlib", "-C", "link-arg=-Wl,-soname,libudccp_preload.so"]);
    rustc.args(["-C", "default-linker-libraries=no"]);
    rustc.args(["--target", &variable("TARGET")]).arg("-o").arg(&library).arg("src/lib.rs");
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let status = rustc.status().expect("cannot run the compiler");
    assert!(status.success(), "the preload library does not compile");
}
