//! The preferences of one end for each feature.

use udccp_wire::{FeatureNumber, Reconciliation};

use super::list::ByteList;
use super::slots::{SLOTS, slot};
use super::value::encode;
use super::{ChangeError, Location};

/// Our preference for one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// The value area of our Change: acceptable values, best first, or a single value.
    pub(super) change: ByteList,
    /// Send Mandatory before our Change, so the connection ends if there is no agreement.
    pub mandatory: bool,
    /// Send a Change even if the feature already has the first value.
    pub announced: bool,
    /// All values are equally good. A server, whose order decides, then prefers the first value in
    /// the client's first Change.
    pub indifferent: bool,
}

impl Preference {
    pub(super) fn new(change: ByteList) -> Self {
        Self { change, mandatory: false, announced: false, indifferent: false }
    }

    /// If the preference is indifferent, moves the peer's first choice to the front.
    pub(super) fn adapt_to(&mut self, theirs: &[u8]) {
        let best = theirs.iter().find_map(|v| self.change.iter().position(|own| own == v));
        if let Some(best) = best.filter(|_| self.indifferent) {
            self.change[..=best].rotate_right(1);
        }
    }
}

/// Our preferences for all features, at both ends.
///
/// The default requests nothing, and agrees to whatever the peer requests if that costs nothing: a
/// connection has the RFC's initial values unless the peer requests others. It accepts only CCID 2,
/// long sequence numbers, and full checksum coverage of the data we receive, because other values
/// of these have to be set.
#[derive(Clone, Debug)]
pub struct FeaturePreferences {
    slots: [Option<Preference>; SLOTS],
}

impl FeaturePreferences {
    /// The default preferences.
    pub fn new() -> Self {
        let mut slots = [const { None }; SLOTS];
        for location in [Location::Local, Location::Remote] {
            for number in 1..=9 {
                let feature = FeatureNumber(number);
                let change = default_change(location, feature);
                let preference = Preference { indifferent: true, ..Preference::new(change) };
                slots[slot(location, feature).unwrap_or(0)] = Some(preference);
            }
        }
        Self { slots }
    }

    /// Sets the acceptable values of a feature, best first, replacing earlier ones. If the first is
    /// not the initial value, a Change is sent in the handshake. A CCID-specific feature is
    /// understood only if it is set.
    ///
    /// # Errors
    /// An unknown feature, no value or a value out of range, or a non-negotiable feature at the
    /// peer.
    pub fn set(
        &mut self,
        location: Location,
        feature: FeatureNumber,
        values: &[u64],
    ) -> Result<&mut Preference, ChangeError> {
        let info = feature.info().ok_or(ChangeError::Unknown(feature))?;
        let index = slot(location, feature).ok_or(ChangeError::Unknown(feature))?;
        if info.rule == Reconciliation::NonNegotiable && location == Location::Remote {
            return Err(ChangeError::NotOurs(feature));
        }
        let change = encode(info, values)?;
        Ok(self.slots[index].insert(Preference::new(change)))
    }

    /// The preference for a feature; `None` if the feature is not understood.
    pub(super) fn get(&self, location: Location, feature: FeatureNumber) -> Option<&Preference> {
        self.slots[slot(location, feature)?].as_ref()
    }
}

impl Default for FeaturePreferences {
    fn default() -> Self {
        Self::new()
    }
}

fn default_change(location: Location, feature: FeatureNumber) -> ByteList {
    match (feature, location) {
        (FeatureNumber::CCID, _) => ByteList::new(&[2]),
        (FeatureNumber::ALLOW_SHORT_SEQNOS, _) | (FeatureNumber::MIN_CSCOV, Location::Local) => {
            ByteList::new(&[0])
        }
        (FeatureNumber::MIN_CSCOV, Location::Remote) => (0..16).collect(),
        (FeatureNumber::SEQUENCE_WINDOW, Location::Local) => ByteList::new(&[0, 0, 0, 0, 0, 100]),
        (FeatureNumber::ACK_RATIO, Location::Local) => ByteList::new(&[0, 2]),
        (FeatureNumber::SEQUENCE_WINDOW | FeatureNumber::ACK_RATIO, Location::Remote) => {
            ByteList::EMPTY
        }
        _ => ByteList::new(&[0, 1]),
    }
}
