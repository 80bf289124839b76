//! The part of a guest that runs cells.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::plan::Cell;
use crate::run::play;

/// The file in the shared folder that names the cells to run, as JSON.
pub const CELLS: &str = "cells.json";
/// The file in the shared folder that says why the guest gave up.
pub const FAILED: &str = "failed";

/// Runs the cells that [`CELLS`] in `shared` names and leaves there what they leave; [`FAILED`]
/// says why where it cannot.
pub fn serve(shared: &Path) {
    if let Err(e) = cells(shared) {
        say(&e.to_string());
        let _ = fs::write(shared.join(FAILED), e.to_string());
    }
}

fn cells(shared: &Path) -> io::Result<()> {
    let cells: Vec<Cell> = serde_json::from_slice(&fs::read(shared.join(CELLS))?)?;
    play(&cells, shared, |played| {
        say(&format!("{}: {} / {}", played.cell, played.client.end, played.server.end));
    })
}

/// A line on the console.
fn say(what: &str) {
    let _ = writeln!(io::stderr(), "udccp: {what}");
}
