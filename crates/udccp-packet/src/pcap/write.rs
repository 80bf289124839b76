//! Writes classic pcap files with nanoseconds.

use std::io::{self, Write};

use crate::ip::LinkType;

/// Magic number of a file with nanosecond timestamps.
const MAGIC_NANOS: u32 = 0xa1b2_3c4d;
/// Version 2.4 of the format, as a little-endian word with both halves.
const VERSION: u32 = 4 << 16 | 2;

const ZEROS: [u8; 4096] = [0; 4096];

/// Writes a capture file, packet by packet. It does not buffer: give it a `BufWriter`.
#[derive(Debug)]
pub struct Writer<W> {
    out: W,
    snaplen: usize,
}

impl<W: Write> Writer<W> {
    /// Starts a file with packets of at most `snaplen` bytes; the rest of longer packets is cut
    /// off.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn new(mut out: W, link: LinkType, snaplen: u32) -> io::Result<Self> {
        // Zeros: no time zone offset and no accuracy.
        for word in [MAGIC_NANOS, VERSION, 0, 0, snaplen, link.number()] {
            out.write_all(&word.to_le_bytes())?;
        }
        Ok(Self { out, snaplen: snaplen as usize })
    }

    /// Writes a packet that consists of `parts` followed by `zeros` zero bytes, with a time in
    /// nanoseconds since 1970.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn packet(&mut self, epoch_ns: u64, parts: &[&[u8]], zeros: usize) -> io::Result<()> {
        let len = zeros + parts.iter().map(|part| part.len()).sum::<usize>();
        let mut left = len.min(self.snaplen);
        let (seconds, nanos) = (epoch_ns / 1_000_000_000, epoch_ns % 1_000_000_000);
        for word in [seconds, nanos, left as u64, len as u64] {
            self.out.write_all(&(word as u32).to_le_bytes())?;
        }
        for part in parts {
            let kept = &part[..part.len().min(left)];
            self.out.write_all(kept)?;
            left -= kept.len();
        }
        while left > 0 {
            let kept = &ZEROS[..ZEROS.len().min(left)];
            self.out.write_all(kept)?;
            left -= kept.len();
        }
        Ok(())
    }

    /// The underlying writer.
    pub const fn get_ref(&self) -> &W {
        &self.out
    }

    /// Flushes the underlying writer.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::super::{Frame, Reader};
    use super::*;

    #[test]
    fn written_files_round_trip() {
        let mut file = Vec::new();
        let mut writer = Writer::new(&mut file, LinkType::RawIp, 6).unwrap();
        writer.packet(1_700_000_000_000_000_001, &[&[1, 2], &[3]], 2).unwrap();
        writer.packet(5, &[&[1, 2, 3, 4]], 5000).unwrap();
        writer.packet(6, &[&[1; 9], &[2]], 0).unwrap();
        let frame = |epoch_ns: u64, bytes: &[u8]| Frame {
            epoch_ns: Some(epoch_ns),
            link: 101,
            bytes: bytes.into(),
        };
        let frames: Vec<_> = Reader::open(&file[..]).unwrap().map(Result::unwrap).collect();
        let expected = [
            frame(1_700_000_000_000_000_001, &[1, 2, 3, 0, 0]),
            frame(5, &[1, 2, 3, 4, 0, 0]),
            frame(6, &[1; 6]),
        ];
        assert_eq!(frames, expected);
        assert_eq!(file[24 + 16 + 5 + 12..][..4], 5004_u32.to_le_bytes(), "the length that it had");
    }
}
