//! Writes packets to capture files for other tools.

mod pcap;

use core::fmt;
use std::io;

pub(crate) use pcap::{Envelope, PcapWriter};

/// The destination of the packets of one observation point.
pub type CaptureFile = Box<dyn io::Write + Send>;

/// Opens the file of an observation point.
type Open<'a> = Box<dyn FnMut(&str) -> io::Result<Option<CaptureFile>> + 'a>;

/// Captures in classic pcap (link type 101, raw IP; nanoseconds), one file per observation point.
/// `NAME-sender` and `NAME-receiver` are the interfaces of the two hosts of a flow, in both
/// directions as the host sees them. `bottleneck` (or `hop-1`, `hop-2`...) is what leaves that link
/// in either direction. A flow of several pairs has no host files. The caller opens the files,
/// because the simulator does no input or output.
pub struct Capture<'a> {
    pub(crate) open: Open<'a>,
    pub(crate) snaplen: u32,
}

impl<'a> Capture<'a> {
    /// Captures whole packets at every observation point for which `open` returns a writer. Names
    /// passed to `open` are valid file names. The simulator buffers its writes.
    pub fn new(open: impl FnMut(&str) -> io::Result<Option<CaptureFile>> + 'a) -> Self {
        Self { open: Box::new(open), snaplen: 65_535 }
    }

    /// Captures at most `bytes` of each packet. Tools then skip its transport checksum.
    #[must_use]
    pub fn with_snaplen(mut self, bytes: u32) -> Self {
        self.snaplen = bytes;
        self
    }
}

impl fmt::Debug for Capture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Capture").field("snaplen", &self.snaplen).finish_non_exhaustive()
    }
}
