//! Writes packets: header, options, padding, Data Offset, checksum. The only allocation is the
//! growth of the buffer.

use core::fmt;

use bytes::{BufMut, BytesMut};

use crate::checksum::{PseudoHeader, Sum};
use crate::option::{MAX_DATA, OptionRef, Out};
use crate::reset::ResetCode;
use crate::seq::Seqno;
use crate::service::ServiceCode;
use crate::types::PacketType;
use crate::view::covered_len;
use crate::{IP_PROTOCOL, MAX_HEADER_LEN};

/// Capacity requested at once: the longest fixed header and the options of most packets.
const USUAL_LEN: usize = 64;

/// The fixed part of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// DCCP source port.
    pub src_port: u16,
    /// DCCP destination port.
    pub dst_port: u16,
    /// CCVal, 0 to 15; zero unless the CCID sets another value.
    pub ccval: u8,
    /// Checksum Coverage, 0 to 15. A value that covers more data than there is becomes 0 (all of
    /// it).
    pub cscov: u8,
    /// Whether to use 48-bit sequence numbers. Types that require them use them in any case.
    pub x: bool,
    /// Sequence Number; only its low 24 bits are sent if `x` is false.
    pub seq: Seqno,
    /// Packet type and the fields that belong to it.
    pub kind: HeaderKind,
}

/// A packet type with its own fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeaderKind {
    /// DCCP-Request.
    Request {
        /// Service Code.
        service: ServiceCode,
    },
    /// DCCP-Response.
    Response {
        /// Acknowledgement Number.
        ack: Seqno,
        /// Service Code.
        service: ServiceCode,
    },
    /// DCCP-Data.
    Data,
    /// DCCP-Ack.
    Ack {
        /// Acknowledgement Number.
        ack: Seqno,
    },
    /// DCCP-DataAck.
    DataAck {
        /// Acknowledgement Number.
        ack: Seqno,
    },
    /// DCCP-CloseReq.
    CloseReq {
        /// Acknowledgement Number.
        ack: Seqno,
    },
    /// DCCP-Close.
    Close {
        /// Acknowledgement Number.
        ack: Seqno,
    },
    /// DCCP-Reset.
    Reset {
        /// Acknowledgement Number.
        ack: Seqno,
        /// Reset Code.
        code: ResetCode,
        /// Data 1 to Data 3.
        data: [u8; 3],
    },
    /// DCCP-Sync.
    Sync {
        /// Acknowledgement Number.
        ack: Seqno,
    },
    /// DCCP-SyncAck.
    SyncAck {
        /// Acknowledgement Number.
        ack: Seqno,
    },
    /// DCCP-Listen (RFC 5596).
    Listen {
        /// Service Code.
        service: ServiceCode,
    },
}

/// The option does not fit: a header has at most 1020 bytes, and an option 253 bytes of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFull;

impl fmt::Display for HeaderFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the option does not fit into the header")
    }
}

impl core::error::Error for HeaderFull {}

impl HeaderKind {
    /// A packet of type `ty`, with those of the given fields that the type has. A Reset gets code
    /// and data zero; see [`HeaderKind::with_reset`].
    pub const fn of(ty: PacketType, ack: Seqno, service: ServiceCode) -> Self {
        match ty {
            PacketType::Request => Self::Request { service },
            PacketType::Response => Self::Response { ack, service },
            PacketType::Data => Self::Data,
            PacketType::Ack => Self::Ack { ack },
            PacketType::DataAck => Self::DataAck { ack },
            PacketType::CloseReq => Self::CloseReq { ack },
            PacketType::Close => Self::Close { ack },
            PacketType::Reset => Self::Reset { ack, code: ResetCode::Unspecified, data: [0; 3] },
            PacketType::Sync => Self::Sync { ack },
            PacketType::SyncAck => Self::SyncAck { ack },
            PacketType::Listen => Self::Listen { service },
        }
    }

    /// Sets code and data if this is a Reset.
    #[must_use]
    pub const fn with_reset(self, code: ResetCode, data: [u8; 3]) -> Self {
        match self {
            Self::Reset { ack, .. } => Self::Reset { ack, code, data },
            other => other,
        }
    }

    /// The packet type.
    #[inline]
    pub const fn packet_type(&self) -> PacketType {
        match self {
            Self::Request { .. } => PacketType::Request,
            Self::Response { .. } => PacketType::Response,
            Self::Data => PacketType::Data,
            Self::Ack { .. } => PacketType::Ack,
            Self::DataAck { .. } => PacketType::DataAck,
            Self::CloseReq { .. } => PacketType::CloseReq,
            Self::Close { .. } => PacketType::Close,
            Self::Reset { .. } => PacketType::Reset,
            Self::Sync { .. } => PacketType::Sync,
            Self::SyncAck { .. } => PacketType::SyncAck,
            Self::Listen { .. } => PacketType::Listen,
        }
    }

    /// The Acknowledgement Number, if the type has one.
    #[inline]
    pub const fn ack(&self) -> Option<Seqno> {
        match *self {
            Self::Request { .. } | Self::Data | Self::Listen { .. } => None,
            Self::Response { ack, .. }
            | Self::Ack { ack }
            | Self::DataAck { ack }
            | Self::CloseReq { ack }
            | Self::Close { ack }
            | Self::Reset { ack, .. }
            | Self::Sync { ack }
            | Self::SyncAck { ack } => Some(ack),
        }
    }

    /// The word after the numbers, if the type has one: Service Code, or Reset Code and data.
    #[inline]
    const fn word(&self) -> Option<u32> {
        match *self {
            Self::Request { service }
            | Self::Response { service, .. }
            | Self::Listen { service } => Some(service.0),
            Self::Reset { code, data: [d1, d2, d3], .. } => {
                Some(u32::from_be_bytes([code.number(), d1, d2, d3]))
            }
            _ => None,
        }
    }
}

impl Header {
    /// The packet type.
    #[inline]
    pub const fn packet_type(&self) -> PacketType {
        self.kind.packet_type()
    }

    /// Whether the packet is sent with 48-bit sequence numbers.
    #[inline]
    pub const fn is_long(&self) -> bool {
        //= 4340-5.1-8
        //= 4340-5.1-9
        //= 4340-5.2-1
        //= 4340-5.3-1
        //= 4340-5.5-1
        //= 4340-5.6-1
        //= 4340-5.7-1
        self.x || !self.packet_type().may_use_short_seqnos()
    }

    /// Length in bytes, without options.
    #[inline]
    pub const fn fixed_len(&self) -> usize {
        self.packet_type().fixed_header_len(self.is_long())
    }

    /// Appends the fixed header, with Data Offset, CCVal, CsCov and Checksum zero, and returns its
    /// sum. Summing registers is cheaper than reading back the stored bytes. One long append is
    /// cheaper than several short ones, each of which waits for the length of the one before.
    fn put(&self, buf: &mut BytesMut) -> Sum {
        buf.reserve(USUAL_LEN);
        let ports = u64::from(self.src_port) << 48 | u64::from(self.dst_port) << 32;
        let type_x = (self.packet_type().number() << 1) | u8::from(self.is_long());
        let sum = if self.is_long() {
            let word = u64::from(type_x) << 56 | self.seq.value();
            match self.kind.ack() {
                Some(ack) => put_words(buf, [ports, word, ack.value()]),
                None => put_words(buf, [ports, word]),
            }
        } else {
            let word = u64::from(type_x) << 56 | u64::from(self.seq.low24()) << 32;
            match self.kind.ack() {
                Some(ack) => put_words(buf, [ports, word | u64::from(ack.low24())]),
                None => {
                    let sum = put_words(buf, [ports, word]);
                    buf.truncate(buf.len() - 4);
                    sum
                }
            }
        };
        self.put_last_word(buf, sum)
    }

    /// Appends Service Code or Reset Code.
    #[inline]
    fn put_last_word(&self, buf: &mut BytesMut, mut sum: Sum) -> Sum {
        if let Some(word) = self.kind.word() {
            buf.put_u32(word);
            sum.add_u64(u64::from(word));
        }
        sum
    }
}

/// Appends words of eight bytes in network order, and returns their sum.
#[inline]
fn put_words<const N: usize>(buf: &mut BytesMut, words: [u64; N]) -> Sum {
    let bytes = words.map(u64::to_be_bytes);
    buf.extend_from_slice(bytes.as_flattened());
    let mut sum = Sum::new();
    words.iter().for_each(|&word| sum.add_u64(word));
    sum
}

/// Appends a packet's header to a buffer: first the fixed part, then options, then
/// [`Emitter::finish`] or [`Emitter::finish_encapsulated`], without which the bytes do not form a
/// packet.
#[derive(Debug)]
#[must_use = "the header is not complete before it is finished"]
pub struct Emitter<'b> {
    buf: &'b mut BytesMut,
    start: usize,
    fixed_len: usize,
    /// Sum of everything so far, without Data Offset, CCVal and CsCov.
    sum: Sum,
    ccval_cscov: u8,
}

impl<'b> Emitter<'b> {
    /// Starts a packet at the end of `buf`.
    #[inline]
    pub fn new(buf: &'b mut BytesMut, header: &Header) -> Self {
        let start = buf.len();
        let sum = header.put(buf);
        let fixed_len = buf.len() - start;
        let ccval_cscov = (header.ccval << 4) | (header.cscov & 0xf);
        Self { buf, start, fixed_len, sum, ccval_cscov }
    }

    /// Appends an option in its shortest encoding. If it does not fit, nothing is appended.
    #[inline]
    pub fn option(&mut self, option: &OptionRef<'_>) -> Result<(), HeaderFull> {
        let len = option.encoded_len();
        if len > MAX_DATA + 2 || len > self.remaining() {
            return Err(HeaderFull);
        }
        option.put(len as u8, &mut Out { buf: self.buf, sum: &mut self.sum });
        Ok(())
    }

    /// Appends an option with these type and data bytes, unchanged.
    pub fn raw_option(&mut self, kind: u8, data: &[u8]) -> Result<(), HeaderFull> {
        self.option(&OptionRef::Unknown { kind, data })
    }

    /// Bytes of options so far, without final padding.
    #[inline]
    pub fn options_len(&self) -> usize {
        self.header_len() - self.fixed_len
    }

    /// Bytes left for further options.
    #[inline]
    pub fn remaining(&self) -> usize {
        MAX_HEADER_LEN.saturating_sub(self.header_len())
    }

    #[inline]
    fn header_len(&self) -> usize {
        self.buf.len() - self.start
    }

    /// Completes a packet whose data is `payload` followed by `zeros` zero bytes. The data is
    /// summed according to Checksum Coverage, but not appended. Returns the header's length in
    /// bytes.
    #[inline]
    pub fn finish(self, pseudo: &PseudoHeader, payload: &[u8], zeros: usize) -> usize {
        // Field by field: moving the whole emitter costs as much as appending an option.
        complete(self.buf, self.start, self.sum, self.ccval_cscov, pseudo, payload, zeros)
    }

    //= 6773-3.3-1
    /// Completes a packet with `data_len` bytes of data that is sent inside UDP. There the UDP
    /// checksum is used and the Checksum field is zero (RFC 6773 section 3.3). Returns the header's
    /// length in bytes.
    #[inline]
    pub fn finish_encapsulated(self, data_len: usize) -> usize {
        let header_len = pad(self.buf, self.start);
        let word = offset_word(header_len, self.ccval_cscov, data_len);
        set_word(self.buf, self.start, u32::from(word) << 16);
        header_len
    }
}

/// [`Emitter::finish`] of an emitter with these fields.
fn complete(
    buf: &mut BytesMut,
    start: usize,
    sum: Sum,
    ccval_cscov: u8,
    pseudo: &PseudoHeader,
    payload: &[u8],
    zeros: usize,
) -> usize {
    let data_len = payload.len() + zeros;
    let header_len = pad(buf, start);
    let word = offset_word(header_len, ccval_cscov, data_len);
    let mut sum = sum.at_even_place();
    sum.add_u64(u64::from(word));
    sum.add_sum(pseudo.sum(IP_PROTOCOL, header_len + data_len));
    // The header is a whole number of words, so the data begins at an even offset.
    let covered = covered_len(word as u8 & 0xf, data_len);
    sum.add(payload.get(..covered).unwrap_or(payload));
    set_word(buf, start, u32::from(word) << 16 | u32::from(sum.checksum()));
    header_len
}

/// Pads the options of the header that begins at `start` and returns the header's length.
#[inline]
fn pad(buf: &mut BytesMut, start: usize) -> usize {
    //= 4340-5.8-1
    //= 4340-5.8-2
    //= 4340-5.8.1-1
    let header_len = (buf.len() - start).next_multiple_of(4);
    match start + header_len - buf.len() {
        1 => buf.put_slice(&[0; 1]),
        2 => buf.put_slice(&[0; 2]),
        3 => buf.put_slice(&[0; 3]),
        _ => {}
    }
    header_len
}

/// Data Offset, CCVal and Checksum Coverage. The latter becomes 0 if it would make the packet
/// invalid.
#[inline]
fn offset_word(header_len: usize, ccval_cscov: u8, data_len: usize) -> u16 {
    //= 4340-9.2-1
    let too_far = covered_len(ccval_cscov & 0xf, data_len) > data_len;
    let low = if too_far { ccval_cscov & 0xf0 } else { ccval_cscov };
    u16::from_be_bytes([(header_len / 4) as u8, low])
}

/// Writes Data Offset, CCVal, CsCov and Checksum.
#[inline]
fn set_word(buf: &mut BytesMut, start: usize, word: u32) {
    if let Some(field) = buf.get_mut(start + 4..start + 8) {
        field.copy_from_slice(&word.to_be_bytes());
    }
}
