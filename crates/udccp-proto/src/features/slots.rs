//! Numbers the features at both locations.

use udccp_wire::FeatureNumber;

use super::Location;

//= 4340-6.4-1
//= 4340-6.4-2
/// Features that the engine can hold.
const FEATURES: [FeatureNumber; 10] = [
    FeatureNumber::CCID,
    FeatureNumber::ALLOW_SHORT_SEQNOS,
    FeatureNumber::SEQUENCE_WINDOW,
    FeatureNumber::ECN_INCAPABLE,
    FeatureNumber::ACK_RATIO,
    FeatureNumber::SEND_ACK_VECTOR,
    FeatureNumber::SEND_NDP_COUNT,
    FeatureNumber::MIN_CSCOV,
    FeatureNumber::CHECK_DATA_CHECKSUM,
    FeatureNumber::SEND_LEV_RATE,
];

/// Slots for all features at both locations; those of CCID-specific features come after CCID.
pub(super) const SLOTS: usize = 2 * FEATURES.len();

/// The slot of a feature, if the engine can hold the feature.
pub(super) fn slot(location: Location, feature: FeatureNumber) -> Option<usize> {
    let index = match feature.0 {
        n @ 1..=9 => usize::from(n) - 1,
        192 => 9,
        _ => return None,
    };
    Some(2 * index + usize::from(location == Location::Remote))
}

/// The feature in a slot.
pub(super) fn feature_at(slot: usize) -> (Location, FeatureNumber) {
    let location = if slot % 2 == 0 { Location::Local } else { Location::Remote };
    (location, FEATURES[slot / 2])
}
