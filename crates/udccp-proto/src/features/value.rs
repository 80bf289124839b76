//! Encodes values, and applies the rule of server-priority features.

use udccp_wire::{FeatureInfo, FeatureNumber, Reconciliation};

use super::ChangeError;
use super::list::ByteList;

/// Longest preference list that fits in a Confirm: 253 bytes of option data minus the feature
/// number and the confirmed value.
const MAX_LIST: usize = 251;

/// The first entry of the server's list that is also in the client's (RFC 4340 section 6.3.1).
pub(super) fn reconcile(server: &[u8], client: &[u8]) -> Option<u8> {
    server.iter().copied().find(|v| client.contains(v))
}

/// The value area of a Change: the list, or the one value in its fixed length.
pub(super) fn encode(info: &FeatureInfo, values: &[u64]) -> Result<ByteList, ChangeError> {
    let feature = info.number;
    if values.is_empty() {
        return Err(ChangeError::NoValue(feature));
    }
    if let Some(&value) = values.iter().find(|&&v| v < info.min || v > info.max) {
        return Err(ChangeError::InvalidValue { feature, value });
    }
    match info.rule {
        Reconciliation::ServerPriority => match values.get(MAX_LIST) {
            Some(&value) => Err(ChangeError::InvalidValue { feature, value }),
            None => Ok(values.iter().map(|&v| v as u8).collect()),
        },
        Reconciliation::NonNegotiable => match values {
            [value] => Ok(ByteList::new(&value.to_be_bytes()[8 - info.value_len..])),
            [_, second, ..] => Err(ChangeError::InvalidValue { feature, value: *second }),
            [] => Err(ChangeError::NoValue(feature)),
        },
    }
}

/// The value in the option of a non-negotiable feature; `None` if its length or value is not
/// valid.
pub(super) fn decode(info: &FeatureInfo, bytes: &[u8]) -> Option<u64> {
    if bytes.len() != info.value_len {
        return None;
    }
    let value = bytes.iter().fold(0, |v, &b| (v << 8) | u64::from(b));
    //= 4340-7.5.2-1
    (info.min..=info.max).contains(&value).then_some(value)
}

/// Whether a CCID has this CCID-specific feature (RFC 4342 section 8.4, RFC 5622 section 8.4).
pub(super) fn ccid_knows(ccid: u64, feature: FeatureNumber) -> bool {
    feature == FeatureNumber::SEND_LEV_RATE && matches!(ccid, 3 | 4)
}
