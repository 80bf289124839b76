//! Packet types (RFC 4340 section 5.1, RFC 5596 section 2.2.1).

use core::fmt;

/// The type of a packet. Numbers 11 to 15 are reserved, and such packets are ignored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum PacketType {
    /// Opens a connection.
    Request = 0,
    /// Answers a Request.
    Response = 1,
    /// Application data without an acknowledgement.
    Data = 2,
    /// An acknowledgement without data.
    Ack = 3,
    /// Application data with an acknowledgement.
    DataAck = 4,
    /// The server asks the client to close.
    CloseReq = 5,
    /// Closes; answered by a Reset.
    Close = 6,
    /// Ends a connection at once.
    Reset = 7,
    /// Asks the peer to confirm its sequence numbers.
    Sync = 8,
    /// Answers a Sync.
    SyncAck = 9,
    /// Sent by a server to open the way through middleboxes (RFC 5596).
    Listen = 10,
}

impl PacketType {
    /// All types, in the order of their numbers.
    pub const ALL: [Self; 11] = [
        Self::Request,
        Self::Response,
        Self::Data,
        Self::Ack,
        Self::DataAck,
        Self::CloseReq,
        Self::Close,
        Self::Reset,
        Self::Sync,
        Self::SyncAck,
        Self::Listen,
    ];

    /// The type with this number; `None` if the number is reserved.
    #[inline]
    pub const fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            0 => Self::Request,
            1 => Self::Response,
            2 => Self::Data,
            3 => Self::Ack,
            4 => Self::DataAck,
            5 => Self::CloseReq,
            6 => Self::Close,
            7 => Self::Reset,
            8 => Self::Sync,
            9 => Self::SyncAck,
            10 => Self::Listen,
            _ => return None,
        })
    }

    /// The type of the packet at the beginning of `bytes`, without any other check; `None` if there
    /// are too few bytes or the number is reserved (RFC 4340 section 5.1).
    #[inline]
    pub fn peek(bytes: &[u8]) -> Option<Self> {
        Self::from_number(bytes.get(8)? >> 1 & 0xf)
    }

    /// The number on the wire.
    #[inline]
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Whether packets of this type carry an Acknowledgement Number.
    #[inline]
    pub const fn has_ack(self) -> bool {
        !matches!(self, Self::Request | Self::Data | Self::Listen)
    }

    /// Whether packets of this type carry a Service Code.
    #[inline]
    pub const fn has_service_code(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Listen)
    }

    /// Whether the application data area contains data for the application. In other types it is
    /// ignored, or is the error text of a Reset.
    #[inline]
    pub const fn carries_app_data(self) -> bool {
        matches!(self, Self::Request | Self::Response | Self::Data | Self::DataAck)
    }

    /// Whether this is a data packet for NDP Count (RFC 4340 section 7.7).
    #[inline]
    pub const fn is_data_packet(self) -> bool {
        self.carries_app_data()
    }

    /// Whether packets of this type may have 24-bit sequence numbers (X=0). Other types with X=0
    /// are ignored (RFC 4340 section 5.1).
    #[inline]
    pub const fn may_use_short_seqnos(self) -> bool {
        matches!(self, Self::Data | Self::Ack | Self::DataAck)
    }

    /// Length in bytes of the header without options, for 48-bit (`x`) or 24-bit numbers.
    #[inline]
    pub const fn fixed_header_len(self, x: bool) -> usize {
        let (generic, ack) = if x { (16, 8) } else { (12, 4) };
        let word = matches!(self, Self::Request | Self::Response | Self::Reset | Self::Listen);
        generic + if self.has_ack() { ack } else { 0 } + if word { 4 } else { 0 }
    }

    /// The name without its `DCCP-` prefix.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Request => "Request",
            Self::Response => "Response",
            Self::Data => "Data",
            Self::Ack => "Ack",
            Self::DataAck => "DataAck",
            Self::CloseReq => "CloseReq",
            Self::Close => "Close",
            Self::Reset => "Reset",
            Self::Sync => "Sync",
            Self::SyncAck => "SyncAck",
            Self::Listen => "Listen",
        }
    }
}

impl fmt::Display for PacketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_types_round_trip() {
        for n in 0..=15 {
            let known = PacketType::from_number(n);
            assert_eq!(known.map(PacketType::number), (n <= 10).then_some(n));
        }
    }

    #[test]
    fn a_type_is_read_from_the_ninth_byte() {
        let mut header = [0xff; 12];
        header[8] = 2 << 1 | 1;
        assert_eq!(PacketType::peek(&header), Some(PacketType::Data));
        header[8] = 4 << 1;
        assert_eq!(PacketType::peek(&header[..9]), Some(PacketType::DataAck));
        assert_eq!(PacketType::peek(&header[..8]), None);
        header[8] = 11 << 1;
        assert_eq!(PacketType::peek(&header), None, "reserved");
    }

    #[test]
    fn header_lengths_are_those_of_the_drawings() {
        let long = PacketType::ALL.map(|t| t.fixed_header_len(true));
        assert_eq!(long, [20, 28, 16, 24, 24, 24, 24, 28, 24, 24, 20]);
        assert_eq!(PacketType::Data.fixed_header_len(false), 12);
        assert_eq!(PacketType::DataAck.fixed_header_len(false), 16);
    }
}
