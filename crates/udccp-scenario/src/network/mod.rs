//! Builds the network of a scenario for the simulator.

use std::sync::Arc;

use udccp_base::{Duration, Rng, Seed, Transport};
use udccp_cc::Algorithm;
use udccp_sim::{
    Arrival, Bulk, Chain, Codec, ConstantRate, Dialogue, Frames, HopConfig, IpVersion, LinkConfig,
    OnOff, PairAddresses, PairConfig, PairMaker, RequestResponse, Source, Speech, Transfer, Video,
    Voip, link_name, poisson,
};

use crate::Family;
use crate::run_error::RunError;
use crate::schema::{
    CodecName, Direction, Flow, Link, RandomVariable, Scenario, Silence, Traffic, of_link,
};
use crate::transports::{self, Configs, Shared};

/// Largest number of transfers in one flow.
pub const MAX_TRANSFERS: usize = 50_000;

/// Creates the hosts of a network: simulated machines, or connections to external programs.
pub trait Hosts {
    /// The two hosts of a flow, or of one of its transfers, with these addresses; `seed` is their
    /// own.
    ///
    /// # Errors
    /// Invalid settings of the flow, as text.
    fn pair(&mut self, flow: &Flow, at: PairAddresses, seed: Seed) -> Result<HostPair, String>;

    /// Whether one pair carries all transfers of a flow with random transfers. A simulated machine
    /// has only one connection, so each transfer has its own hosts.
    fn play_many(&self) -> bool {
        false
    }

    /// Returns an object that creates the hosts of a flow's transfers, each pair when its transfer
    /// starts; `seed` is the flow's own. `None` if all of them must exist from the start.
    ///
    /// # Errors
    /// As [`Self::pair`].
    fn transfer_maker(
        &mut self,
        flow: &Flow,
        seed: Seed,
    ) -> Result<Option<Box<dyn PairMaker>>, String> {
        let _ = (flow, seed);
        Ok(None)
    }

    /// The IP version of the hosts' addresses.
    fn ip(&self) -> IpVersion {
        IpVersion::V4
    }
}

/// The two hosts of a pair.
pub struct HostPair {
    /// The active end.
    pub sender: Box<dyn Transport>,
    /// The passive end.
    pub receiver: Box<dyn Transport>,
    /// The source that feeds the sender, if it is not the traffic of the flow.
    pub source: Option<Box<dyn Source>>,
}

impl core::fmt::Debug for HostPair {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HostPair").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Simulated hosts, each with the transport of its flow.
pub(crate) struct SimulatedHosts<'a> {
    /// Window algorithms by name of flow, which replace those of their protocols.
    algorithms: &'a [(String, Algorithm)],
    configs: Configs,
}

impl<'a> SimulatedHosts<'a> {
    /// Creates hosts of flows; `algorithms` are window algorithms by name of flow, which replace
    /// those of their protocols.
    pub(crate) fn new(algorithms: &'a [(String, Algorithm)]) -> Self {
        Self { algorithms, configs: Configs::default() }
    }

    /// The window algorithm that replaces that of the flow's protocol.
    fn algorithm_of(&self, flow: &Flow) -> Option<&'a Algorithm> {
        let own = self.algorithms.iter().find(|(name, _)| *name == flow.name);
        own.map(|(_, algorithm)| algorithm)
    }
}

impl Hosts for SimulatedHosts<'_> {
    fn pair(&mut self, flow: &Flow, at: PairAddresses, seed: Seed) -> Result<HostPair, String> {
        let own = self.algorithm_of(flow);
        let transports::Ends { sender, receiver } =
            transports::build(flow, at, seed, own, &mut self.configs)?;
        Ok(HostPair { sender, receiver, source: None })
    }

    fn transfer_maker(
        &mut self,
        flow: &Flow,
        seed: Seed,
    ) -> Result<Option<Box<dyn PairMaker>>, String> {
        if flow.dccp.invite == Some(true) {
            // Such a receiver sends the first packet, at the start of the flow.
            return Ok(None);
        }
        let algorithm = self.algorithm_of(flow).cloned();
        let configs = Configs::default();
        let mut maker = Transfers { flow: flow.clone(), seed, algorithm, configs };
        // Report contradicting settings now, and not when the first transfer starts.
        maker.make(0, PairAddresses::of(0, self.ip()))?;
        Ok(Some(Box::new(maker)))
    }
}

/// Creates the transports of a flow's transfers when they start.
#[derive(Debug)]
struct Transfers {
    flow: Flow,
    /// The flow's seed.
    seed: Seed,
    /// Replaces that of the flow's protocol.
    algorithm: Option<Algorithm>,
    configs: Configs,
}

impl PairMaker for Transfers {
    fn make(
        &mut self,
        number: usize,
        at: PairAddresses,
    ) -> Result<[Box<dyn Transport>; 2], String> {
        let Self { flow, seed, algorithm, configs } = self;
        let seed = seed.derive(&transfer_name(flow, number));
        let ends = transports::build(flow, at, seed, algorithm.as_ref(), configs)?;
        Ok([ends.sender, ends.receiver])
    }
}

/// The name of a transfer of a flow, counted from 0.
fn transfer_name(flow: &Flow, number: usize) -> String {
    format!("{}/{}", flow.name, number + 1)
}

/// The network of a scenario with all of its flows, with hosts of any kind.
///
/// # Errors
/// Flow settings that contradict each other.
pub fn network(scenario: &Scenario, seed: Seed, hosts: &mut dyn Hosts) -> Result<Chain, RunError> {
    let mut chain = Chain::new(hop_configs(scenario));
    chain.set_ip(hosts.ip());
    chain.set_quick_start(scenario.flows.iter().any(|flow| flow.dccp.quick_start.is_some()));
    let mut links = SharedLinks::default();
    for flow in &scenario.flows {
        let own = seed.derive("flow").derive(&flow.name);
        let setup = Setup { scenario, flow, links: links.of(scenario, flow) };
        match *flow.traffic {
            Traffic::Poisson { every, size } if !hosts.play_many() => {
                add_transfers(&mut chain, &setup, (every, size), own, hosts)?;
            }
            _ => {
                let source = source(&flow.traffic, own.stream("source"));
                let at = chain.next_addresses();
                chain.add_pair(setup.pair(&flow.name, (at, own), source, hosts)?);
            }
        }
    }
    Ok(chain)
}

/// The links between the routers of a scenario, from left to right, with their scheduled changes.
pub fn hop_configs(scenario: &Scenario) -> Vec<HopConfig> {
    let topology = &scenario.topology;
    let (rtt, others) = (topology.rtt(), topology.access_delays());
    let config = |link: &Link| LinkConfig {
        delay: topology.delay_of(link),
        ..link.bottleneck_config(others, rtt)
    };
    let hop = |(link, reverse): (&Link, Option<&Link>)| {
        let forward = config(link);
        let reverse = reverse.map_or_else(|| forward.without_chance(), config);
        HopConfig { forward, reverse }
    };
    let mut hops: Vec<HopConfig> = topology.hops().map(hop).collect();
    let count = hops.len();
    let links = hops.iter_mut().flat_map(|hop| [&mut hop.forward, &mut hop.reverse]);
    for (i, link) in links.enumerate() {
        link.changes = of_link(&scenario.changes, &link_name(i, count));
    }
    hops
}

/// The access links of a flow's sender and receiver, with their scheduled changes.
pub fn access_links(scenario: &Scenario, flow: &Flow) -> [LinkConfig; 2] {
    let topology = &scenario.topology;
    let access = |own: Option<&Link>, end: &str| LinkConfig {
        changes: of_link(&scenario.changes, &format!("{} {end}", flow.name)),
        ..own.unwrap_or(&topology.access).access_config(topology.rtt())
    };
    let mut sender = access(flow.access.as_deref(), "sender");
    if let (Family::Dccp, Some(share)) = (flow.protocol.family, flow.dccp.host_loss) {
        sender.loss = share.into();
    }
    [sender, access(flow.receiver_access.as_deref(), "receiver")]
}

/// The routers of a flow's sender and receiver, counted from 0 at the left. A flow in reverse
/// enters at the right.
pub fn routers_of(scenario: &Scenario, flow: &Flow) -> (usize, usize) {
    let router = |number: Option<u64>, end: usize| number.map_or(end, |n| n as usize - 1);
    let left = router(flow.enters, 0);
    let right = router(flow.leaves, scenario.topology.routers() - 1);
    match flow.direction {
        Direction::Forward => (left, right),
        Direction::Reverse => (right, left),
    }
}

/// Access links that consecutive flows share where they are equal.
#[derive(Default)]
struct SharedLinks([Shared<Arc<LinkConfig>>; 2]);

impl SharedLinks {
    fn of(&mut self, scenario: &Scenario, flow: &Flow) -> [Arc<LinkConfig>; 2] {
        let [sender, receiver] = access_links(scenario, flow);
        [self.0[0].of(sender), self.0[1].of(receiver)]
    }
}

/// A flow of a scenario, with the access links of its sender and receiver.
struct Setup<'a> {
    scenario: &'a Scenario,
    flow: &'a Flow,
    links: [Arc<LinkConfig>; 2],
}

impl Setup<'_> {
    /// Creates both hosts of the flow, or of one of its transfers; `own` is the seed of that.
    fn pair(
        &self,
        name: &str,
        (at, own): (PairAddresses, Seed),
        source: Box<dyn Source>,
        hosts: &mut dyn Hosts,
    ) -> Result<PairConfig, RunError> {
        let ends = hosts.pair(self.flow, at, own).map_err(|why| self.wrong(why))?;
        let source = ends.source.unwrap_or(source);
        Ok(self.linked(PairConfig::new(name, ends.sender, ends.receiver, source)))
    }

    /// A pair of the flow with its access links and times.
    fn linked(&self, pair: PairConfig) -> PairConfig {
        let (enters, leaves) = routers_of(self.scenario, self.flow);
        let [sender_access, receiver_access] = self.links.clone();
        PairConfig {
            sender_access,
            receiver_access,
            enters: Some(enters),
            leaves: Some(leaves),
            start: self.flow.start,
            start_jitter: self.scenario.time.phase,
            stop: self.flow.stop,
            ..pair
        }
    }

    fn wrong(&self, why: String) -> RunError {
        RunError::Flow { flow: self.flow.name.clone(), why }
    }
}

/// Adds the transfers that arrive during the flow, each with its own hosts. The phase is drawn with
/// the arrivals.
fn add_transfers(
    chain: &mut Chain,
    setup: &Setup<'_>,
    (every, size): (Duration, RandomVariable<udccp_base::DataSize>),
    own: Seed,
    hosts: &mut dyn Hosts,
) -> Result<(), RunError> {
    let flow = setup.flow;
    let arrivals = arrivals(setup.scenario, flow, (every, size), own)?;
    let maker = match arrivals.len() {
        // A single transfer has the flow's congestion state for the whole run.
        1 => None,
        _ => hosts.transfer_maker(flow, own).map_err(|why| setup.wrong(why))?,
    };
    let (ip, first) = (hosts.ip(), chain.pairs());
    let mut one = |(i, arrival): (usize, &Arrival)| {
        let name = transfer_name(flow, i);
        let source = Box::new(Transfer::new(arrival.bytes));
        let pair = if maker.is_some() {
            setup.linked(PairConfig::later(name, source))
        } else {
            let (at, seed) = (PairAddresses::of(first + i, ip), own.derive(&name));
            setup.pair(&name, (at, seed), source, hosts)?
        };
        Ok(PairConfig { start: arrival.at, start_jitter: Duration::ZERO, stop: None, ..pair })
    };
    let pairs = arrivals.iter().enumerate().map(&mut one).collect::<Result<_, RunError>>()?;
    match maker {
        Some(maker) => chain.add_transfers(&flow.name, pairs, maker),
        None => chain.add_flow(&flow.name, pairs),
    };
    Ok(())
}

/// The arrival times and sizes of a flow's transfers.
fn arrivals(
    scenario: &Scenario,
    flow: &Flow,
    (every, size): (Duration, RandomVariable<udccp_base::DataSize>),
    own: Seed,
) -> Result<Vec<Arrival>, RunError> {
    let end = flow.stop.unwrap_or(Duration::MAX).min(scenario.time.duration);
    let mut rng = own.stream("arrivals");
    let sizes = size.distribution();
    let arrivals = poisson(flow.start, end, every, sizes, &mut rng, MAX_TRANSFERS + 1);
    if arrivals.is_empty() || arrivals.len() > MAX_TRANSFERS {
        let why = match arrivals.is_empty() {
            true => format!("no transfer arrives before {end}; make `every` shorter than {every}"),
            false => format!("more than {MAX_TRANSFERS} transfers arrive; make `every` longer"),
        };
        return Err(RunError::Flow { flow: flow.name.clone(), why });
    }
    Ok(arrivals)
}

/// The application that offers this traffic, drawing from `rng`. With Poisson arrivals each
/// transfer has its own application; for them this returns a bulk source.
pub fn source(traffic: &Traffic, rng: Rng) -> Box<dyn Source> {
    let bytes = |size: udccp_base::DataSize| u32::try_from(size.bytes()).unwrap_or(u32::MAX);
    match *traffic {
        // Poisson arrivals consist of transfers; see `transfers`.
        Traffic::Bulk | Traffic::Poisson { .. } => Box::new(Bulk::new()),
        Traffic::Transfer { size } => Box::new(Transfer::new(size.bytes())),
        Traffic::ConstantRate { rate, size } => Box::new(ConstantRate::new(rate, bytes(size))),
        Traffic::OnOff { rate, size, on, off } => {
            let (on, off) = (on.distribution(), off.distribution());
            Box::new(OnOff::new(rate, bytes(size), on, off, rng))
        }
        Traffic::Voip { codec, packet, silence, patience } => {
            let codec = match codec {
                CodecName::G711 => Codec::G711,
                CodecName::G729 => Codec::G729,
            };
            let speech = match silence {
                Silence::None => None,
                Silence::P59 => Some(Speech::P59),
                Silence::Means { talk, pause } => Some(Speech { talk, pause }),
            };
            Box::new(Voip::new(codec, packet, speech, patience, rng))
        }
        Traffic::Video { rate, every, group, ratio, patience } => {
            let group = u32::try_from(group).unwrap_or(u32::MAX);
            let frames = Frames::pattern(rate, every, group, ratio);
            Box::new(Video::new(frames, every, patience))
        }
        Traffic::VideoTrace { ref trace, every, patience } => {
            Box::new(Video::new(Frames::of(trace.bytes.clone()), every, patience))
        }
        Traffic::RequestResponse { request, response, think, timeout } => {
            let [request, response] = [request, response].map(RandomVariable::distribution);
            let think = think.distribution();
            Box::new(RequestResponse::new(Dialogue { request, response, think, timeout }, rng))
        }
    }
}

#[cfg(test)]
mod tests;
