//! Routers in a row: chains and parking lots.

use std::collections::BTreeMap;

use crate::address::{IpVersion, PairAddresses};
use crate::config::{HopConfig, PairConfig, RunConfig};
use crate::error::SimError;
use crate::pace::Pace;
use crate::result::RunResult;
use crate::transfers::{Maker, PairMaker};

/// Any number of pairs over routers in a row. Each pair enters at one router and leaves at another.
/// If all use the whole row it is a chain, otherwise a parking lot:
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
    /// The makers of transports for flows added with [`Chain::add_transfers`], by flow.
    pub(crate) makers: BTreeMap<usize, Maker>,
    pub(crate) quick_start: bool,
    pub(crate) ip: IpVersion,
}

/// The pairs of a flow.
#[derive(Clone, Debug)]
pub(crate) struct FlowOf {
    pub(crate) name: Box<str>,
    pub(crate) first: usize,
    pub(crate) pairs: usize,
}

impl Chain {
    /// `hops.len() + 1` routers without pairs. Hop 1 connects router 0 and router 1.
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

    /// The addresses with which the transports of the next pair must be built.
    pub const fn next_addresses(&self) -> PairAddresses {
        PairAddresses::of(self.pairs.len(), self.ip)
    }

    /// Adds a flow. Build its transports with [`Self::next_addresses`] before the call.
    pub fn add_pair(&mut self, pair: PairConfig) -> &mut Self {
        self.add_flow(pair.name.clone(), vec![pair])
    }

    /// Adds a flow of several pairs that are counted together, such as short transfers, each
    /// between its own hosts. Build their transports with [`PairAddresses::of`], from
    /// `self.pairs()` on.
    pub fn add_flow(&mut self, name: impl Into<String>, pairs: Vec<PairConfig>) -> &mut Self {
        let first = self.pairs.len();
        let name = name.into().into_boxed_str();
        self.flows.push(FlowOf { name, first, pairs: pairs.len() });
        self.pairs.extend(pairs);
        self
    }

    /// As [`Self::add_flow`], for pairs that exist only while they are needed
    /// ([`PairConfig::later`]). `maker` makes the transports of each pair when it starts. They are
    /// dropped when both are [spent](udccp_base::Transport::is_spent) and no packet is on its way
    /// to them.
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

    /// Sets whether the routers support Quick-Start (RFC 4782; default no). A router approves what
    /// remains of 90 % of the link's rate after traffic and the approvals of the last half second.
    pub const fn set_quick_start(&mut self, takes_part: bool) -> &mut Self {
        self.quick_start = takes_part;
        self
    }

    /// Sets the IP version of the hosts (default IPv4). Call it before the first pair is built.
    pub const fn set_ip(&mut self, ip: IpVersion) -> &mut Self {
        self.ip = ip;
        self
    }

    /// Number of pairs added so far.
    pub const fn pairs(&self) -> usize {
        self.pairs.len()
    }

    /// Runs the simulation to its end.
    ///
    /// # Errors
    /// [`SimError`]: the configuration is invalid, time stands still, a capture cannot be written,
    /// or an invariant is violated.
    pub fn run(self, run: RunConfig<'_>) -> Result<RunResult, SimError> {
        crate::run::run(self, run, None)
    }

    /// Runs to the end in step with a clock. If the transports are not simulated but represent
    /// other hosts, this is an emulator.
    ///
    /// # Errors
    /// As [`Self::run`]; [`SimError::Stopped`].
    pub fn run_paced(self, run: RunConfig<'_>, pace: &mut dyn Pace) -> Result<RunResult, SimError> {
        crate::run::run(self, run, Some(pace))
    }

    /// The routers at which a pair enters and leaves.
    pub(crate) fn ends_of(&self, pair: &PairConfig) -> (usize, usize) {
        (pair.enters.unwrap_or(0), pair.leaves.unwrap_or(self.hops.len()))
    }
}
