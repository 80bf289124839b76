//! One test for each script in `conformance/`. docs/reference/packet-scripts.md describes the
//! language.
//!
//! `cargo test -p udccp-proto --test scripts` runs all, `... -- close` those with "close" in their
//! path. `PACKET_SCRIPT=file cargo test -p udccp-proto --test scripts` runs one file from anywhere.

mod error;
mod language;
mod open;
mod options;
mod packet;
mod peer;
mod run;
mod script;
mod settings;
mod tokens;
mod variables;
mod world;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};

/// Finds the scripts below a folder, in order of their names.
fn scripts(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            scripts(&path, found);
        } else if path.extension().is_some_and(|e| e == "dccp") {
            found.push(path);
        }
    }
}

/// Runs the script in `text`. The error contains the trace.
fn run_text(name: &str, text: &str) -> Result<(), String> {
    let place = |line: usize| {
        let source = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
        format!("{name}:{line}: {}", source.trim())
    };
    let steps = script::parse(text).map_err(|f| format!("{}\n  {f}", place(f.line)))?;
    run::run(&steps).map_err(|(error, trace)| {
        let trace = trace.join("\n");
        format!("{}\n  {error}\n\nline    seconds\n{trace}", place(error.line))
    })
}

fn trial(root: &Path, path: PathBuf) -> Trial {
    let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
    Trial::test(name, move || {
        let text = std::fs::read_to_string(&path).map_err(|e| Failed::from(e.to_string()))?;
        run_text(&path.display().to_string(), &text).map_err(Failed::from)
    })
}

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut found = Vec::new();
    match std::env::var_os("PACKET_SCRIPT") {
        Some(one) => found.push(one.into()),
        None => scripts(&root, &mut found),
    }
    let mut trials: Vec<Trial> = found.into_iter().map(|p| trial(&root, p)).collect();
    trials.extend(language::trials());
    libtest_mimic::run(&arguments, trials).exit_code()
}
