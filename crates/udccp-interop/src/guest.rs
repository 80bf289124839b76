//! Runs a matrix entry inside a guest.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::plan::Trial;
use crate::run::run_trial;

/// The file in the shared folder with the trial to run, as JSON.
pub const TRIAL: &str = "trial.json";
/// The file in the shared folder with the reason if the guest failed.
pub const FAILED: &str = "failed";

/// Runs the trial that [`TRIAL`] in `shared` names and writes its files there. If it fails, writes
/// the reason to [`FAILED`].
pub fn serve(shared: &Path) {
    if let Err(e) = entry(shared) {
        report_line(&e.to_string());
        let _ = fs::write(shared.join(FAILED), e.to_string());
    }
}

fn entry(shared: &Path) -> io::Result<()> {
    let trial: Trial = serde_json::from_slice(&fs::read(shared.join(TRIAL))?)?;
    let result = run_trial(&trial, shared)?;
    report_line(&format!("{trial}: {} / {}", result.client.end, result.server.end));
    Ok(())
}

/// Prints a line on the console.
fn report_line(what: &str) {
    let _ = writeln!(io::stderr(), "udccp: {what}");
}
