//! CCID 3, TCP-Friendly Rate Control (RFC 4342, with TFRC as in RFC 5348).
//!
//! The arithmetic of TFRC is in [`crate::ccid::tfrc`]; here are the two halves that use it. The
//! sender paces data at the allowed rate X and checks the receiver's reports (`feedback`,
//! `verify`). The receiver detects loss events and reports once per round-trip time.

mod config;
pub(super) mod feedback;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod unused;
mod unused_receiver;
pub(super) mod verify;

use udccp_wire::FeatureNumber;

use crate::ccid::FeatureNeed;
use crate::features::Location;

pub use config::{Ccid3Config, SegmentSizeRule};
pub use receiver::Ccid3Receiver;
pub use sender::Ccid3Sender;
#[doc(hidden)]
pub use unused::UnusedCcid3;
#[doc(hidden)]
pub use unused_receiver::UnusedCcid3Receiver;

/// The CCID's number.
pub const NUMBER: u8 = 3;

/// Features that simplify the receiver. Data need not wait for them.
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
