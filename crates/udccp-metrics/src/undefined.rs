//! Values that do not exist, with the reason.

use core::fmt;

/// A number, or why it does not exist.
pub type Measured = Result<f64, Undefined>;

/// Why a value does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Undefined {
    /// Nothing was measured: no flow, no sample, or no packet.
    NoSamples,
    /// The sender reported no round-trip time: UDP, or a flow of many connections.
    NoRoundTripTime,
    /// Nothing was lost, and the equation divides by the loss.
    NoLoss,
    /// Every flow had zero throughput, so there is nothing to share.
    AllSilent,
    /// A statistic needs more runs or samples.
    TooFew {
        /// How many are needed.
        needed: usize,
        /// How many there were.
        got: usize,
    },
    /// The measuring interval has no length.
    EmptyInterval,
    /// The reference value, by which the result is divided, is zero.
    ZeroReference,
    /// A flow without any throughput, whose decibels or utility would be minus infinity.
    Silent,
    /// No flow has its fair share or more.
    NoneFair,
    /// No flow has less than its fair share.
    NoneUnfair,
    /// The sender has no congestion control or did not report it: a kernel's DCCP, or a flow of
    /// many connections.
    NotControlled,
    /// The event did not happen within the measured time.
    Never,
    /// Two lists that belong together have different lengths.
    DifferentLengths,
    /// The times of a series do not rise.
    NotRising,
    /// An input was negative, infinite or not a number.
    BadInput,
}

impl fmt::Display for Undefined {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => f.write_str("nothing was measured"),
            Self::NoRoundTripTime => f.write_str("no round-trip time"),
            Self::NoLoss => f.write_str("no loss"),
            Self::AllSilent => f.write_str("no flow delivered anything"),
            Self::TooFew { needed, got } => write!(f, "needs {needed} values, there are {got}"),
            Self::EmptyInterval => f.write_str("the measuring interval is empty"),
            Self::ZeroReference => f.write_str("the value to compare with is zero"),
            Self::Silent => f.write_str("a flow delivered nothing"),
            Self::NoneFair => f.write_str("no flow has its fair share or more"),
            Self::NoneUnfair => f.write_str("no flow has less than its fair share"),
            Self::NotControlled => f.write_str("the sender reports no congestion events"),
            Self::Never => f.write_str("never in the measured time"),
            Self::DifferentLengths => f.write_str("series of different lengths"),
            Self::NotRising => f.write_str("the times of a series must rise"),
            Self::BadInput => f.write_str("an input is negative or not a finite number"),
        }
    }
}

impl std::error::Error for Undefined {}

/// Refuses infinite and NaN inputs.
pub(crate) fn check_finite(values: &[f64]) -> Result<(), Undefined> {
    if values.iter().all(|v| v.is_finite()) { Ok(()) } else { Err(Undefined::BadInput) }
}

/// Refuses negative, infinite and NaN inputs.
pub(crate) fn check(values: &[f64]) -> Result<(), Undefined> {
    let fine = values.iter().all(|v| v.is_finite() && *v >= 0.0);
    if fine { Ok(()) } else { Err(Undefined::BadInput) }
}
