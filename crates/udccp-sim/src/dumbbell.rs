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

    /// The addresses that the next pair must have been built with.
    pub const fn next_addresses(&self) -> PairAddresses {
        self.0.next_addresses()
    }

    /// Adds a flow. Its transports use [`Self::next_addresses`], asked for before the call.
    pub fn add_pair(&mut self, pair: PairConfig) -> &mut Self {
        self.0.add_pair(pair);
        self
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimError`]: the configuration makes no sense, time stands still, a capture cannot be
    /// written, or an invariant does not hold.
    pub fn run(self, run: RunConfig<'_>) -> Result<RunResult, SimError> {
        self.0.run(run)
    }
}
