//! Collects what one end prefers, feature by feature.

use udccp_wire::{FeatureNumber, Reconciliation};

use super::entry::{SLOTS, slot};
use super::list::ByteList;
use super::value::encode;
use super::{ChangeError, Location};

/// What we would like of one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// The value area of our Change: acceptable values, best first, or the one value.
    pub(super) change: ByteList,
    /// Send Mandatory before our Change: no agreement, no connection.
    pub mandatory: bool,
    /// Send a Change even where the feature has the first value already.
    pub announced: bool,
    /// All values are as good to us: a server, whose order counts, takes over the one that the
    /// client's first Change has.
    pub indifferent: bool,
}

impl Preference {
    pub(super) fn new(change: ByteList) -> Self {
        Self { change, mandatory: false, announced: false, indifferent: false }
    }

    /// Where we do not care, puts what the peer likes best to the front.
    pub(super) fn adapt_to(&mut self, theirs: &[u8]) {
        let best = theirs.iter().find_map(|v| self.change.iter().position(|own| own == v));
        if let Some(best) = best.filter(|_| self.indifferent) {
            self.change[..=best].rotate_right(1);
        }
    }
}

/// What we would like of all features, at both ends.
///
/// The default asks for nothing and gives the peer its way in all that costs nothing: a connection
/// has the RFC's initial values unless the peer asks for others. It takes only CCID 2, only long
/// sequence numbers, and lets the peer send us only data that is wholly covered by the checksum,
/// since other values there have to be wished for.
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

    /// Sets the acceptable values of a feature, best first, and takes back what was set before.
    /// If the first is not the initial value, a Change is sent in the handshake. A CCID-specific
    /// feature is understood only once it is set.
    ///
    /// # Errors
    /// An unknown feature, no value or a value out of range; a non-negotiable feature at the
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

    /// The preference for a feature, if it is understood at all.
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
