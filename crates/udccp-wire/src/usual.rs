//! Writes the headers of most packets from registers: the same bytes as [`crate::Emitter`] writes,
//! but without a growing buffer.

use bytes::{BufMut, BytesMut};

use crate::MAX_HEADER_LEN;
use crate::checksum::Sum;
use crate::emit::{Header, HeaderKind};
use crate::option::{MAX_DATA, kind};
use crate::seq::Seqno;
use crate::types::PacketType;
use crate::view::SEQ_MASK;

/// Length of the header of a Data packet with a 48-bit number and no options, in bytes.
pub(crate) const DATA_LEN: usize = 16;

/// Length of the header of an Ack or a DataAck with a 48-bit number and no options, in bytes.
const ACK_LEN: usize = 24;

/// How the Checksum is computed for a packet without data, with zeros as data, or inside UDP.
#[derive(Clone, Copy, Debug)]
pub enum Checksum {
    /// Over the pseudo-header, whose sum with a length of 0 this is as a number ([`Sum::number`]),
    /// the header and this many zero bytes of data.
    OfZeros(u16, usize),
    //= 6773-3.3-1
    /// Not at all: inside UDP the field is zero (RFC 6773 section 3.3).
    Zero,
}

impl Checksum {
    /// The field's value for a header of `len` bytes: these words, and the sum of all others.
    #[inline(always)]
    fn of<const N: usize>(self, words: [u64; N], others: u64, len: usize) -> u64 {
        let Self::OfZeros(pseudo, zeros) = self else { return 0 };
        let sum = words.into_iter().fold(u64::from(pseudo) + (len + zeros) as u64, add);
        u64::from(Sum::checksum_of_numbers(add(sum, others)))
    }
}

/// Adds a word to a ones' complement sum. The carry of a whole word is added at the other end, as
/// those of its parts would be.
#[inline(always)]
const fn add(sum: u64, word: u64) -> u64 {
    let (sum, carry) = sum.overflowing_add(word);
    sum + carry as u64
}

/// The sum of the words of these bytes, a whole number of eights. All zeros at the end of a fixed
/// number of bytes are added faster than a loop ends.
#[inline(always)]
fn sum_of<const BYTES: usize>(bytes: &[u8; BYTES]) -> u64 {
    let words = bytes.chunks_exact(8).filter_map(<[u8]>::first_chunk);
    // Only the sum is converted to a number (RFC 1071 section 2).
    u64::from_be(words.fold(0, |sum, word| add(sum, u64::from_ne_bytes(*word))))
}

/// Headers of Data packets that differ only in number and CCVal.
#[derive(Clone, Copy, Debug)]
pub struct DataTemplate([u64; 2]);

/// The usual options of an Ack or DataAck of CCID 2.
#[derive(Clone, Copy, Debug)]
pub struct UsualAck<'a> {
    /// ECN Nonce Echo.
    pub nonce: bool,
    /// Cells of the Ack Vector.
    pub cells: &'a [u8],
    /// Elapsed Time; `None` if there is none.
    pub elapsed: Option<u32>,
}

/// The header of a Data packet with a 48-bit number and no options, whose Checksum covers all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainData {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// CCVal, 0 to 15.
    pub ccval: u8,
    /// Sequence number.
    pub seq: Seqno,
}

impl PlainData {
    /// Reads a header without data; `None` if it is any other. As in
    /// [`crate::PacketView::of_usual`], the Checksum is not checked.
    #[inline(always)]
    pub fn read(header: &[u8]) -> Option<Self> {
        let words = u128::from_be_bytes(*<&[u8; DATA_LEN]>::try_from(header).ok()?);
        let (first, second) = ((words >> 64) as u64, words as u64);
        // Reserved bits are never used.
        let is_plain = first >> 24 & 0xff == DATA_LEN as u64 / 4
            && first >> 16 & 0xf == 0
            && second >> 56 & 0x1f == u64::from(PacketType::Data.number()) << 1 | 1;
        is_plain.then(|| Self {
            src_port: (first >> 48) as u16,
            dst_port: (first >> 32) as u16,
            ccval: (first >> 20) as u8 & 0xf,
            seq: Seqno::new(second & SEQ_MASK),
        })
    }
}

/// The header of an Ack with 48-bit numbers, whose Checksum covers all, followed by no data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlainAck<'a> {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// CCVal, 0 to 15.
    pub ccval: u8,
    /// Sequence number.
    pub seq: Seqno,
    /// Acknowledgement number.
    pub ackno: Seqno,
    /// Options, with padding.
    pub options: &'a [u8],
}

impl<'a> PlainAck<'a> {
    /// Reads a header without data; `None` if it is any other. As in
    /// [`crate::PacketView::of_usual`], the Checksum is not checked.
    #[inline(always)]
    pub fn read(header: &'a [u8]) -> Option<Self> {
        let (words, rest) = header.split_first_chunk::<DATA_LEN>()?;
        let (third, options) = rest.split_first_chunk()?;
        let words = u128::from_be_bytes(*words);
        let (first, second) = ((words >> 64) as u64, words as u64);
        // Reserved bits are never used.
        let is_plain = (first >> 24 & 0xff) * 4 == header.len() as u64
            && first >> 16 & 0xf == 0
            && second >> 56 & 0x1f == u64::from(PacketType::Ack.number()) << 1 | 1;
        is_plain.then(|| Self {
            src_port: (first >> 48) as u16,
            dst_port: (first >> 32) as u16,
            ccval: (first >> 20) as u8 & 0xf,
            seq: Seqno::new(second & SEQ_MASK),
            ackno: Seqno::new(u64::from_be_bytes(*third) & SEQ_MASK),
            options,
        })
    }
}

impl Header {
    /// The whole header of a Data packet without options, as in most packets; `None` for any other
    /// header. The bytes are the same as [`crate::Emitter`] writes.
    #[inline(always)]
    pub fn plain_data(&self, checksum: Checksum) -> Option<[u8; DATA_LEN]> {
        let is_plain = matches!(self.kind, HeaderKind::Data) && self.is_usual();
        is_plain.then(|| self.usual_data(checksum))
    }

    /// As [`Self::plain_data`], for a header known to be of that kind.
    #[inline(always)]
    pub fn usual_data(&self, checksum: Checksum) -> [u8; DATA_LEN] {
        let [first, second] = self.first_words(DATA_LEN);
        let first = first | checksum.of([first, second], 0, DATA_LEN);
        (u128::from(first) << 64 | u128::from(second)).to_be_bytes()
    }

    /// The common part of headers of Data packets without options inside UDP, where the Checksum is
    /// zero; `None` for any other header.
    #[inline]
    pub fn data_template(&self) -> Option<DataTemplate> {
        let header = Self { ccval: 0, seq: Seqno::ZERO, ..*self };
        let is_data = matches!(self.kind, HeaderKind::Data) && self.is_usual();
        is_data.then(|| DataTemplate(header.first_words(DATA_LEN)))
    }

    /// Writes the whole header of an Ack or DataAck with an Ack Vector and optionally a short
    /// Elapsed Time to `room`, which must be zero; `None` for any other header, or longer options.
    /// The bytes are the same as [`crate::Emitter`] writes.
    #[inline(always)]
    pub fn usual_ack<'r>(
        &self,
        options: &UsualAck<'_>,
        checksum: Checksum,
        room: &'r mut [u8; UsualAck::ROOM],
    ) -> Option<&'r [u8]> {
        let (HeaderKind::Ack { ack } | HeaderKind::DataAck { ack }) = self.kind else {
            return None;
        };
        if !self.is_usual() {
            return None;
        }
        let (fixed, rest) = room.split_first_chunk_mut::<ACK_LEN>()?;
        let rest: &mut [u8; UsualAck::ROOM - ACK_LEN] = rest.first_chunk_mut()?;
        let len = (ACK_LEN + options.write(rest)?).next_multiple_of(4);
        let [mut first, number] = self.first_words(len);
        first |= checksum.of([first, number, ack.value()], sum_of(rest), len);
        fixed.copy_from_slice([first, number, ack.value()].map(u64::to_be_bytes).as_flattened());
        room.get(..len)
    }

    /// As [`Self::usual_ack`], for an Ack Vector of any length. Appends the header to `out`, which
    /// must be empty, and returns whether it did. Each option of a vector in several has the same
    /// nonce echo.
    #[inline(never)]
    pub fn long_ack(&self, options: &UsualAck<'_>, checksum: Checksum, out: &mut BytesMut) -> bool {
        let (HeaderKind::Ack { ack } | HeaderKind::DataAck { ack }) = self.kind else {
            return false;
        };
        let len = options.header_len();
        if !self.is_usual() || len > MAX_HEADER_LEN || options.elapsed > Some(0xffff) {
            return false;
        }
        out.resize(ACK_LEN, 0);
        options.append(out);
        out.resize(len, 0);
        let [mut first, number] = self.first_words(len);
        let mut options = Sum::new();
        options.add(&out[ACK_LEN..]);
        first |= checksum.of([first, number, ack.value()], options.number().into(), len);
        let fixed = [first, number, ack.value()].map(u64::to_be_bytes);
        out[..ACK_LEN].copy_from_slice(fixed.as_flattened());
        true
    }

    /// Whether the numbers are long and the Checksum covers all.
    #[inline]
    const fn is_usual(&self) -> bool {
        self.x && self.cscov == 0
    }

    /// The first 16 bytes of a header of `len` bytes, its Checksum zero.
    #[inline]
    const fn first_words(&self, len: usize) -> [u64; 2] {
        let ports = (self.src_port as u64) << 48 | (self.dst_port as u64) << 32;
        let offset = (len as u64 / 4) << 24 | (self.ccval as u64) << 20;
        let type_x = (self.packet_type().number() as u64) << 1 | 1;
        [ports | offset, type_x << 56 | self.seq.value()]
    }
}

impl DataTemplate {
    /// The header of the packet with this number and CCVal.
    #[inline]
    pub fn with(self, seq: Seqno, ccval: u8) -> [u8; DATA_LEN] {
        let Self([first, second]) = self;
        let words = u128::from(first | u64::from(ccval & 0xf) << 20) << 64;
        (words | u128::from(second | seq.value())).to_be_bytes()
    }
}

impl UsualAck<'_> {
    /// Longest header that [`Header::usual_ack`] writes, in bytes: some 60 cells of Ack Vector.
    pub const ROOM: usize = 96;

    /// Length of the header of an Ack or DataAck with these options, in bytes.
    pub fn header_len(&self) -> usize {
        let vector = self.cells.len() + 2 * self.cells.len().div_ceil(MAX_DATA);
        let elapsed = if self.elapsed.is_some() { 4 } else { 0 };
        (ACK_LEN + vector + elapsed).next_multiple_of(4)
    }

    const fn kind(&self) -> u8 {
        if self.nonce { kind::ACK_VECTOR_1 } else { kind::ACK_VECTOR_0 }
    }

    /// Appends the options without padding. A long Elapsed Time is cut.
    fn append(&self, out: &mut BytesMut) {
        for cells in self.cells.chunks(MAX_DATA) {
            out.extend_from_slice(&[self.kind(), cells.len() as u8 + 2]);
            out.extend_from_slice(cells);
        }
        if let Some(elapsed) = self.elapsed {
            out.extend_from_slice(&[kind::ELAPSED_TIME, 4]);
            out.put_u16(elapsed as u16);
        }
    }

    /// Writes the options, and returns their length in bytes; `None` where they do not fit.
    #[inline(always)]
    fn write(&self, out: &mut [u8]) -> Option<usize> {
        let vector = 2 + self.cells.len();
        let (place, rest) = out.split_at_mut_checked(vector)?;
        let (head, cells) = place.split_first_chunk_mut()?;
        *head = [self.kind(), vector as u8];
        cells.copy_from_slice(self.cells);
        let Some(elapsed) = self.elapsed else { return Some(vector) };
        let [high, low] = u16::try_from(elapsed).ok()?.to_be_bytes();
        *rest.first_chunk_mut()? = [kind::ELAPSED_TIME, 4, high, low];
        Some(vector + 4)
    }
}
