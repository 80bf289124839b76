//! `udccp interop`: a run depends only on its entry and seed. Without a kernel for guests, or if a
//! program is missing, the test skips with a message.

#![cfg(target_os = "linux")]
#![expect(clippy::print_stderr, reason = "a test that skips says so")]

mod common;

use std::fs;
use std::path::Path;

use common::udccp;

/// An entry whose path loses, reorders and duplicates packets, and its predecessor in the matrix.
const CELL: &str = "ours-linux-ccid2-ipv4-rough-server-close";
const BEFORE: &str = "ours-linux-ccid2-ipv4-rough-client-close";

/// The report and capture of the entry after running these entries; `None` if nothing can run here.
fn left(folder: &Path, entries: &[&str], jobs: &str) -> Option<[Vec<u8>; 2]> {
    let keep = folder.display().to_string();
    let mut args = vec!["interop", "--seeds", "1", "--jobs", jobs, "--keep", &keep];
    entries.iter().for_each(|entry| args.extend(["--only", entry]));
    let output = udccp(&args).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(10) {
        eprintln!("skipped: {message}");
        return None;
    }
    assert!(output.status.success(), "{message}{}", String::from_utf8_lossy(&output.stdout));
    Some(["json", "pcap"].map(|end| fs::read(folder.join(format!("{CELL}-seed1.{end}"))).unwrap()))
}

#[test]
fn cell_files_do_not_depend_on_concurrent_cells() {
    let folder = tempfile::tempdir().unwrap();
    let Some(alone) = left(&folder.path().join("alone"), &[CELL], "1") else { return };
    let beside = left(&folder.path().join("beside"), &[BEFORE, CELL], "1").unwrap();
    assert!(alone == beside, "one after the other");
    let at_once = left(&folder.path().join("at-once"), &[BEFORE, CELL], "2").unwrap();
    assert!(alone == at_once, "at once");
}
