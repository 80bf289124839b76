//! Reset codes (RFC 4340 section 5.6, RFC 6773 section 7.2).

use core::fmt;

/// Why a connection was reset. `From<u8>` and `From<ResetCode> for u8` are inverse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ResetCode {
    /// 0: no meaningful code.
    Unspecified,
    /// 1: normal close.
    Closed,
    /// 2: the sender gave up because there was no progress.
    Aborted,
    /// 3: no connection exists.
    NoConnection,
    /// 4: a packet of unexpected type; Data 1 is the type.
    PacketError,
    /// 5: an erroneous option; Data 1 is its type, Data 2 and 3 its first two data bytes.
    OptionError,
    /// 6: a Mandatory option could not be processed; data as for `OptionError`.
    MandatoryError,
    /// 7: no program listens on the port.
    ConnectionRefused,
    /// 8: the port does not offer the service code.
    BadServiceCode,
    /// 9: the server accepts no more connections.
    TooBusy,
    /// 10: the Init Cookie was wrong or missing.
    BadInitCookie,
    /// 11: the peer violates congestion control.
    AggressionPenalty,
    /// 12: the UDP ports already carry another connection (RFC 6773); Data 1 is the packet type,
    /// Data 2 and 3 the UDP source port.
    EncapsulatedPortReuse,
    /// 13 to 127 are reserved and read as `Unspecified`; 128 to 255 belong to the CCID.
    Other(u8),
}

impl ResetCode {
    /// The code with this number.
    #[inline]
    pub const fn from_number(number: u8) -> Self {
        match number {
            0 => Self::Unspecified,
            1 => Self::Closed,
            2 => Self::Aborted,
            3 => Self::NoConnection,
            4 => Self::PacketError,
            5 => Self::OptionError,
            6 => Self::MandatoryError,
            7 => Self::ConnectionRefused,
            8 => Self::BadServiceCode,
            9 => Self::TooBusy,
            10 => Self::BadInitCookie,
            11 => Self::AggressionPenalty,
            12 => Self::EncapsulatedPortReuse,
            other => Self::Other(other),
        }
    }

    /// The number on the wire.
    #[inline]
    pub const fn number(self) -> u8 {
        match self {
            Self::Unspecified => 0,
            Self::Closed => 1,
            Self::Aborted => 2,
            Self::NoConnection => 3,
            Self::PacketError => 4,
            Self::OptionError => 5,
            Self::MandatoryError => 6,
            Self::ConnectionRefused => 7,
            Self::BadServiceCode => 8,
            Self::TooBusy => 9,
            Self::BadInitCookie => 10,
            Self::AggressionPenalty => 11,
            Self::EncapsulatedPortReuse => 12,
            Self::Other(n) => n,
        }
    }

    /// Whether the meaning depends on the connection's CCIDs (RFC 4340 section 10.3).
    pub const fn is_ccid_specific(self) -> bool {
        self.number() >= 128
    }

    /// The name in RFC 4340's table 2.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "Unspecified",
            Self::Closed => "Closed",
            Self::Aborted => "Aborted",
            Self::NoConnection => "No Connection",
            Self::PacketError => "Packet Error",
            Self::OptionError => "Option Error",
            Self::MandatoryError => "Mandatory Error",
            Self::ConnectionRefused => "Connection Refused",
            Self::BadServiceCode => "Bad Service Code",
            Self::TooBusy => "Too Busy",
            Self::BadInitCookie => "Bad Init Cookie",
            Self::AggressionPenalty => "Aggression Penalty",
            Self::EncapsulatedPortReuse => "Encapsulated Port Reuse",
            Self::Other(n) if n >= 128 => "CCID-specific",
            Self::Other(_) => "Reserved",
        }
    }
}

impl From<u8> for ResetCode {
    fn from(number: u8) -> Self {
        Self::from_number(number)
    }
}

impl From<ResetCode> for u8 {
    fn from(code: ResetCode) -> Self {
        code.number()
    }
}

impl fmt::Display for ResetCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Other(n) => write!(f, "{} {n}", self.name()),
            named => f.write_str(named.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reset_codes_round_trip() {
        assert!((0..=255).all(|n| ResetCode::from(n).number() == n));
        assert_eq!(ResetCode::from(10), ResetCode::BadInitCookie);
    }
}
