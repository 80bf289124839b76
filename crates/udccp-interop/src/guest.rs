//! The part of a guest that runs a cell.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::plan::Trial;
use crate::run::play;

/// The file in the shared folder that names the cell to run, as JSON.
pub const TRIAL: &str = "trial.json";
/// The file in the shared folder that says why the guest gave up.
pub const FAILED: &str = "failed";

/// Runs the cell that [`TRIAL`] in `shared` names and leaves there what it leaves; [`FAILED`] says
/// why where it cannot.
pub fn serve(shared: &Path) {
    if let Err(e) = entry(shared) {
        say(&e.to_string());
        let _ = fs::write(shared.join(FAILED), e.to_string());
    }
}

fn entry(shared: &Path) -> io::Result<()> {
    let trial: Trial = serde_json::from_slice(&fs::read(shared.join(TRIAL))?)?;
    let played = play(&trial, shared)?;
    say(&format!("{trial}: {} / {}", played.client.end, played.server.end));
    Ok(())
}

/// A line on the console.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "udccp: {what}");
}
