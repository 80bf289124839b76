//! Errors in packets and options, and what the RFC requires for each.

use core::fmt;

use crate::reset::ResetCode;
use crate::types::PacketType;

/// What a receiver does after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// Treat the packet as if it had not arrived: do not process or acknowledge it.
    IgnorePacket,
    /// Skip this option and continue with the next.
    IgnoreOption,
    /// Skip this option and all after it.
    IgnoreRemainingOptions,
    /// Reset the connection with this code and these three data bytes.
    Reset {
        /// The Reset code.
        code: ResetCode,
        /// Data 1 to Data 3.
        data: [u8; 3],
    },
}

/// Why bytes are not a valid packet. The reaction is always [`Reaction::IgnorePacket`], except for
/// an invalid option, which has its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireError {
    /// There are fewer bytes than in the smallest header.
    Truncated {
        /// Bytes present.
        have: usize,
        /// Bytes required at least.
        need: usize,
    },
    /// The type number is reserved.
    ReservedType(u8),
    /// X is 0 in a type that requires 48-bit sequence numbers.
    ShortSeqno(PacketType),
    /// Data Offset is smaller than the type's fixed header.
    OffsetTooSmall {
        /// Data Offset in bytes.
        offset: usize,
        /// Fixed header length in bytes.
        need: usize,
    },
    /// Data Offset is beyond the end of the packet.
    OffsetTooLarge {
        /// Data Offset in bytes.
        offset: usize,
        /// Packet length in bytes.
        have: usize,
    },
    /// Checksum Coverage covers more application data than there is.
    CsCov {
        /// The field's value.
        cscov: u8,
        /// Application data in bytes.
        data_len: usize,
    },
    /// The header checksum is wrong.
    Checksum,
    /// An option is invalid (only if a whole packet is parsed at once).
    Option(OptionError),
}

/// Why bytes are not a valid option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionError {
    /// The length byte is missing, less than two, or beyond the option space.
    Nonsensical {
        /// Option type.
        kind: u8,
        /// The length byte, if there is one.
        length: Option<u8>,
        /// Bytes of option space from the type byte on.
        remaining: u16,
        /// The first two bytes of option data, zero where absent.
        data: [u8; 2],
    },
    /// The length is not allowed for this type of option.
    InvalidLength {
        /// Option type.
        kind: u8,
        /// The length byte.
        length: u8,
        /// The first two bytes of option data, zero where absent.
        data: [u8; 2],
    },
}

impl WireError {
    /// The reaction that RFC 4340 requires.
    pub const fn reaction(self) -> Reaction {
        match self {
            Self::Option(e) => e.reaction(false),
            _ => Reaction::IgnorePacket,
        }
    }
}

impl OptionError {
    /// The type of the invalid option.
    pub const fn kind(self) -> u8 {
        match self {
            Self::Nonsensical { kind, .. } | Self::InvalidLength { kind, .. } => kind,
        }
    }

    /// The three data bytes of a Reset with code 5 or 6 (RFC 4340 section 5.6).
    pub const fn reset_data(self) -> [u8; 3] {
        let (Self::Nonsensical { kind, data, .. } | Self::InvalidLength { kind, data, .. }) = self;
        [kind, data[0], data[1]]
    }

    /// The reaction that RFC 4340 requires in a packet other than Data (in which options that
    /// negotiate are ignored): sections 5.8, 5.8.2 and 6.6.8. `mandatory` is whether a Mandatory
    /// option comes immediately before.
    pub const fn reaction(self, mandatory: bool) -> Reaction {
        use crate::option::kind;
        //= 4340-5.8.2-1
        if mandatory {
            return Reaction::Reset { code: ResetCode::MandatoryError, data: self.reset_data() };
        }
        match self {
            Self::Nonsensical { .. } => Reaction::IgnoreRemainingOptions,
            //= 4340-6.6.8-2
            Self::InvalidLength { kind: kind::CONFIRM_L | kind::CONFIRM_R, .. } => {
                Reaction::Reset { code: ResetCode::OptionError, data: self.reset_data() }
            }
            //= 4340-5.8-9
            //= 4340-5.8-10
            Self::InvalidLength { .. } => Reaction::IgnoreOption,
        }
    }
}

impl From<OptionError> for WireError {
    fn from(e: OptionError) -> Self {
        Self::Option(e)
    }
}

impl fmt::Display for WireError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { have, need } => {
                write!(f, "packet of {have} bytes is shorter than its header of {need}")
            }
            Self::ReservedType(n) => write!(f, "packet type {n} is reserved"),
            Self::ShortSeqno(t) => write!(f, "{t} packet with 24-bit sequence numbers"),
            Self::OffsetTooSmall { offset, need } => {
                write!(f, "data offset of {offset} bytes is inside the fixed header of {need}")
            }
            Self::OffsetTooLarge { offset, have } => {
                write!(f, "data offset of {offset} bytes is beyond the packet's end at {have}")
            }
            Self::CsCov { cscov, data_len } => {
                write!(f, "checksum coverage {cscov} exceeds {data_len} bytes of data")
            }
            Self::Checksum => f.write_str("header checksum is wrong"),
            Self::Option(e) => fmt::Display::fmt(&e, f),
        }
    }
}

impl fmt::Display for OptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = crate::option::kind::name(self.kind());
        match *self {
            Self::Nonsensical { kind, length: Some(n), remaining, .. } => {
                write!(f, "option {kind} ({name}) of length {n} in {remaining} bytes of space")
            }
            Self::Nonsensical { kind, .. } => write!(f, "option {kind} ({name}) has no length"),
            Self::InvalidLength { kind, length, .. } => {
                write!(f, "option {kind} ({name}) cannot have length {length}")
            }
        }
    }
}

impl core::error::Error for WireError {}
impl core::error::Error for OptionError {}
