//! Routers in a row: chains and parking lots.

use std::collections::BTreeMap;

use crate::address::{IpVersion, PairAddresses};
use crate::config::{HopConfig, PairConfig, RunConfig};
use crate::error::SimError;
use crate::pace::Pace;
use crate::result::RunResult;
use crate::transfers::{Maker, PairMaker};

/// Any number of pairs over routers in a row. Each pair enters at a router and leaves at another,
/// so a row is a chain where all take the whole way, and a parking lot where some take a part:
///
/// ```text
///      sender 1      sender 2   receiver 2    receiver 1
///          |             |          |             |
///       router 0 ==== router 1 ==== router 2 ==== router 3
///                hop 1         hop 2         hop 3
/// ```
#[derive(Debug)]
pub struct Chain {
    pub(crate) hops: Vec<HopConfig>,
    pub(crate) pairs: Vec<PairConfig>,
    pub(crate) flows: Vec<FlowOf>,
    /// Who makes the pairs of these flows, in their order.
    pub(crate) makers: BTreeMap<usize, Maker>,
    pub(crate) quick_start: bool,
    pub(crate) ip: IpVersion,
}

/// Which pairs make up a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowOf {
    pub(crate) name: String,
    pub(crate) first: usize,
    pub(crate) pairs: usize,
}

impl Chain {
    /// `hops.len() + 1` routers without pairs; hop 1 leads from router 0 to router 1.
    pub const fn new(hops: Vec<HopConfig>) -> Self {
        Self {
            hops,
            pairs: Vec::new(),
            flows: Vec::new(),
            makers: BTreeMap::new(),
            quick_start: false,
            ip: IpVersion::V4,
        }
    }

    /// The addresses that the next pair must have been built with.
    pub const fn next_addresses(&self) -> PairAddresses {
        PairAddresses::of(self.pairs.len(), self.ip)
    }

    /// Adds a flow. Its transports use [`Self::next_addresses`], asked for before the call.
    pub fn add_pair(&mut self, pair: PairConfig) -> &mut Self {
        self.add_flow(pair.name.clone(), vec![pair])
    }

    /// Adds a flow of several pairs (transfers that come and go, each over hosts of its own), which
    /// are counted together. Their transports use [`PairAddresses::of`] from `self.pairs()` on.
    pub fn add_flow(&mut self, name: impl Into<String>, pairs: Vec<PairConfig>) -> &mut Self {
        let first = self.pairs.len();
        self.flows.push(FlowOf { name: name.into(), first, pairs: pairs.len() });
        self.pairs.extend(pairs);
        self
    }

    /// As [`Self::add_flow`], for pairs that are there only while they are needed
    /// ([`PairConfig::later`]): `maker` makes the transports of each when it starts, and they go
    /// when both are [spent](udccp_base::Transport::is_spent) and nothing is on its way to them.
    pub fn add_transfers(
        &mut self,
        name: impl Into<String>,
        pairs: Vec<PairConfig>,
        maker: Box<dyn PairMaker>,
    ) -> &mut Self {
        let first = self.pairs.len();
        self.makers.insert(self.flows.len(), Maker { maker, first });
        self.add_flow(name, pairs)
    }

    /// Whether the routers take part in Quick-Start (RFC 4782; default no): they approve what is
    /// left of 90 % of their links' rates by traffic and by the approvals of the last half second.
    pub const fn set_quick_start(&mut self, takes_part: bool) -> &mut Self {
        self.quick_start = takes_part;
        self
    }

    /// Which addresses hosts have (default IPv4). To be set before the first pair is built.
    pub const fn set_ip(&mut self, ip: IpVersion) -> &mut Self {
        self.ip = ip;
        self
    }

    /// Pairs added so far.
    pub const fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`SimError`]: the configuration makes no sense, time stands still, a capture cannot be
    /// written, or an invariant does not hold.
    pub fn run(self, run: RunConfig<'_>) -> Result<RunResult, SimError> {
        crate::run::run(self, run, None)
    }

    /// Runs to the end in step with a clock. With transports that are no machines of the
    /// simulation but doors to other hosts, this is an emulator.
    ///
    /// # Errors
    /// As [`Self::run`]; and [`SimError::Stopped`].
    pub fn run_paced(self, run: RunConfig<'_>, pace: &mut dyn Pace) -> Result<RunResult, SimError> {
        crate::run::run(self, run, Some(pace))
    }

    /// The routers where a pair enters and leaves.
    pub(crate) fn ends_of(&self, pair: &PairConfig) -> (usize, usize) {
        (pair.enters.unwrap_or(0), pair.leaves.unwrap_or(self.hops.len()))
    }
}
