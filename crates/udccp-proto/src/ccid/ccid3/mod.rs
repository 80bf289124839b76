//! CCID 3, TCP-Friendly Rate Control (RFC 4342, with TFRC as in RFC 5348).
//!
//! The arithmetic of TFRC is in [`crate::ccid::tfrc`]. Here are the two halves around it: the
//! sender, which paces data by the allowed rate X and checks what the receiver reports
//! (`feedback`, `verify`), and the receiver, which finds loss events and reports once a
//! round-trip time.

mod config;
pub(super) mod feedback;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
pub(super) mod verify;

use udccp_wire::FeatureNumber;

use crate::ccid::FeatureNeed;
use crate::features::Location;

pub use config::{Ccid3Config, SegmentSizeRule};
pub use receiver::Ccid3Receiver;
pub use sender::Ccid3Sender;

/// The CCID's number.
pub const NUMBER: u8 = 3;

/// Features that make the receiver's work easier; data need not wait for them.
pub const NEEDED_FEATURES: &[FeatureNeed] = &[
    FeatureNeed {
        feature: FeatureNumber::SEND_LEV_RATE,
        location: Location::Remote,
        value: 1,
        mandatory: false,
        before_data: false,
    },
    FeatureNeed {
        feature: FeatureNumber::SEND_NDP_COUNT,
        location: Location::Local,
        value: 1,
        mandatory: false,
        before_data: false,
    },
];
