//! Packets as files that other tools read.

mod pcap;

use core::fmt;
use std::io;

pub(crate) use pcap::{Envelope, PcapWriter};

/// Where the packets of one observation point go to.
pub type CaptureFile = Box<dyn io::Write + Send>;

/// Opens the file of an observation point.
type Open<'a> = Box<dyn FnMut(&str) -> io::Result<Option<CaptureFile>> + 'a>;

/// Captures in classic pcap (link type 101, raw IP; nanoseconds), one file per observation point:
/// `NAME-sender` and `NAME-receiver` are the interfaces of the two hosts of a flow (both
/// directions, as a host sees them), `bottleneck` (or `hop-1`, `hop-2`...) is what leaves that link
/// in either direction. A flow of several pairs has no host files. Files are opened by
/// the caller, because the simulator does no input or output.
pub struct Capture<'a> {
    pub(crate) open: Open<'a>,
    pub(crate) snaplen: u32,
}

impl<'a> Capture<'a> {
    /// Whole packets of every observation point for which `open` returns a writer. The name that
    /// `open` gets is fit to be a file name. The simulator buffers what it writes.
    pub fn new(open: impl FnMut(&str) -> io::Result<Option<CaptureFile>> + 'a) -> Self {
        Self { open: Box::new(open), snaplen: 65_535 }
    }

    /// Keeps at most `bytes` of each packet (tools then skip its transport checksum).
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
