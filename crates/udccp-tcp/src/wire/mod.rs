//! TCP header bytes: a small value with `parse` and `emit` (RFC 9293 section 3.1).

mod options;

use bytes::BytesMut;
use udccp_base::{Datagram, Payload};
use udccp_packet::PseudoHeader;
use udccp_packet::checksum::Sum;

use options::TIMESTAMPS_ALONE;
pub(crate) use options::{MAX_OPTIONS, SackBuffer};
pub use options::{SackBlocks, TcpOptions};

/// Length of a header without options, in bytes.
pub(crate) const FIXED_HEADER: usize = 20;

/// Length of a header with only timestamps, as in nearly all segments of a flow.
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
    /// The acknowledgement field is valid.
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
    /// Next sequence number expected, if [`Flags::ACK`] is set.
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// Window field as on the wire, not yet scaled.
    pub window: u16,
    /// Options.
    pub options: TcpOptions<'a>,
}

/// The header of nearly every segment: no flags but ACK and PSH, no options but timestamps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualHeader {
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) window: u16,
    /// TSval and TSecr.
    pub(crate) timestamps: (u32, u32),
}

impl UsualHeader {
    /// Reads such a header between these ports; `None` if it is another. The checksum is not
    /// verified.
    #[inline(always)]
    pub(crate) fn of(bytes: &[u8], (from, to): (u16, u16)) -> Option<Self> {
        const CONTROL: u32 = (USUAL as u32 / 4) << 28 | (Flags::ACK.0 as u32) << 16;
        const IGNORED: u32 = (Flags::PSH.0 as u32) << 16 | 0xffff;
        let (words, _) = <&[u8; USUAL]>::try_from(bytes).ok()?.as_chunks::<4>();
        let word = |i: usize| u32::from_be_bytes(words[i]);
        let is_usual = word(0) == (u32::from(from) << 16 | u32::from(to))
            && word(3) & !IGNORED == CONTROL
            && word(5) == TIMESTAMPS_ALONE;
        let (seq, ack, window) = (word(1), word(2), word(3) as u16);
        is_usual.then(|| Self { seq, ack, window, timestamps: (word(6), word(7)) })
    }
}

/// Why bytes are not a TCP segment; the segment is dropped and counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// Shorter than a header, or than its data offset.
    Truncated,
    /// The data offset is smaller than a header.
    DataOffset,
    /// The checksum is wrong.
    Checksum,
}

impl<'a> TcpHeader<'a> {
    /// Reads the header of a whole datagram and checks its checksum; returns it with the number of
    /// data bytes. For observers: recorders, tests, tools.
    ///
    /// # Errors
    /// If the bytes are not an intact TCP segment.
    pub fn of(datagram: &'a Datagram) -> Result<(Self, usize), WireError> {
        let pseudo = PseudoHeader::new(datagram.src.ip(), datagram.dst.ip());
        let pseudo = pseudo.sum(datagram.protocol, 0);
        let mut header = Self::default();
        let data = header.read(&datagram.header, &datagram.payload, Some(pseudo))?;
        Ok((header, data))
    }

    /// Reads a header and, if the sum of the pseudo-header is given, verifies the checksum over
    /// header, rest of `bytes` and `payload`. Returns the number of data bytes in the segment.
    ///
    /// Writes the fields in place: moving the whole value costs more than reading it.
    #[inline]
    pub(crate) fn read(
        &mut self,
        bytes: &'a [u8],
        payload: &Payload,
        pseudo: Option<Sum>,
    ) -> Result<usize, WireError> {
        let (fixed, rest) =
            bytes.split_first_chunk::<FIXED_HEADER>().ok_or(WireError::Truncated)?;
        let data_offset = usize::from(fixed[12] >> 4) * 4;
        let options_len = data_offset.checked_sub(FIXED_HEADER).ok_or(WireError::DataOffset)?;
        let options = rest.get(..options_len).ok_or(WireError::Truncated)?;
        if pseudo.is_some_and(|pseudo| !is_intact(bytes, payload, pseudo)) {
            return Err(WireError::Checksum);
        }
        let half = |i: usize| u16::from_be_bytes([fixed[i], fixed[i + 1]]);
        let word =
            |i: usize| u32::from_be_bytes([fixed[i], fixed[i + 1], fixed[i + 2], fixed[i + 3]]);
        (self.src_port, self.dst_port) = (half(0), half(2));
        (self.seq, self.ack) = (word(4), word(8));
        (self.flags, self.window) = (Flags(fixed[13]), half(14));
        self.options.read(options);
        Ok(rest.len() - options_len + payload.len())
    }

    /// The same header without its SACK blocks, which borrow from the bytes it was read from.
    #[must_use]
    pub fn without_sack(self) -> TcpHeader<'static> {
        let Self { src_port, dst_port, seq, ack, flags, window, options } = self;
        let TcpOptions { mss, window_scale, sack_permitted, timestamps, .. } = options;
        let sack = SackBlocks::default();
        let options = TcpOptions { mss, window_scale, sack_permitted, timestamps, sack };
        TcpHeader { src_port, dst_port, seq, ack, flags, window, options }
    }

    /// Appends the header to `out`, with the checksum for `zeros` zero bytes of data after it.
    #[inline]
    pub(crate) fn emit(&self, out: &mut BytesMut, pseudo: Sum, zeros: usize) {
        match self.usual_bytes(pseudo.number(), zeros) {
            Some(bytes) => out.extend_from_slice(&bytes),
            None => self.emit_any(out, pseudo, zeros),
        }
    }

    /// The complete header, if timestamps are its only options. `pseudo` is the sum of the
    /// pseudo-header as a number.
    #[inline]
    pub(crate) fn usual_bytes(&self, pseudo: u16, zeros: usize) -> Option<[u8; USUAL]> {
        let (val, echo) = self.options.only_timestamps()?;
        let fixed = self.fixed_words(USUAL);
        let timestamps = [TIMESTAMPS_ALONE, val, echo];
        let words = fixed.iter().chain(&timestamps).map(|word| u64::from(*word));
        let sum = u64::from(pseudo) + (USUAL + zeros) as u64 + words.sum::<u64>();
        let checksum = Sum::checksum_of_numbers(sum);
        let pair = |first: u32, second: u32| u64::from(first) << 32 | u64::from(second);
        let words = [
            pair(fixed[0], fixed[1]),
            pair(fixed[2], fixed[3]),
            pair(u32::from(checksum) << 16, timestamps[0]),
            pair(timestamps[1], timestamps[2]),
        ];
        let mut bytes = [0; USUAL];
        bytes.copy_from_slice(words.map(u64::to_be_bytes).as_flattened());
        Some(bytes)
    }

    fn emit_any(&self, out: &mut BytesMut, pseudo: Sum, zeros: usize) {
        let mut options = [0; MAX_OPTIONS];
        let options_len = self.options.emit(&mut options);
        let (options, len) = (&options[..options_len], FIXED_HEADER + options_len);
        let fixed = self.fixed_words(len);
        let mut sum = pseudo;
        sum.add_length(len + zeros);
        sum.add_words(&fixed);
        sum.add(options);
        put_fixed(out, fixed, sum);
        out.extend_from_slice(options);
    }

    /// The fixed header without its last word (checksum and urgent pointer); `len` is the length of
    /// the header with options.
    #[inline]
    const fn fixed_words(&self, len: usize) -> [u32; 4] {
        let control = (len as u32 / 4) << 28 | (self.flags.0 as u32) << 16 | self.window as u32;
        [(self.src_port as u32) << 16 | self.dst_port as u32, self.seq, self.ack, control]
    }
}

/// Whether the checksum over pseudo-header, header and data is correct.
#[inline]
fn is_intact(bytes: &[u8], payload: &Payload, pseudo: Sum) -> bool {
    let mut sum = pseudo;
    sum.add_length(bytes.len() + payload.len());
    match <&[u8; USUAL]>::try_from(bytes) {
        // A constant size, that of nearly every segment, for the optimiser.
        Ok(usual) => sum.add(usual),
        Err(_) => sum.add(bytes),
    }
    if let Payload::Bytes(data) = payload {
        sum.add(data);
    }
    sum.is_valid()
}

/// Writes the fixed header with the checksum for `sum`, eight bytes at a time. Smaller stores would
/// delay the following loads of larger words.
#[inline]
fn put_fixed(out: &mut BytesMut, fixed: [u32; 4], sum: Sum) {
    put_pair(out, fixed[0], fixed[1]);
    put_pair(out, fixed[2], fixed[3]);
    out.extend_from_slice(&(u32::from(sum.checksum()) << 16).to_be_bytes());
}

#[inline]
fn put_pair(out: &mut BytesMut, first: u32, second: u32) {
    out.extend_from_slice(&(u64::from(first) << 32 | u64::from(second)).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use core::net::IpAddr;

    use bytes::Bytes;
    use udccp_base::Seed;

    use super::*;

    fn pseudo() -> Sum {
        let ip = |n| IpAddr::from([10, 0, 0, n]);
        PseudoHeader::new(ip(1), ip(2)).sum(6, 0)
    }

    fn parse<'a>(bytes: &'a [u8], p: &Payload) -> Result<(TcpHeader<'a>, usize), WireError> {
        let mut header = TcpHeader::default();
        header.read(bytes, p, Some(pseudo())).map(|data| (header, data))
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
    fn a_header_round_trips_wherever_its_data_lies() {
        let mut out = BytesMut::new();
        example().emit(&mut out, pseudo(), 1448);
        let counted = parse(&out, &Payload::Zeros(1448));
        assert_eq!(counted, Ok((example(), 1448)));
        let real = Payload::Bytes(Bytes::from(vec![0; 1448]));
        assert_eq!(parse(&out, &real), counted);
        let mut whole = out.to_vec();
        whole.resize(out.len() + 1448, 0);
        assert_eq!(parse(&whole, &Payload::EMPTY), counted);
        whole.truncate(out.len() + 447);
        assert_eq!(parse(&whole, &Payload::Zeros(1001)), counted);
    }

    #[test]
    fn one_changed_bit_is_found() {
        let mut out = BytesMut::new();
        example().emit(&mut out, pseudo(), 10);
        for bit in 0..out.len() * 8 {
            let mut bad = out.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(parse(&bad, &Payload::Zeros(10)).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic() {
        let mut rng = Seed(5).stream("header");
        for _ in 0..20_000 {
            let len = rng.below(70) as usize;
            let bytes: Vec<u8> = (0..len).map(|_| rng.next_u64() as u8).collect();
            let _ = parse(&bytes, &Payload::Zeros(rng.below(9) as u32));
        }
    }
}
