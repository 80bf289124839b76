//! A reason why our value and the published one differ.

use udccp_metrics::Summary;

use super::spread::Spread;

/// A reason given for the difference of one cell.
#[derive(Clone, Debug)]
pub struct Reason {
    /// The explanation.
    pub says: String,
    /// The variant whose runs were examined.
    pub variant: String,
    /// The result of these runs.
    pub found: Summary,
    /// How far these runs differ from each other.
    pub spread: Spread,
    /// How far they support the explanation; `None` if there are too few of them.
    pub support: Option<Support>,
    /// Points of the table that agree without the set-up but not with it.
    pub broken: usize,
}

/// How far a variant's runs support an explanation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Support {
    /// With the table's one set-up, every value of the point agrees with the published one.
    Full,
    /// Only this value agrees: another value of the point does not, or the set-up is not the
    /// table's.
    Here,
    /// The value does not agree.
    No,
}

impl Support {
    /// Whether the explanation may be given.
    pub fn counts(self) -> bool {
        self == Self::Full
    }
}
