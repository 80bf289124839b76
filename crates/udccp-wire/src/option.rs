//! Options as values: one enum for parsing and for emission (RFC 4340 section 5.8).

use bytes::{BufMut, BytesMut};

use crate::error::OptionError;
use crate::features::FeatureNumber;
use crate::types::PacketType;

/// Option type numbers.
pub mod kind {
    /// Padding.
    pub const PADDING: u8 = 0;
    /// Mandatory.
    pub const MANDATORY: u8 = 1;
    /// Slow Receiver.
    pub const SLOW_RECEIVER: u8 = 2;
    /// Change L.
    pub const CHANGE_L: u8 = 32;
    /// Confirm L.
    pub const CONFIRM_L: u8 = 33;
    /// Change R.
    pub const CHANGE_R: u8 = 34;
    /// Confirm R.
    pub const CONFIRM_R: u8 = 35;
    /// Init Cookie.
    pub const INIT_COOKIE: u8 = 36;
    /// NDP Count.
    pub const NDP_COUNT: u8 = 37;
    /// Ack Vector with ECN nonce echo 0.
    pub const ACK_VECTOR_0: u8 = 38;
    /// Ack Vector with ECN nonce echo 1.
    pub const ACK_VECTOR_1: u8 = 39;
    /// Data Dropped.
    pub const DATA_DROPPED: u8 = 40;
    /// Timestamp.
    pub const TIMESTAMP: u8 = 41;
    /// Timestamp Echo.
    pub const TIMESTAMP_ECHO: u8 = 42;
    /// Elapsed Time.
    pub const ELAPSED_TIME: u8 = 43;
    /// Data Checksum.
    pub const DATA_CHECKSUM: u8 = 44;
    /// Loss Event Rate, of CCIDs 3 and 4.
    pub const LOSS_EVENT_RATE: u8 = 192;
    /// Loss Intervals, of CCIDs 3 and 4.
    pub const LOSS_INTERVALS: u8 = 193;
    /// Receive Rate, of CCIDs 3 and 4.
    pub const RECEIVE_RATE: u8 = 194;
    /// Dropped Packets, of CCID 4.
    pub const DROPPED_PACKETS: u8 = 195;

    /// The option's name in the RFCs; 192 to 195 are named as in CCIDs 3 and 4.
    pub const fn name(kind: u8) -> &'static str {
        match kind {
            PADDING => "Padding",
            MANDATORY => "Mandatory",
            SLOW_RECEIVER => "Slow Receiver",
            CHANGE_L => "Change L",
            CONFIRM_L => "Confirm L",
            CHANGE_R => "Change R",
            CONFIRM_R => "Confirm R",
            INIT_COOKIE => "Init Cookie",
            NDP_COUNT => "NDP Count",
            ACK_VECTOR_0 => "Ack Vector [Nonce 0]",
            ACK_VECTOR_1 => "Ack Vector [Nonce 1]",
            DATA_DROPPED => "Data Dropped",
            TIMESTAMP => "Timestamp",
            TIMESTAMP_ECHO => "Timestamp Echo",
            ELAPSED_TIME => "Elapsed Time",
            DATA_CHECKSUM => "Data Checksum",
            LOSS_EVENT_RATE => "Loss Event Rate",
            LOSS_INTERVALS => "Loss Intervals",
            RECEIVE_RATE => "Receive Rate",
            DROPPED_PACKETS => "Dropped Packets",
            128..=255 => "CCID-specific",
            _ => "Reserved",
        }
    }
}

/// Longest data of one option in bytes: the length byte counts itself and the type byte.
pub(crate) const MAX_DATA: usize = 253;

/// An option as its type and data bytes, before they are understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Option type.
    pub kind: u8,
    /// Option data, at most 253 bytes; empty for types below 32.
    pub data: &'a [u8],
}

/// An option, understood. Emission uses the smallest encoding; reception accepts every one.
///
/// The options of CCIDs 3 and 4 have their own variants wherever their length is right; under
/// another CCID read them as [`RawOption`] ([`crate::RawOptions`]), since only the connection
/// knows which CCID a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionRef<'a> {
    /// Fills up option space.
    Padding,
    /// The next option must be understood, or the connection is reset.
    Mandatory,
    /// The receiver can hardly keep up (RFC 4340 section 11.6).
    SlowReceiver,
    /// The feature location asks for a value.
    ChangeL {
        /// The feature.
        feature: FeatureNumber,
        /// One value or a preference list; empty is invalid.
        value: &'a [u8],
    },
    /// The feature location confirms a value.
    ConfirmL {
        /// The feature.
        feature: FeatureNumber,
        /// The value, then the preference list; empty where the Change was not understood.
        value: &'a [u8],
    },
    /// The feature remote asks for a value.
    ChangeR {
        /// The feature.
        feature: FeatureNumber,
        /// A preference list; empty is invalid.
        value: &'a [u8],
    },
    /// The feature remote confirms a value.
    ConfirmR {
        /// The feature.
        feature: FeatureNumber,
        /// The value, then the preference list; empty where the Change was not understood.
        value: &'a [u8],
    },
    /// Server state, echoed by the client (RFC 4340 section 8.1.4).
    InitCookie(&'a [u8]),
    /// Non-data packets immediately before this one; at most 2^48 - 1.
    NdpCount(u64),
    /// Received packets, newest first (RFC 4340 section 11.4).
    AckVector {
        /// ECN nonce echo.
        nonce: bool,
        /// State in the upper two bits, run length less one in the lower six.
        cells: &'a [u8],
    },
    /// Received packets whose data was dropped; the data are the blocks (RFC 4340 section 11.7).
    DataDropped(&'a [u8]),
    /// Time of sending, in units of 10 microseconds.
    Timestamp(u32),
    /// Echo of a Timestamp.
    TimestampEcho {
        /// The echoed value.
        timestamp: u32,
        /// Time since it was received, in units of 10 microseconds; absent means zero.
        elapsed: Option<u32>,
    },
    /// Time since the acknowledged packet was received, in units of 10 microseconds.
    ElapsedTime(u32),
    /// CRC-32c of the application data, as [`crate::crc32c::crc32c`] returns it.
    DataChecksum(u32),
    /// Inverse of the loss event rate, rounded up: data packets for each loss event; `u32::MAX`
    /// before any loss (RFC 4342 section 8.5).
    LossEventRate(u32),
    /// Recent loss intervals, newest first (RFC 4342 section 8.6).
    LossIntervals {
        /// Packets up to the Acknowledgement Number that are in no interval.
        skip_length: u8,
        /// Nine bytes for each interval; see [`LossInterval::iter`].
        intervals: &'a [u8],
    },
    /// Data bytes received in a second (RFC 4342 section 8.3).
    ReceiveRate(u32),
    /// Lost or marked packets of each loss interval, newest first, three bytes each; see
    /// [`OptionRef::drop_counts`] (RFC 5622 section 8.7).
    DroppedPackets(&'a [u8]),
    /// Another option of the CCID, or one of CCIDs 3 and 4 with a length they do not know.
    CcidSpecific {
        /// Option type, 128 or above.
        kind: u8,
        /// Option data.
        data: &'a [u8],
    },
    /// A reserved option type.
    Unknown {
        /// Option type, below 128.
        kind: u8,
        /// Option data; empty for types below 32.
        data: &'a [u8],
    },
}

/// One loss interval of CCID 3 (RFC 4342 section 8.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInterval {
    /// Packets in the lossless part, 24 bits.
    pub lossless_length: u32,
    /// Parity of the data packets' nonces over the lossless part.
    pub nonce_echo: bool,
    /// Packets in the lossy part, 23 bits.
    pub loss_length: u32,
    /// Data packets in the interval, 24 bits.
    pub data_length: u32,
}

impl LossInterval {
    /// Length in bytes.
    pub const LEN: usize = 9;

    /// The interval in these bytes.
    pub const fn from_bytes(b: [u8; Self::LEN]) -> Self {
        Self {
            lossless_length: u32::from_be_bytes([0, b[0], b[1], b[2]]),
            nonce_echo: b[3] & 0x80 != 0,
            loss_length: u32::from_be_bytes([0, b[3] & 0x7f, b[4], b[5]]),
            data_length: u32::from_be_bytes([0, b[6], b[7], b[8]]),
        }
    }

    /// The interval as bytes; a length too large for its field becomes the field's largest value.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [_, a, b, c] = self.lossless_length.min(0xff_ffff).to_be_bytes();
        let [_, d, e, f] = self.loss_length.min(0x7f_ffff).to_be_bytes();
        let [_, g, h, i] = self.data_length.min(0xff_ffff).to_be_bytes();
        [a, b, c, d | (u8::from(self.nonce_echo) << 7), e, f, g, h, i]
    }

    /// The intervals in the bytes of [`OptionRef::LossIntervals`], newest first.
    pub fn iter(intervals: &[u8]) -> impl ExactSizeIterator<Item = Self> + '_ {
        intervals.as_chunks().0.iter().map(|&b| Self::from_bytes(b))
    }
}

impl<'a> OptionRef<'a> {
    /// Understands an option; `InvalidLength` where its type does not allow this length.
    #[inline]
    pub fn from_raw(raw: RawOption<'a>) -> Result<Self, OptionError> {
        let RawOption { kind, data } = raw;
        Ok(match kind {
            kind::PADDING => Self::Padding,
            kind::MANDATORY => Self::Mandatory,
            kind::SLOW_RECEIVER => Self::SlowReceiver,
            kind::ACK_VECTOR_0 => Self::AckVector { nonce: false, cells: data },
            kind::ACK_VECTOR_1 => Self::AckVector { nonce: true, cells: data },
            kind::CHANGE_L..=kind::CONFIRM_R => return Self::feature_option(raw),
            kind::INIT_COOKIE => Self::InitCookie(data),
            kind::DATA_DROPPED => Self::DataDropped(data),
            kind::NDP_COUNT | kind::TIMESTAMP..=kind::DATA_CHECKSUM => return Self::number(raw),
            kind::LOSS_EVENT_RATE..=kind::DROPPED_PACKETS => Self::tfrc(raw),
            128.. => Self::CcidSpecific { kind, data },
            _ => Self::Unknown { kind, data },
        })
    }

    fn feature_option(raw: RawOption<'a>) -> Result<Self, OptionError> {
        let (&number, value) = raw.data.split_first().ok_or(raw.invalid_length())?;
        let feature = FeatureNumber(number);
        Ok(match raw.kind {
            kind::CHANGE_L => Self::ChangeL { feature, value },
            kind::CONFIRM_L => Self::ConfirmL { feature, value },
            kind::CHANGE_R => Self::ChangeR { feature, value },
            _ => Self::ConfirmR { feature, value },
        })
    }

    fn number(raw: RawOption<'a>) -> Result<Self, OptionError> {
        Ok(match (raw.kind, raw.data) {
            (kind::NDP_COUNT, &[_, ..]) if raw.data.len() <= 6 => {
                let grow = |n: u64, &b: &u8| n << 8 | u64::from(b);
                Self::NdpCount(raw.data.iter().fold(0, grow))
            }
            (kind::TIMESTAMP, &[a, b, c, d]) => Self::Timestamp(u32::from_be_bytes([a, b, c, d])),
            (kind::TIMESTAMP_ECHO, &[a, b, c, d, ref rest @ ..]) => {
                let elapsed = match *rest {
                    [] => None,
                    [e, f] => Some(u32::from_be_bytes([0, 0, e, f])),
                    [e, f, g, h] => Some(u32::from_be_bytes([e, f, g, h])),
                    _ => return Err(raw.invalid_length()),
                };
                Self::TimestampEcho { timestamp: u32::from_be_bytes([a, b, c, d]), elapsed }
            }
            (kind::ELAPSED_TIME, &[a, b]) => Self::ElapsedTime(u32::from_be_bytes([0, 0, a, b])),
            (kind::ELAPSED_TIME, &[a, b, c, d]) => {
                Self::ElapsedTime(u32::from_be_bytes([a, b, c, d]))
            }
            (kind::DATA_CHECKSUM, &[a, b, c, d]) => {
                Self::DataChecksum(u32::from_le_bytes([a, b, c, d]))
            }
            _ => return Err(raw.invalid_length()),
        })
    }

    fn tfrc(raw: RawOption<'a>) -> Self {
        match (raw.kind, raw.data) {
            (kind::LOSS_EVENT_RATE, &[a, b, c, d]) => {
                Self::LossEventRate(u32::from_be_bytes([a, b, c, d]))
            }
            (kind::RECEIVE_RATE, &[a, b, c, d]) => {
                Self::ReceiveRate(u32::from_be_bytes([a, b, c, d]))
            }
            (kind::LOSS_INTERVALS, &[skip_length, ref intervals @ ..])
                if intervals.len().is_multiple_of(LossInterval::LEN) =>
            {
                Self::LossIntervals { skip_length, intervals }
            }
            (kind::DROPPED_PACKETS, counts) if counts.len().is_multiple_of(3) => {
                Self::DroppedPackets(counts)
            }
            (kind, data) => Self::CcidSpecific { kind, data },
        }
    }

    /// The counts in the bytes of [`OptionRef::DroppedPackets`], newest interval first.
    pub fn drop_counts(counts: &[u8]) -> impl ExactSizeIterator<Item = u32> + '_ {
        counts.as_chunks().0.iter().map(|&[a, b, c]| u32::from_be_bytes([0, a, b, c]))
    }

    /// The option's type number.
    pub const fn kind(&self) -> u8 {
        match *self {
            Self::Padding => kind::PADDING,
            Self::Mandatory => kind::MANDATORY,
            Self::SlowReceiver => kind::SLOW_RECEIVER,
            Self::ChangeL { .. } => kind::CHANGE_L,
            Self::ConfirmL { .. } => kind::CONFIRM_L,
            Self::ChangeR { .. } => kind::CHANGE_R,
            Self::ConfirmR { .. } => kind::CONFIRM_R,
            Self::InitCookie(_) => kind::INIT_COOKIE,
            Self::NdpCount(_) => kind::NDP_COUNT,
            Self::AckVector { nonce: false, .. } => kind::ACK_VECTOR_0,
            Self::AckVector { nonce: true, .. } => kind::ACK_VECTOR_1,
            Self::DataDropped(_) => kind::DATA_DROPPED,
            Self::Timestamp(_) => kind::TIMESTAMP,
            Self::TimestampEcho { .. } => kind::TIMESTAMP_ECHO,
            Self::ElapsedTime(_) => kind::ELAPSED_TIME,
            Self::DataChecksum(_) => kind::DATA_CHECKSUM,
            Self::LossEventRate(_) => kind::LOSS_EVENT_RATE,
            Self::LossIntervals { .. } => kind::LOSS_INTERVALS,
            Self::ReceiveRate(_) => kind::RECEIVE_RATE,
            Self::DroppedPackets(_) => kind::DROPPED_PACKETS,
            Self::CcidSpecific { kind, .. } | Self::Unknown { kind, .. } => kind,
        }
    }

    /// Whether a packet of this type may carry the option. One that may not is ignored when it
    /// arrives (RFC 4340 table 3 and the options' own sections, RFC 5596 section 2.2.1). Options
    /// of unknown meaning are left to whoever knows it.
    pub const fn is_permitted_on(&self, packet: PacketType) -> bool {
        //= 4340-5.8-7
        match packet {
            PacketType::Listen => false,
            //= 4340-5.8-8
            //= 4340-5.8.2-2
            PacketType::Data => matches!(
                self,
                Self::Padding
                    | Self::SlowReceiver
                    | Self::NdpCount(_)
                    | Self::Timestamp(_)
                    | Self::TimestampEcho { .. }
                    | Self::DataChecksum(_)
                    | Self::CcidSpecific { .. }
                    | Self::Unknown { .. }
            ),
            //= 4340-11.4-3
            //= 4340-11.7-6
            //= 4340-13.2-1
            PacketType::Request => !matches!(
                self,
                Self::ConfirmL { .. }
                    | Self::ConfirmR { .. }
                    | Self::InitCookie(_)
                    | Self::AckVector { .. }
                    | Self::DataDropped(_)
                    | Self::ElapsedTime(_)
                    | Self::LossIntervals { .. }
                    | Self::DroppedPackets(_)
            ),
            _ => true,
        }
    }

    /// Length on the wire in bytes, type and length bytes included. Above 255 the option cannot
    /// be sent.
    #[inline]
    pub const fn encoded_len(&self) -> usize {
        match *self {
            Self::Padding | Self::Mandatory | Self::SlowReceiver => 1,
            Self::ChangeL { value, .. }
            | Self::ConfirmL { value, .. }
            | Self::ChangeR { value, .. }
            | Self::ConfirmR { value, .. } => 3 + value.len(),
            Self::InitCookie(d) | Self::DataDropped(d) | Self::DroppedPackets(d) => 2 + d.len(),
            Self::AckVector { cells, .. } => 2 + cells.len(),
            //= 4340-7.7-2
            Self::NdpCount(n) => 2 + ndp_len(n),
            Self::Timestamp(_)
            | Self::DataChecksum(_)
            | Self::LossEventRate(_)
            | Self::ReceiveRate(_) => 6,
            //= 4340-13.3-4
            Self::TimestampEcho { elapsed: None, .. } => 6,
            Self::TimestampEcho { elapsed: Some(0..=0xffff), .. } => 8,
            Self::TimestampEcho { .. } => 10,
            //= 4340-13.2-2
            //= 4340-13.2-3
            Self::ElapsedTime(0..=0xffff) => 4,
            Self::ElapsedTime(_) => 6,
            Self::LossIntervals { intervals, .. } => 3 + intervals.len(),
            Self::Unknown { kind: 0..32, .. } => 1,
            Self::CcidSpecific { data, .. } | Self::Unknown { data, .. } => 2 + data.len(),
        }
    }

    /// Appends the option, whose encoded length is at most 255.
    #[inline]
    pub(crate) fn put(&self, len: u8, buf: &mut BytesMut) {
        let kind = self.kind();
        match *self {
            Self::Padding | Self::Mandatory | Self::SlowReceiver => buf.put_u8(kind),
            Self::AckVector { cells, .. } => put_slice(buf, [kind, len], cells),
            Self::ChangeL { feature, value }
            | Self::ConfirmL { feature, value }
            | Self::ChangeR { feature, value }
            | Self::ConfirmR { feature, value } => put_slice(buf, [kind, len, feature.0], value),
            Self::InitCookie(d) | Self::DataDropped(d) | Self::DroppedPackets(d) => {
                put_slice(buf, [kind, len], d);
            }
            Self::LossIntervals { skip_length, intervals } => {
                put_slice(buf, [kind, len, skip_length], intervals);
            }
            Self::Timestamp(n) | Self::LossEventRate(n) | Self::ReceiveRate(n) => {
                put_slice(buf, [kind, len], &n.to_be_bytes());
            }
            // As in SCTP, whose CRC this is: least significant byte first.
            Self::DataChecksum(n) => put_slice(buf, [kind, len], &n.to_le_bytes()),
            Self::TimestampEcho { timestamp, elapsed } => {
                put_slice(buf, [kind, len], &timestamp.to_be_bytes());
                put_elapsed(elapsed.unwrap_or(0), usize::from(len) - 6, buf);
            }
            Self::ElapsedTime(n) => {
                put_slice(buf, [kind, len], &[]);
                put_elapsed(n, usize::from(len) - 2, buf);
            }
            Self::NdpCount(n) => {
                put_slice(buf, [kind, len], &[]);
                buf.put_uint(n.min(NDP_MAX), ndp_len(n));
            }
            Self::Unknown { kind: 0..32, .. } => buf.put_u8(kind),
            Self::CcidSpecific { data, .. } | Self::Unknown { data, .. } => {
                put_slice(buf, [kind, len], data);
            }
        }
    }
}

impl RawOption<'_> {
    pub(crate) fn invalid_length(&self) -> OptionError {
        let byte = |i: usize| self.data.get(i).copied().unwrap_or(0);
        let length = u8::try_from(self.data.len() + 2).unwrap_or(u8::MAX);
        OptionError::InvalidLength { kind: self.kind, length, data: [byte(0), byte(1)] }
    }
}

const NDP_MAX: u64 = (1 << 48) - 1;

/// Bytes needed for an NDP Count, 1 to 6.
const fn ndp_len(n: u64) -> usize {
    let bytes = (u64::BITS - n.leading_zeros()).div_ceil(8) as usize;
    match bytes {
        0 => 1,
        1..=6 => bytes,
        _ => 6,
    }
}

#[inline]
fn put_slice<const N: usize>(buf: &mut BytesMut, head: [u8; N], data: &[u8]) {
    buf.extend_from_slice(&head);
    buf.extend_from_slice(data);
}

/// Appends a time in none, two or four bytes.
fn put_elapsed(n: u32, len: usize, buf: &mut BytesMut) {
    buf.put_uint(u64::from(n), len);
}
