//! Reads the captures of the repository.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use udccp_packet::ip::LinkType;
use udccp_packet::pcap::Reader;

/// The frames of a capture file, with its link type.
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) link: LinkType,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Capture {
    /// Reads a capture file of one link type.
    pub(crate) fn read(path: &Path) -> Self {
        let file = File::open(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let frames: Vec<_> =
            Reader::open(BufReader::new(file)).unwrap().map(Result::unwrap).collect();
        let link = LinkType::from_number(frames[0].link).expect("known link type");
        let frames = frames.into_iter().map(|frame| frame.bytes).collect();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        Self { name, link, frames }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The captures of the Linux kernel's DCCP kept in the repository.
pub(crate) fn kernel_captures() -> Vec<Capture> {
    let mut paths: Vec<_> = std::fs::read_dir(root().join("captures"))
        .expect("captures/ in the repository")
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "pcap"))
        .collect();
    paths.sort();
    paths.iter().map(|path| Capture::read(path)).collect()
}

/// A capture from outside the repository. If it is missing, prints a note and returns `None`.
pub(crate) fn foreign_capture(name: &str) -> Option<Capture> {
    let path = root().join("../shared/captures").join(name);
    if path.exists() {
        return Some(Capture::read(&path));
    }
    note(format_args!("skipped: {} is not there", path.display()));
    None
}

/// Prints a line for those who run the tests with `--nocapture`.
#[expect(clippy::print_stdout, reason = "a test says what it skipped or counted")]
pub(crate) fn note(line: impl std::fmt::Display) {
    println!("{line}");
}
