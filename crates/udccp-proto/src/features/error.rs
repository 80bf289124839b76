//! Errors of feature negotiation.

use udccp_wire::{FeatureNumber, ResetCode};

/// An option of the peer ends the connection: send a Reset with this code and data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("feature negotiation failed: Reset {code:?}, data {data:?}")]
pub struct FeatureError {
    /// `OptionError` or `MandatoryError`.
    pub code: ResetCode,
    /// Data 1 to 3 of the Reset: option type, then the first two bytes of its data (RFC 4340
    /// section 5.6).
    pub data: [u8; 3],
}

/// Why a feature value cannot be requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// No such feature (or its CCID is not in use).
    #[error("feature {0:?} is unknown")]
    Unknown(FeatureNumber),
    /// Wrong number of values, or a value out of the feature's range.
    #[error("feature {feature:?} does not take the value {value}")]
    InvalidValue {
        /// Which feature.
        feature: FeatureNumber,
        /// The first value that is invalid.
        value: u64,
    },
    /// No value at all was given.
    #[error("feature {0:?} needs at least one value")]
    NoValue(FeatureNumber),
    /// A non-negotiable feature can be set only where it is located.
    #[error("feature {0:?} is set by the peer alone")]
    NotOurs(FeatureNumber),
}
