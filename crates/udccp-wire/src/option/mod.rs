//! Options as values: one enum for parsing and for emission (RFC 4340 section 5.8).

mod encode;
pub mod kind;
mod loss_interval;

pub(crate) use encode::Out;
pub use loss_interval::LossInterval;

use crate::error::OptionError;
use crate::features::FeatureNumber;
use crate::types::PacketType;
use udccp_packet::chunks::chunks;

/// Longest data of one option in bytes: the length byte counts itself and the type byte.
pub(crate) const MAX_DATA: usize = 253;

/// An option as type and data bytes, not decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawOption<'a> {
    /// Option type.
    pub kind: u8,
    /// Option data, at most 253 bytes; empty for types below 32.
    pub data: &'a [u8],
}

/// A decoded option. Options are sent in the shortest encoding, and accepted in any.
///
/// The options of CCIDs 3 and 4 have their own variants, if their length is right. With another
/// CCID read them as [`RawOption`] ([`crate::RawOptions`]), because only the connection knows which
/// CCID a number belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OptionRef<'a> {
    /// Fills option space.
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
        /// The value, then the preference list; empty if the Change was not understood.
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
        /// The value, then the preference list; empty if the Change was not understood.
        value: &'a [u8],
    },
    /// Server state, echoed by the client (RFC 4340 section 8.1.4).
    InitCookie(&'a [u8]),
    /// Number of non-data packets immediately before this one, at most 2^48 - 1.
    NdpCount(u64),
    /// Received packets, newest first (RFC 4340 section 11.4).
    AckVector {
        /// ECN nonce echo.
        nonce: bool,
        /// State in the upper two bits, run length minus one in the lower six.
        cells: &'a [u8],
    },
    /// Received packets whose data was dropped, as blocks (RFC 4340 section 11.7).
    DataDropped(&'a [u8]),
    /// Time of sending, in units of 10 microseconds.
    Timestamp(u32),
    /// Echo of a Timestamp.
    TimestampEcho {
        /// The echoed value.
        timestamp: u32,
        /// Time since it was received, in units of 10 microseconds; `None` means zero.
        elapsed: Option<u32>,
    },
    /// Time since the acknowledged packet was received, in units of 10 microseconds.
    ElapsedTime(u32),
    /// CRC-32c of the application data, as [`crate::crc32c::crc32c`] returns it.
    DataChecksum(u32),
    /// Answer to a Quick-Start Request of the IP header (RFC 5634 section 2.2.1).
    QuickStartResponse {
        /// Rate that is approved, 0 to 15.
        rate: u8,
        /// TTL minus QS TTL, as received.
        ttl_diff: u8,
        /// QS Nonce as received, 30 bits.
        nonce: u32,
    },
    /// Inverse of the loss event rate, rounded up: data packets per loss event; `u32::MAX` before
    /// the first loss (RFC 4342 section 8.5).
    LossEventRate(u32),
    /// Recent loss intervals, newest first (RFC 4342 section 8.6).
    LossIntervals {
        /// Packets up to the Acknowledgement Number that are in no interval.
        skip_length: u8,
        /// Nine bytes for each interval; see [`LossInterval::iter`].
        intervals: &'a [u8],
    },
    /// Bytes of data received per second (RFC 4342 section 8.3).
    ReceiveRate(u32),
    /// Lost or marked packets of each loss interval, newest first, three bytes each; see
    /// [`OptionRef::drop_counts`] (RFC 5622 section 8.7).
    DroppedPackets(&'a [u8]),
    /// Another option of the CCID, or one of CCIDs 3 and 4 with an unknown length.
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

impl<'a> OptionRef<'a> {
    /// Decodes an option; `InvalidLength` if its type does not allow this length.
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
            //= 5634-2.2.1-1
            //= 5634-2.2.1-2
            kind::QUICK_START_RESPONSE => match *data {
                [rate, ttl_diff, a, b, c, d] => Self::QuickStartResponse {
                    rate: rate & 15,
                    ttl_diff,
                    nonce: u32::from_be_bytes([a, b, c, d]) >> 2,
                },
                _ => return Err(raw.invalid_length()),
            },
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
                if intervals.len() % LossInterval::LEN == 0 =>
            {
                Self::LossIntervals { skip_length, intervals }
            }
            (kind::DROPPED_PACKETS, counts) if counts.len() % 3 == 0 => {
                Self::DroppedPackets(counts)
            }
            (kind, data) => Self::CcidSpecific { kind, data },
        }
    }

    /// The counts in the bytes of [`OptionRef::DroppedPackets`], newest interval first.
    pub fn drop_counts(counts: &[u8]) -> impl ExactSizeIterator<Item = u32> + '_ {
        chunks(counts).map(|[a, b, c]| u32::from_be_bytes([0, a, b, c]))
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
            Self::QuickStartResponse { .. } => kind::QUICK_START_RESPONSE,
            Self::LossEventRate(_) => kind::LOSS_EVENT_RATE,
            Self::LossIntervals { .. } => kind::LOSS_INTERVALS,
            Self::ReceiveRate(_) => kind::RECEIVE_RATE,
            Self::DroppedPackets(_) => kind::DROPPED_PACKETS,
            Self::CcidSpecific { kind, .. } | Self::Unknown { kind, .. } => kind,
        }
    }

    /// Whether a packet of this type may carry the option. Otherwise it is ignored when received
    /// (RFC 4340 table 3 and the options' own sections, RFC 5596 section 2.2.1). Always true for
    /// options of unknown meaning.
    pub const fn is_permitted_on(&self, packet: PacketType) -> bool {
        //= 4340-5.8-7
        match packet {
            PacketType::Listen => false,
            //= 4340-5.8-8
            //= 4340-5.8.2-2
            //= 5622-8-1
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
}

impl RawOption<'_> {
    pub(crate) fn invalid_length(&self) -> OptionError {
        let byte = |i: usize| self.data.get(i).copied().unwrap_or(0);
        let length = u8::try_from(self.data.len() + 2).unwrap_or(u8::MAX);
        OptionError::InvalidLength { kind: self.kind, length, data: [byte(0), byte(1)] }
    }
}
