//! What one end would like, feature by feature.

use udccp_wire::FeatureNumber;

use super::{ChangeError, Location};

/// What we would like of one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    /// Acceptable values, best first; exactly one for a non-negotiable feature.
    pub values: Vec<u64>,
    /// Send Mandatory before our Change: no agreement, no connection.
    pub mandatory: bool,
    /// Send a Change even where the feature has the first value already.
    pub announced: bool,
}

/// What we would like of all features, at both ends. The default accepts every value that RFC
/// 4340 defines, but asks for none and takes only CCID 2: with it, a connection has the RFC's
/// initial values unless the peer asks for others.
#[derive(Clone, Debug)]
pub struct FeaturePreferences {}

#[expect(unused_variables, clippy::todo, reason = "signatures first; bodies follow")]
impl FeaturePreferences {
    /// The default preferences.
    pub fn new() -> Self {
        todo!()
    }

    /// Sets the acceptable values of a feature, best first. If the first is not the initial
    /// value, a Change is sent in the handshake.
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
        todo!()
    }
}

impl Default for FeaturePreferences {
    fn default() -> Self {
        Self::new()
    }
}
