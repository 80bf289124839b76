//! CCID 2, TCP-like congestion control (RFC 4341).
//!
//! The sender half consists of small parts: `history` (the fate of each packet), `window` (the
//! congestion window, with any algorithm of `udccp-cc`), `ack_ratio` with `peer_log` (congestion
//! control of acknowledgements), `ack_of_ack` (when to acknowledge acknowledgements), `observer`
//! (rounds and delivery rates, for algorithms that use them). The experimental CCIDs of
//! [`super::experimental`] are the same halves with other algorithms.

mod ack_of_ack;
mod ack_ratio;
mod config;
mod history;
mod observer;
mod pacing;
mod peer_log;
mod plain;
mod quick_start;
mod receiver;
mod sender;
#[cfg(test)]
mod tests;
mod trains;
mod unused;
mod window;

use udccp_wire::FeatureNumber;

use crate::ccid::FeatureNeed;
use crate::features::Location;

pub use config::{AckRatioConfig, Ccid2Config, Pacing, SlowStartGrowth};
pub(crate) use history::PlainRun;
pub use receiver::Ccid2Receiver;
pub use sender::Ccid2Sender;
pub use udccp_cc::IdlePolicy;
#[doc(hidden)]
pub use unused::UnusedCcid2;

/// The CCID's number.
pub const NUMBER: u8 = 2;

//= 4341-4-1
/// Features that the sender half needs. Data is not sent until the peer has agreed to send Ack
/// Vectors.
pub const NEEDED_FEATURES: &[FeatureNeed] = &[FeatureNeed {
    feature: FeatureNumber::SEND_ACK_VECTOR,
    location: Location::Remote,
    value: 1,
    mandatory: true,
    before_data: true,
}];
