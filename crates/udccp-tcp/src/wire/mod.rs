//! TCP header bytes: a small honest value with `parse` and `emit` (RFC 9293 section 3.1).

mod checksum;
mod options;

use bytes::BytesMut;
use udccp_base::{Datagram, Payload};

pub(crate) use checksum::Sum;
pub(crate) use options::{MAX_OPTIONS, SackBuffer};
pub use options::{SackBlocks, TcpOptions};

/// Length of a header without options, in bytes.
pub(crate) const FIXED_HEADER: usize = 20;

/// Length of a header with timestamps and nothing else: all segments of a flow but a few.
const USUAL: usize = FIXED_HEADER + 12;

/// The control bits of the header (RFC 9293 section 3.1, RFC 3168 section 6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push function.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x10);
    /// ECN echo.
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced.
    pub const CWR: Self = Self(0x80);

    /// Whether all bits of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// One TCP header with its options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpHeader<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Sequence number of the first byte (or of the SYN).
    pub seq: u32,
    /// Next sequence number expected, where [`Flags::ACK`] is set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window field as on the wire, not yet scaled.
    pub window: u16,
    /// Options.
    pub options: TcpOptions<'a>,
}

/// Why bytes are no TCP segment; the segment is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Shorter than a header, or than its own data offset says.
    Truncated,
    /// The data offset is smaller than a header.
    DataOffset,
    /// The checksum does not fit.
    Checksum,
}

impl<'a> TcpHeader<'a> {
    /// Reads the header of a whole datagram and checks its checksum; returns it with the number
    /// of data bytes. For whoever looks on: recorders, tests, tools.
    ///
    /// # Errors
    /// When the bytes are no intact TCP segment.
    pub fn of(datagram: &'a Datagram) -> Result<(Self, usize), WireError> {
        let (src, dst) = (datagram.src.ip(), datagram.dst.ip());
        let pseudo = Sum::pseudo_header(src, dst, datagram.protocol);
        Self::parse(&datagram.header, &datagram.payload, pseudo)
    }

    /// Reads a header and checks the checksum over header, rest of `bytes` and `payload`.
    /// Returns the header and the number of data bytes in the segment.
    #[inline]
    pub(crate) fn parse(
        bytes: &'a [u8],
        payload: &Payload,
        pseudo: Sum,
    ) -> Result<(Self, usize), WireError> {
        if let (Ok(usual), Payload::Zeros(zeros)) = (<&[u8; USUAL]>::try_from(bytes), payload)
            && usual[12] >> 4 == (USUAL / 4) as u8
        {
            // The size of nearly every segment, known to the compiler.
            let sum = pseudo.add_length(USUAL + *zeros as usize).add(usual);
            return Self::checked(usual, &usual[FIXED_HEADER..], sum).map(|h| (h, *zeros as usize));
        }
        Self::parse_any(bytes, payload, pseudo)
    }

    fn parse_any(
        bytes: &'a [u8],
        payload: &Payload,
        pseudo: Sum,
    ) -> Result<(Self, usize), WireError> {
        let (fixed, rest) =
            bytes.split_first_chunk::<FIXED_HEADER>().ok_or(WireError::Truncated)?;
        let data_offset = usize::from(fixed[12] >> 4) * 4;
        let options_len = data_offset.checked_sub(FIXED_HEADER).ok_or(WireError::DataOffset)?;
        let options = rest.get(..options_len).ok_or(WireError::Truncated)?;
        let mut sum = pseudo.add_length(bytes.len() + payload.len()).add(bytes);
        if let Payload::Bytes(data) = payload {
            sum = add_after(sum, bytes.len(), data);
        }
        let data = rest.len() - options_len + payload.len();
        Self::checked(bytes, options, sum).map(|header| (header, data))
    }

    /// Reads the fields of a segment whose checksummed bytes add up to `sum`.
    #[inline]
    fn checked(bytes: &[u8], options: &'a [u8], sum: Sum) -> Result<Self, WireError> {
        let fixed = bytes.first_chunk::<FIXED_HEADER>().ok_or(WireError::Truncated)?;
        if sum.finish() != 0 {
            return Err(WireError::Checksum);
        }
        let half = |i: usize| u16::from_be_bytes([fixed[i], fixed[i + 1]]);
        let word =
            |i: usize| u32::from_be_bytes([fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]]);
        Ok(Self {
            src_port: half(0),
            dst_port: half(2),
            seq: word(4),
            ack: word(8),
            flags: Flags(fixed[13]),
            window: half(14),
            options: TcpOptions::parse(options),
        })
    }

    /// The same header without its SACK blocks, which lie in the bytes it was read from.
    #[must_use]
    pub fn without_sack(self) -> TcpHeader<'static> {
        let options = self.options;
        TcpHeader {
            src_port: self.src_port,
            dst_port: self.dst_port,
            seq: self.seq,
            ack: self.ack,
            flags: self.flags,
            window: self.window,
            options: TcpOptions {
                mss: options.mss,
                window_scale: options.window_scale,
                sack_permitted: options.sack_permitted,
                timestamps: options.timestamps,
                sack: SackBlocks::default(),
            },
        }
    }

    /// Appends the header to `out`, with the checksum for `zeros` zero bytes of data after it.
    #[inline]
    pub(crate) fn emit(&self, out: &mut BytesMut, pseudo: Sum, zeros: usize) {
        let mut b = [0; FIXED_HEADER + MAX_OPTIONS];
        let (fixed, options) = b.split_at_mut(FIXED_HEADER);
        if let Some(timestamps) = self.options.only_timestamps() {
            options[..USUAL - FIXED_HEADER].copy_from_slice(&timestamps);
            self.write_fixed(fixed, USUAL);
            // The same steps as below, with a length that the compiler knows.
            let sum = pseudo.add_length(USUAL + zeros).add(&b[..USUAL]).finish();
            b[16..18].copy_from_slice(&sum.to_be_bytes());
            out.extend_from_slice(&b[..USUAL]);
            return;
        }
        let len = FIXED_HEADER + self.options.emit(options);
        self.write_fixed(fixed, len);
        let sum = pseudo.add_length(len + zeros).add(&b[..len]).finish();
        b[16..18].copy_from_slice(&sum.to_be_bytes());
        out.extend_from_slice(&b[..len]);
    }

    /// Writes all fields but the checksum; `len` is that of the header with its options.
    #[inline]
    fn write_fixed(&self, b: &mut [u8], len: usize) {
        b[0..2].copy_from_slice(&self.src_port.to_be_bytes());
        b[2..4].copy_from_slice(&self.dst_port.to_be_bytes());
        b[4..8].copy_from_slice(&self.seq.to_be_bytes());
        b[8..12].copy_from_slice(&self.ack.to_be_bytes());
        b[12] = (len as u8 / 4) << 4;
        b[13] = self.flags.0;
        b[14..16].copy_from_slice(&self.window.to_be_bytes());
    }
}

/// Adds `data` that follows `before` bytes: after an odd number of bytes every byte of it
/// stands in the other half of its word.
fn add_after(sum: Sum, before: usize, data: &[u8]) -> Sum {
    if before.is_multiple_of(2) {
        return sum.add(data);
    }
    let (first, rest) = data.split_at(data.len().min(1));
    first.iter().fold(sum, |s, &b| s.add(&[0, b])).add(rest)
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use bytes::Bytes;
    use udccp_base::Seed;

    use super::*;

    fn pseudo() -> Sum {
        let ip = |n| IpAddr::from([10, 0, 0, n]);
        Sum::pseudo_header(ip(1), ip(2), 6)
    }

    fn example() -> TcpHeader<'static> {
        TcpHeader {
            src_port: 40_001,
            dst_port: 5001,
            seq: 0xfedc_ba98,
            ack: 0x0123_4567,
            flags: Flags::ACK.with(Flags::PSH),
            window: 0xbeef,
            options: TcpOptions { timestamps: Some((9, 8)), ..TcpOptions::default() },
        }
    }

    #[test]
    fn a_header_is_read_back_wherever_its_data_lies() {
        let mut out = BytesMut::new();
        example().emit(&mut out, pseudo(), 1448);
        let counted = TcpHeader::parse(&out, &Payload::Zeros(1448), pseudo());
        assert_eq!(counted, Ok((example(), 1448)));
        let real = Payload::Bytes(Bytes::from(vec![0; 1448]));
        assert_eq!(TcpHeader::parse(&out, &real, pseudo()), counted);
        let mut whole = out.to_vec();
        whole.resize(out.len() + 1448, 0);
        assert_eq!(TcpHeader::parse(&whole, &Payload::EMPTY, pseudo()), counted);
        whole.truncate(out.len() + 447);
        assert_eq!(TcpHeader::parse(&whole, &Payload::Zeros(1001), pseudo()), counted);
    }

    #[test]
    fn one_changed_bit_is_found() {
        let mut out = BytesMut::new();
        example().emit(&mut out, pseudo(), 10);
        for bit in 0..out.len() * 8 {
            let mut bad = out.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(TcpHeader::parse(&bad, &Payload::Zeros(10), pseudo()).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let mut rng = Seed(5).stream("header");
        for _ in 0..20_000 {
            let len = rng.below(70) as usize;
            let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            let _ = TcpHeader::parse(&bytes, &Payload::Zeros(rng.below(9) as u32), pseudo());
        }
    }
}
