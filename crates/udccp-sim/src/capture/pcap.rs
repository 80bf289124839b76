//! The classic pcap format, streaming.

use std::io::{self, BufWriter, Write};

use udccp_base::{Datagram, Instant, Payload};

use super::CaptureFile;
use super::ip::{self, Envelope};

/// Magic number of a file with nanoseconds.
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// LINKTYPE_RAW: packets begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u32 = 101;

const ZEROS: [u8; 4096] = [0; 4096];

/// Writes one file, packet by packet.
pub(crate) struct PcapWriter {
    out: BufWriter<CaptureFile>,
    snaplen: usize,
    headers: Vec<u8>,
}

impl PcapWriter {
    /// Begins a file.
    pub(crate) fn new(out: CaptureFile, snaplen: u32) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 16, out);
        for word in [MAGIC_NANOS, 4 << 16 | 2, 0, 0, snaplen, LINKTYPE_RAW] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, snaplen: snaplen as usize, headers: Vec::with_capacity(64) })
    }

    /// Writes one packet with its envelope; a payload of zeros becomes bytes here.
    pub(crate) fn packet(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        envelope: Envelope,
    ) -> io::Result<()> {
        ip::write_headers(&mut self.headers, datagram, envelope);
        let len = self.headers.len() + datagram.transport_len();
        let kept = len.min(self.snaplen);
        let nanos = now.as_nanos();
        let record = [nanos / 1_000_000_000, nanos % 1_000_000_000, kept as u64, len as u64];
        for word in record {
            self.out.write_all(&(word as u32).to_le_bytes())?;
        }
        let mut left = kept;
        write_up_to(&mut self.out, &self.headers, &mut left)?;
        write_up_to(&mut self.out, &datagram.header, &mut left)?;
        match &datagram.payload {
            Payload::Bytes(bytes) => write_up_to(&mut self.out, bytes, &mut left)?,
            Payload::Zeros(_) => {
                while left > 0 {
                    write_up_to(&mut self.out, &ZEROS, &mut left)?;
                }
            }
        }
        Ok(())
    }

    /// Writes what is still buffered.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn write_up_to(out: &mut impl Write, bytes: &[u8], left: &mut usize) -> io::Result<()> {
    let take = bytes.len().min(*left);
    *left -= take;
    out.write_all(&bytes[..take])
}
