//! The verbs of the Makefile on a machine that lacks Rust, a compiler and Python: each fails, and
//! says what to install.
#![cfg(unix)]
#![expect(clippy::print_stderr, reason = "a test that skips says so")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};

/// What every Debian has. Without `apt-get`, the scripts cannot install the rest.
const TOOLS: [&str; 20] = [
    "bash", "sh", "make", "env", "dirname", "basename", "sed", "cut", "sort", "head", "id",
    "mkdir", "cat", "realpath", "mktemp", "rm", "cp", "awk", "printf", "install",
];

/// A folder with links to programs of this machine, by name; None if one is missing.
fn path_with(tools: &[&str]) -> Option<tempfile::TempDir> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = std::env::var_os("PATH")?;
    for tool in tools {
        let found = std::env::split_paths(&path).map(|dir| dir.join(tool)).find(|f| f.is_file())?;
        symlink(found, folder.path().join(tool)).expect("a link");
    }
    Some(folder)
}

fn make(verb: &str, path: &Path) -> Output {
    let mut make = Command::new(path.join("make"));
    make.arg("--no-print-directory").arg(verb).env("PATH", path);
    make.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).env_remove("MAKEFLAGS");
    // A build folder of its own: whatever a verb wrote would be found.
    make.env("CARGO_TARGET_DIR", path.join("target"))
        .env_remove("CARGO")
        .output()
        .expect("make runs")
}

/// A program that says which version it is, and nothing else.
fn pretend(folder: &Path, name: &str, says: &str) {
    use std::os::unix::fs::PermissionsExt;
    let file = folder.join(name);
    fs::write(&file, format!("#!/bin/sh\necho '{says}'\n")).expect("a script");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("an executable");
}

fn fails_and_says(verb: &str, path: &Path, advice: &str) {
    let output = make(verb, path);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "make {verb} without what it needs: {message}");
    assert!(message.contains(advice), "make {verb}: no `{advice}` in: {message}");
    assert!(!message.contains("command not found"), "make {verb}: {message}");
    assert!(!path.join("target").exists(), "make {verb} wrote something");
}

#[test]
fn every_verb_names_what_is_missing() {
    let Some(path) = path_with(&TOOLS) else { return eprintln!("skipped: no make") };
    let path = path.path();
    let rust = [
        "demo",
        "test",
        "lint",
        "doc",
        "bench",
        "instructions",
        "fuzz",
        "spec",
        "linux",
        "interop",
        "old-programs",
        "kernel-calls",
        "capi",
        "capi-check",
        "capi-windows",
        "program",
        "deb",
        "wheel",
        "wheels",
    ];
    for verb in rust {
        fails_and_says(verb, path, "https://rustup.rs");
    }
    pretend(path, "cargo", "cargo 1.80.0 (376290515 2024-07-16)");
    for verb in ["demo", "test", "capi", "deb", "program", "wheel"] {
        fails_and_says(verb, path, "is of Rust 1.80.0");
    }
    pretend(path, "cargo", "cargo 99.0.0 (376290515 2099-07-16)");
    for verb in ["demo", "test", "capi", "deb", "program", "wheel"] {
        fails_and_says(verb, path, "apt-get install gcc libc6-dev");
    }
    pretend(path, "cc", "a compiler");
    fails_and_says("deb", path, "apt-get install dpkg-dev");
    for verb in ["wheel", "wheels"] {
        fails_and_says(verb, path, "apt-get install python3-venv");
    }
}

/// The build would take minutes.
#[test]
fn the_c_library_asks_first_whether_it_may_be_installed() {
    let Some(path) = path_with(&TOOLS) else { return eprintln!("skipped: no install") };
    let path = path.path();
    let file = path.join("file");
    fs::write(&file, "not a folder").expect("a file");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../scripts/capi.sh");
    let mut install = Command::new(script);
    install.arg("install").env("PATH", path).env("DESTDIR", &file);
    let output = install.output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("capi: no right to write to") && message.contains("PREFIX"),
        "{message}"
    );
}
