//! A checked view of a packet's bytes.

use crate::checksum::PseudoHeader;
use crate::emit::{Header, HeaderKind};
use crate::error::WireError;
use crate::options::Options;
use crate::reset::ResetCode;
use crate::seq::Seqno;
use crate::service::ServiceCode;
use crate::types::PacketType;

/// A sequence or acknowledgement number as carried in the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RawSeq {
    /// All 48 bits (X=1).
    Long(Seqno),
    /// The low 24 bits (X=0).
    Short(u32),
}

impl RawSeq {
    /// The whole number. If only 24 bits were sent, it is extended from `reference`: GSR for a
    /// Sequence Number, GSS for an Acknowledgement Number (RFC 4340 section 7.6).
    #[inline]
    pub const fn extend(self, reference: Seqno) -> Seqno {
        match self {
            Self::Long(seq) => seq,
            Self::Short(low) => Seqno::extend24(low, reference),
        }
    }

    /// The bits in the packet as a number; of a short one, the low 24 bits.
    #[inline]
    pub const fn bits(self) -> Seqno {
        match self {
            Self::Long(seq) => seq,
            Self::Short(low) => Seqno::new(low as u64),
        }
    }
}

/// A packet whose header has passed every check that does not depend on a connection: known type,
/// Data Offset within bounds, X as the type requires, Checksum Coverage within the data (RFC 4340
/// section 8.5, step 1). [`PacketView::verify_checksum`] checks the checksum, because inside UDP
/// there is none (RFC 6773 section 3.3).
///
/// No method panics, whatever the bytes are.
#[derive(Clone, Copy, Debug)]
pub struct PacketView<'a> {
    bytes: &'a [u8],
    total_len: usize,
    seq: u64,
    ack: u64,
    /// Service Code, or Reset Code with its three data bytes.
    word: u32,
    src_port: u16,
    dst_port: u16,
    offset: u16,
    fixed_len: u8,
    ccval_cscov: u8,
    packet_type: PacketType,
    x: bool,
}

pub(crate) const SEQ_MASK: u64 = (1 << 48) - 1;
const LOW_MASK: u64 = (1 << 24) - 1;

/// Type and X of packets with 48-bit numbers.
const DATA_LONG: u64 = long(PacketType::Data);
const ACK_LONG: u64 = long(PacketType::Ack);
const DATA_ACK_LONG: u64 = long(PacketType::DataAck);

const fn long(ty: PacketType) -> u64 {
    (ty.number() as u64) << 1 | 1
}

impl<'a> PacketView<'a> {
    /// Checks the packet at the beginning of `bytes`, which has `total_len` bytes in all. The whole
    /// header must be in `bytes`; data may be missing. Bytes beyond `total_len` are padding of a
    /// lower layer, and are ignored.
    #[inline]
    pub fn new(bytes: &'a [u8], total_len: usize) -> Result<Self, WireError> {
        let bytes = bytes.get(..total_len).unwrap_or(bytes);
        let Some(&[s0, s1, d0, d1, offset, ccval_cscov, _, _, b8, b9, b10, b11]) =
            bytes.first_chunk::<12>()
        else {
            return Err(WireError::Truncated { have: bytes.len(), need: 12 });
        };
        let number = b8 >> 1 & 0xf;
        //= 4340-5.1-6
        //= 4340-5.1-7
        let packet_type = PacketType::from_number(number).ok_or(WireError::ReservedType(number))?;
        let x = b8 & 1 == 1;
        let fixed_len = packet_type.fixed_header_len(x);
        let offset = usize::from(offset) * 4;
        check_header(packet_type, x, fixed_len, offset, bytes.len())?;
        // Reserved bits are masked here and never used.
        //= 4340-3.1-2
        //= 4340-3.1-3
        //= 4340-5.1-5
        //= 4340-5.1-11
        let (seq, ack) = if x {
            (word64(bytes, 8) & SEQ_MASK, word64(bytes, 16) & SEQ_MASK)
        } else {
            let seq = u32::from_be_bytes([0, b9, b10, b11]);
            (u64::from(seq), u64::from(word32(bytes, 12)) & LOW_MASK)
        };
        let view = Self {
            bytes,
            total_len,
            seq,
            ack,
            word: word32(bytes, fixed_len - 4),
            src_port: u16::from_be_bytes([s0, s1]),
            dst_port: u16::from_be_bytes([d0, d1]),
            offset: offset as u16,
            fixed_len: fixed_len as u8,
            ccval_cscov,
            packet_type,
            x,
        };
        let cscov = view.cscov();
        //= 4340-9.2-2
        if cscov > 1 && usize::from(cscov - 1) * 4 > view.data_len() {
            return Err(WireError::CsCov { cscov, data_len: view.data_len() });
        }
        Ok(view)
    }

    /// As [`Self::new`], but only for Data, Ack and DataAck packets with 48-bit numbers and full
    /// Checksum Coverage, as nearly all are, and with only the checks that these need. `None` for
    /// any other packet.
    #[inline]
    pub fn of_usual(bytes: &'a [u8], total_len: usize) -> Option<Self> {
        let (head, rest) = bytes.split_first_chunk::<16>()?;
        let words = u128::from_be_bytes(*head);
        let (first, second) = ((words >> 64) as u64, words as u64);
        // Reserved bits are never used.
        let packet_type = match second >> 56 & 0x1f {
            DATA_LONG => PacketType::Data,
            ACK_LONG => PacketType::Ack,
            DATA_ACK_LONG => PacketType::DataAck,
            _ => return None,
        };
        let (fixed_len, ack) = match packet_type {
            PacketType::Data => (16, 0),
            _ => (24, u64::from_be_bytes(*rest.first_chunk()?)),
        };
        let offset = (first >> 24 & 0xff) as u16 * 4;
        let is_whole = offset >= fixed_len && usize::from(offset) <= bytes.len();
        if !is_whole || first >> 16 & 0xf != 0 || total_len < bytes.len() {
            return None;
        }
        Some(Self {
            bytes,
            total_len,
            seq: second & SEQ_MASK,
            ack: ack & SEQ_MASK,
            word: if fixed_len == 16 { second } else { ack } as u32,
            src_port: (first >> 48) as u16,
            dst_port: (first >> 32) as u16,
            offset,
            fixed_len: fixed_len as u8,
            ccval_cscov: (first >> 16) as u8,
            packet_type,
            x: true,
        })
    }

    /// The packet's type.
    #[inline]
    pub const fn packet_type(&self) -> PacketType {
        self.packet_type
    }

    /// DCCP source port.
    #[inline]
    pub const fn src_port(&self) -> u16 {
        self.src_port
    }

    /// DCCP destination port.
    #[inline]
    pub const fn dst_port(&self) -> u16 {
        self.dst_port
    }

    /// CCVal, 0 to 15: a value from the sender's CCID to the receiver's.
    #[inline]
    pub const fn ccval(&self) -> u8 {
        self.ccval_cscov >> 4
    }

    /// Checksum Coverage, 0 to 15.
    #[inline]
    pub const fn cscov(&self) -> u8 {
        self.ccval_cscov & 0xf
    }

    /// Whether the packet has 48-bit sequence numbers.
    #[inline]
    pub const fn x(&self) -> bool {
        self.x
    }

    /// The Sequence Number as carried in the packet.
    #[inline]
    pub const fn seq_raw(&self) -> RawSeq {
        self.raw(self.seq)
    }

    /// The Acknowledgement Number as carried in the packet; `None` for types without one.
    #[inline]
    pub const fn ack_raw(&self) -> Option<RawSeq> {
        if self.packet_type.has_ack() { Some(self.raw(self.ack)) } else { None }
    }

    #[inline]
    const fn raw(&self, bits: u64) -> RawSeq {
        if self.x { RawSeq::Long(Seqno::new(bits)) } else { RawSeq::Short(bits as u32) }
    }

    /// The Service Code of a Request, Response or Listen; otherwise `None`.
    #[inline]
    pub const fn service_code(&self) -> Option<ServiceCode> {
        if self.packet_type.has_service_code() { Some(ServiceCode(self.word)) } else { None }
    }

    /// The Reset Code of a Reset; otherwise `None`.
    #[inline]
    pub const fn reset_code(&self) -> Option<ResetCode> {
        match self.packet_type {
            PacketType::Reset => Some(ResetCode::from_number(self.word.to_be_bytes()[0])),
            _ => None,
        }
    }

    /// Data 1 to Data 3 of a Reset; otherwise `None`.
    #[inline]
    pub const fn reset_data(&self) -> Option<[u8; 3]> {
        let [_, d1, d2, d3] = self.word.to_be_bytes();
        match self.packet_type {
            PacketType::Reset => Some([d1, d2, d3]),
            _ => None,
        }
    }

    /// Length of the header with its options in bytes.
    #[inline]
    pub const fn data_offset(&self) -> usize {
        self.offset as usize
    }

    /// Length of the whole packet in bytes.
    #[inline]
    pub const fn total_len(&self) -> usize {
        self.total_len
    }

    /// Length of the application data area in bytes.
    #[inline]
    pub const fn data_len(&self) -> usize {
        self.total_len - self.offset as usize
    }

    /// The options in their order.
    #[inline]
    pub fn options(&self) -> Options<'a> {
        Options::new(self.option_bytes())
    }

    /// The option space, padding included.
    #[inline]
    pub fn option_bytes(&self) -> &'a [u8] {
        self.bytes.get(usize::from(self.fixed_len)..usize::from(self.offset)).unwrap_or(&[])
    }

    /// The part of the application data that is in the given bytes.
    #[inline]
    pub fn payload_in_header(&self) -> &'a [u8] {
        self.bytes.get(usize::from(self.offset)..).unwrap_or(&[])
    }

    /// The Checksum field.
    #[inline]
    pub fn checksum(&self) -> u16 {
        (word32(self.bytes, 4) & 0xffff) as u16
    }

    /// Whether the header checksum is correct. The application data consists of the bytes after the
    /// header in the given bytes, then `rest`, then `zeros` zero bytes. Only the part within
    /// Checksum Coverage is summed. False if there are fewer bytes than the packet's length.
    #[inline]
    pub fn verify_checksum(&self, pseudo: &PseudoHeader, rest: &[u8], zeros: usize) -> bool {
        if let (Ok(header), true) = (<&[u8; 16]>::try_from(self.bytes), rest.is_empty()) {
            // The usual case: a Data packet whose data is a count of zeros of the right size.
            if self.data_offset() == header.len() && self.data_len() == zeros {
                let mut sum = pseudo.sum(crate::IP_PROTOCOL, self.total_len);
                sum.add_16(header);
                return sum.is_valid();
            }
        }
        self.verify_any(pseudo, rest, zeros)
    }

    fn verify_any(&self, pseudo: &PseudoHeader, rest: &[u8], zeros: usize) -> bool {
        let here = self.payload_in_header().len();
        let covered = covered_len(self.cscov(), self.data_len());
        if here.saturating_add(rest.len()).saturating_add(zeros) < covered {
            return false;
        }
        let covered_here = covered.min(here);
        let covered_rest = (covered - covered_here).min(rest.len());
        let mut sum = pseudo.sum(crate::IP_PROTOCOL, self.total_len);
        sum.add(self.bytes.get(..self.data_offset() + covered_here).unwrap_or(self.bytes));
        sum.add(rest.get(..covered_rest).unwrap_or(rest));
        sum.is_valid()
    }

    /// The header without its options, as a value.
    pub fn header(&self) -> Header {
        let ack = Seqno::new(self.ack);
        let service = ServiceCode(self.word);
        let [code, d1, d2, d3] = self.word.to_be_bytes();
        let kind = HeaderKind::of(self.packet_type, ack, service)
            .with_reset(ResetCode::from_number(code), [d1, d2, d3]);
        Header {
            src_port: self.src_port,
            dst_port: self.dst_port,
            ccval: self.ccval(),
            cscov: self.cscov(),
            x: self.x,
            seq: Seqno::new(self.seq),
            kind,
        }
    }
}

/// Bytes of application data that the checksum covers (RFC 4340 section 9.2).
#[inline]
pub(crate) const fn covered_len(cscov: u8, data_len: usize) -> usize {
    match cscov {
        0 => data_len,
        n => (n as usize - 1) * 4,
    }
}

#[inline]
fn check_header(
    packet_type: PacketType,
    x: bool,
    fixed_len: usize,
    offset: usize,
    have: usize,
) -> Result<(), WireError> {
    //= 4340-5.1-9
    if !x && !packet_type.may_use_short_seqnos() {
        return Err(WireError::ShortSeqno(packet_type));
    }
    //= 4340-5.1-2
    if offset < fixed_len {
        return Err(WireError::OffsetTooSmall { offset, need: fixed_len });
    }
    if offset > have {
        return Err(WireError::OffsetTooLarge { offset, have });
    }
    Ok(())
}

/// The word at `at`; zero if the packet has none.
#[inline]
fn word64(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u64::from_be_bytes(b))
}

/// The word at `at`; zero if the packet has none.
#[inline]
fn word32(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |&b| u32::from_be_bytes(b))
}
