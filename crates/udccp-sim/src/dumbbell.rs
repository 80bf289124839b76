//! The topology of most studies.

use crate::address::PairAddresses;
use crate::chain::Chain;
use crate::config::{DumbbellConfig, PairConfig, RunConfig};
use crate::error::SimError;
use crate::result::RunResult;

/// Any number of pairs over one bottleneck:
///
/// ```text
/// sender 1 --\                                    /-- receiver 1
/// sender 2 ---- left router ==bottleneck== right router ---- receiver 2
/// sender n --/                                    \-- receiver n
/// ```
#[derive(Debug)]
pub struct Dumbbell(Chain);

impl Dumbbell {
    /// A dumbbell without pairs.
    pub fn new(config: DumbbellConfig) -> Self {
        Self(Chain::new(vec![config]))
    }

    /// The addresses with which the transports of the next pair must be built.
    pub const fn next_addresses(&self) -> PairAddresses {
        self.0.next_addresses()
    }

    /// Adds a flow. Build its transports with [`Self::next_addresses`] before the call.
    pub fn add_pair(&mut self, pair: PairConfig) -> &mut Self {
        self.0.add_pair(pair);
        self
    }

    /// Runs the simulation to its end.
    ///
    /// # Errors
    /// [`SimError`]: the configuration is invalid, time stands still, a capture cannot be written,
    /// or an invariant is violated.
    pub fn run(self, run: RunConfig<'_>) -> Result<RunResult, SimError> {
        self.0.run(run)
    }
}
