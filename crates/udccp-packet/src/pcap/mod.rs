//! Reads and writes capture files: classic pcap and pcapng, as a stream of frames.
//!
//! The reader can handle damaged files: it first returns everything that can be read, then the
//! error and its position. Files are written as classic pcap with nanoseconds.

mod classic;
mod pcapng;
mod write;

pub use write::Writer;

use core::fmt;
use std::io::{self, Read};
use std::vec;
use std::vec::Vec;

/// Longest frame that is accepted; libpcap's limit is 256 KiB.
pub(super) const MAX_FRAME_BYTES: usize = 1 << 20;

/// A captured frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Nanoseconds since 1970, if the file has a time.
    pub epoch_ns: Option<u64>,
    /// LINKTYPE number of the frame's link header.
    pub link: u32,
    /// The captured bytes.
    pub bytes: Vec<u8>,
}

/// Why a file cannot be read completely.
#[derive(Debug)]
pub enum CaptureError {
    /// The file is in neither format.
    NotACapture,
    /// The file ends within a frame or block.
    Truncated {
        /// Start of the incomplete part, in bytes.
        at: u64,
    },
    /// A length or number is invalid.
    Damaged {
        /// Its position in bytes.
        at: u64,
        /// What is invalid.
        what: &'static str,
    },
    /// An error of the system.
    Io(io::Error),
}

impl fmt::Display for CaptureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotACapture => f.write_str("this is neither a pcap nor a pcapng file"),
            Self::Truncated { at } => {
                write!(f, "the file is cut short: what begins at byte {at} is incomplete")
            }
            Self::Damaged { at, what } => write!(f, "the file is damaged at byte {at}: {what}"),
            Self::Io(e) => write!(f, "cannot read: {e}"),
        }
    }
}

impl core::error::Error for CaptureError {}

/// A reader that counts its position.
#[derive(Debug)]
pub(super) struct Source<R> {
    inner: R,
    pub(super) at: u64,
}

impl<R: Read> Source<R> {
    /// Fills `buf`. Returns `Ok(false)` at the end of the file.
    pub(super) fn fill(&mut self, buf: &mut [u8]) -> Result<bool, CaptureError> {
        let mut have = 0;
        while have < buf.len() {
            match self.inner.read(&mut buf[have..]) {
                Ok(0) if have == 0 => return Ok(false),
                Ok(0) => return Err(CaptureError::Truncated { at: self.at }),
                Ok(n) => have += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(CaptureError::Io(e)),
            }
        }
        self.at += have as u64;
        Ok(true)
    }

    /// Reads `len` bytes of something that started at `began`.
    pub(super) fn take(&mut self, len: usize, began: u64) -> Result<Vec<u8>, CaptureError> {
        let mut bytes = vec![0; len];
        let cut = CaptureError::Truncated { at: began };
        match self.fill(&mut bytes) {
            Ok(true) => Ok(bytes),
            Ok(false) if len == 0 => Ok(bytes),
            Ok(false) | Err(CaptureError::Truncated { .. }) => Err(cut),
            Err(e) => Err(e),
        }
    }
}

/// The frames of a file in order. An error ends them.
#[derive(Debug)]
pub struct Reader<R> {
    source: Source<R>,
    format: Format,
    over: bool,
}

#[derive(Debug)]
enum Format {
    Pcap(classic::Pcap),
    Pcapng(pcapng::Pcapng),
}

impl<R: Read> Reader<R> {
    /// Reads the file's header, and buffers nothing.
    ///
    /// # Errors
    /// If the file is in neither format, or cannot be read.
    pub fn open(inner: R) -> Result<Self, CaptureError> {
        let mut source = Source { inner, at: 0 };
        let mut magic = [0; 4];
        match source.fill(&mut magic) {
            Ok(true) => {}
            Ok(false) | Err(CaptureError::Truncated { .. }) => {
                return Err(CaptureError::NotACapture);
            }
            Err(e) => return Err(e),
        }
        let format = if magic == pcapng::SECTION_HEADER {
            Format::Pcapng(pcapng::Pcapng::open(&mut source)?)
        } else {
            Format::Pcap(classic::Pcap::open(magic, &mut source)?)
        };
        Ok(Self { source, format, over: false })
    }
}

impl<R: Read> Iterator for Reader<R> {
    type Item = Result<Frame, CaptureError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = match &mut self.format {
            Format::Pcap(pcap) => pcap.next(&mut self.source),
            Format::Pcapng(pcapng) => pcapng.next(&mut self.source),
        };
        self.over = !matches!(next, Ok(Some(_)));
        next.transpose()
    }
}

/// The byte order of the machine that wrote the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    Big,
    Little,
}

impl Order {
    pub(super) fn u16(self, bytes: &[u8], at: usize) -> u16 {
        let b = [bytes[at], bytes[at + 1]];
        match self {
            Self::Big => u16::from_be_bytes(b),
            Self::Little => u16::from_le_bytes(b),
        }
    }

    pub(super) fn u32(self, bytes: &[u8], at: usize) -> u32 {
        let b = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
        match self {
            Self::Big => u32::from_be_bytes(b),
            Self::Little => u32::from_le_bytes(b),
        }
    }
}
