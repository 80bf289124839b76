//! A reader of classic pcap files, and where the captures are.
#![allow(dead_code, reason = "each test binary uses its own part of this")]

use std::path::{Path, PathBuf};

use udccp_wire::ip::LinkType;

/// The frames of a capture file, with its link type.
pub(crate) struct Capture {
    pub(crate) name: String,
    pub(crate) link: LinkType,
    pub(crate) frames: Vec<Vec<u8>>,
}

impl Capture {
    /// Reads a classic pcap file of either byte order.
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let little = match bytes[..4] {
            [0xd4, 0xc3, 0xb2, 0xa1] | [0x4d, 0x3c, 0xb2, 0xa1] => true,
            [0xa1, 0xb2, 0xc3, 0xd4] | [0xa1, 0xb2, 0x3c, 0x4d] => false,
            _ => panic!("{} is no pcap file", path.display()),
        };
        let word = |at: usize| {
            let b = bytes[at..at + 4].try_into().unwrap();
            if little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) }
        };
        let link = LinkType::from_number(word(20)).expect("known link type");
        let mut frames = Vec::new();
        let mut at = 24;
        while at < bytes.len() {
            let len = word(at + 8) as usize;
            frames.push(bytes[at + 16..at + 16 + len].to_vec());
            at += 16 + len;
        }
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

/// A capture from beside the repository; `None`, and a word about it, where it is not there.
pub(crate) fn foreign_capture(name: &str) -> Option<Capture> {
    let path = root().join("../shared/captures").join(name);
    if path.exists() {
        return Some(Capture::read(&path));
    }
    note(format_args!("skipped: {} is not there", path.display()));
    None
}

/// A line for whoever runs the tests with `--nocapture`.
#[expect(clippy::print_stdout, reason = "a test says what it skipped or counted")]
pub(crate) fn note(line: impl std::fmt::Display) {
    println!("{line}");
}
