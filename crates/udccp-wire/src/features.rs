//! Feature numbers and their properties (RFC 4340 section 6.4, RFC 4342 section 8.4).

use core::fmt;

/// The number of a feature. Numbers 128 and up belong to the CCID of the half-connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FeatureNumber(pub u8);

/// How two endpoints agree on a value (RFC 4340 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reconciliation {
    /// The first entry of the server's list that is also in the client's list.
    ServerPriority,
    /// The feature location decides the value.
    NonNegotiable,
}

/// Properties of a feature according to the RFCs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeatureInfo {
    /// Its number.
    pub number: FeatureNumber,
    /// Its name in the RFC.
    pub name: &'static str,
    /// How its value is negotiated.
    pub rule: Reconciliation,
    /// Length of one value in bytes.
    pub value_len: usize,
    /// The value of a new connection.
    pub initial: u64,
    /// Smallest valid value. Other values of a server-priority feature are unknown, not invalid.
    pub min: u64,
    /// Largest valid value.
    pub max: u64,
    /// Whether every implementation must understand it.
    pub required: bool,
}

impl FeatureNumber {
    /// Congestion Control ID.
    pub const CCID: Self = Self(1);
    /// Allow Short Sequence Numbers.
    pub const ALLOW_SHORT_SEQNOS: Self = Self(2);
    /// Sequence Window, in packets.
    pub const SEQUENCE_WINDOW: Self = Self(3);
    /// ECN Incapable.
    pub const ECN_INCAPABLE: Self = Self(4);
    /// Ack Ratio, data packets for each acknowledgement.
    pub const ACK_RATIO: Self = Self(5);
    /// Send Ack Vector.
    pub const SEND_ACK_VECTOR: Self = Self(6);
    /// Send NDP Count.
    pub const SEND_NDP_COUNT: Self = Self(7);
    /// Minimum Checksum Coverage.
    pub const MIN_CSCOV: Self = Self(8);
    /// Check Data Checksum.
    pub const CHECK_DATA_CHECKSUM: Self = Self(9);
    /// Send Loss Event Rate, of CCIDs 3 and 4.
    pub const SEND_LEV_RATE: Self = Self(192);

    /// The properties of this feature; `None` if the number is reserved or unknown. Number 192 is
    /// that of CCIDs 3 and 4.
    pub fn info(self) -> Option<&'static FeatureInfo> {
        TABLE.iter().find(|info| info.number == self)
    }

    /// Whether the meaning depends on the CCID (RFC 4340 section 10.3).
    pub const fn is_ccid_specific(self) -> bool {
        self.0 >= 128
    }
}

impl fmt::Display for FeatureNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => f.write_str(info.name),
            None => write!(f, "Feature {}", self.0),
        }
    }
}

/// A one-byte server-priority feature with initial value 0, as most are.
const fn server_priority(number: FeatureNumber, name: &'static str, max: u64) -> FeatureInfo {
    let rule = Reconciliation::ServerPriority;
    FeatureInfo { number, name, rule, value_len: 1, initial: 0, min: 0, max, required: false }
}

static TABLE: [FeatureInfo; 10] = [
    FeatureInfo { initial: 2, required: true, ..server_priority(FeatureNumber::CCID, "CCID", 255) },
    FeatureInfo {
        required: true,
        ..server_priority(FeatureNumber::ALLOW_SHORT_SEQNOS, "Allow Short Seqnos", 1)
    },
    FeatureInfo {
        number: FeatureNumber::SEQUENCE_WINDOW,
        name: "Sequence Window",
        rule: Reconciliation::NonNegotiable,
        value_len: 6,
        initial: 100,
        min: 32,
        max: (1 << 46) - 1,
        required: true,
    },
    server_priority(FeatureNumber::ECN_INCAPABLE, "ECN Incapable", 1),
    FeatureInfo {
        number: FeatureNumber::ACK_RATIO,
        name: "Ack Ratio",
        rule: Reconciliation::NonNegotiable,
        value_len: 2,
        initial: 2,
        min: 0,
        max: 0xffff,
        required: false,
    },
    server_priority(FeatureNumber::SEND_ACK_VECTOR, "Send Ack Vector", 1),
    server_priority(FeatureNumber::SEND_NDP_COUNT, "Send NDP Count", 1),
    server_priority(FeatureNumber::MIN_CSCOV, "Minimum Checksum Coverage", 15),
    server_priority(FeatureNumber::CHECK_DATA_CHECKSUM, "Check Data Checksum", 1),
    server_priority(FeatureNumber::SEND_LEV_RATE, "Send Loss Event Rate", 1),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_has_the_rfc_values() {
        let initial = |n: u8| FeatureNumber(n).info().map(|i| i.initial);
        assert_eq!([1, 2, 3, 4, 5].map(initial), [Some(2), Some(0), Some(100), Some(0), Some(2)]);
        assert!([0, 10, 127, 128, 255].iter().all(|&n| FeatureNumber(n).info().is_none()));
        let nn = |i: &&FeatureInfo| i.rule == Reconciliation::NonNegotiable;
        assert_eq!(TABLE.iter().filter(nn).count(), 2);
    }
}
