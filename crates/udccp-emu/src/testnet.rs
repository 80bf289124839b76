//! The hosts of a scenario, and the network between them.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use udccp_base::Seed;
use udccp_scenario::schema::{Flow, Scenario};
use udccp_scenario::{Family, HostPair, Hosts, RunError, RunOptions, network, run_config};
use udccp_sim::{End, IpVersion, PairAddresses, RunResult, SimError};

use crate::capacity;
use crate::clock::Clock;
use crate::error::EmuError;
use crate::host::{ExternalSource, TunHost};
use crate::host_namespace::HostNamespace;
use crate::input::TunInput;
use crate::pacer::Pacer;
use crate::sys;
use crate::timing::{Meter, Timing};

/// Most hosts of a scenario: each is a network namespace and a thread.
pub const MAX_HOSTS: usize = 256;

/// The port that receivers listen on: of TCP, UDP and DCCP, and of the UDP around DCCP.
pub const PORT: u16 = 5001;

/// The smallest MTU of IPv6 (RFC 8200 section 5).
const IPV6_MTU: u64 = 1_280;

/// The hosts of a scenario, two for each flow, set up and idle. Programs that run the flows are
/// started on them. They are removed when this is dropped, or when the program ends in any way.
#[derive(Debug)]
pub struct Testnet {
    scenario: Scenario,
    ip: IpVersion,
    namespaces: Vec<[HostNamespace; 2]>,
}

impl Testnet {
    /// Sets up the hosts with IPv4 addresses.
    ///
    /// # Errors
    /// What the machine lacks or cannot keep up with.
    pub fn new(scenario: &Scenario) -> Result<Self, EmuError> {
        Self::with_ip(scenario, IpVersion::V4)
    }

    /// Sets up the hosts with addresses of this IP version.
    ///
    /// # Errors
    /// What the machine lacks or cannot keep up with; packets that are too small for IPv6.
    pub fn with_ip(scenario: &Scenario, ip: IpVersion) -> Result<Self, EmuError> {
        if ip == IpVersion::V6 {
            check_ipv6(scenario)?;
        }
        let hosts = 2 * scenario.flows.len();
        if hosts > MAX_HOSTS {
            return Err(EmuError::TooManyHosts { hosts, limit: MAX_HOSTS });
        }
        open_many_files();
        let pair = |(i, flow)| Self::pair(PairAddresses::of(i, ip), flow);
        let namespaces =
            scenario.flows.iter().enumerate().map(pair).collect::<Result<Vec<_>, _>>()?;
        let testnet = Self { scenario: scenario.clone(), ip, namespaces };
        testnet.check_speed()?;
        Ok(testnet)
    }

    fn pair(at: PairAddresses, flow: &Flow) -> Result<[HostNamespace; 2], EmuError> {
        let namespace = |role, address| {
            HostNamespace::new(flow, address).map_err(|error| match error.kind() {
                // The kernel's error when its limit of namespaces is reached.
                io::ErrorKind::StorageFull => EmuError::Namespaces { error },
                _ => EmuError::Host { flow: flow.name.clone(), role, error },
            })
        };
        Ok([namespace("sender", at.sender)?, namespace("receiver", at.receiver)?])
    }

    /// Refuses a scenario that needs more packets per second than this machine can move: its
    /// results would only show the machine's limits.
    fn check_speed(&self) -> Result<(), EmuError> {
        let Some((namespaces, flow)) = self.namespaces.first().zip(self.scenario.flows.first())
        else {
            return Ok(());
        };
        let able =
            capacity::forwarding_rate(namespaces, PairAddresses::of(0, self.ip), flow.packet);
        let able =
            able.map_err(|error| EmuError::System { what: "cannot try the devices", error })?;
        let wanted = capacity::required_packet_rate(&self.scenario);
        if wanted > able { Err(EmuError::TooFast { wanted, able }) } else { Ok(()) }
    }

    /// The address of one end of a flow.
    pub fn address(&self, flow: usize, end: End) -> core::net::IpAddr {
        let at = PairAddresses::of(flow, self.ip);
        match end {
            End::Sender => at.sender,
            End::Receiver => at.receiver,
        }
    }

    /// Runs a job on the host of one end of a flow: its sockets and processes belong to that host.
    /// The job runs on a thread that lives as long as the host.
    ///
    /// # Errors
    /// Errors of the job; no such flow.
    pub fn on_host<T: Send + 'static>(
        &self,
        flow: usize,
        end: End,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let pair = self.namespaces.get(flow).ok_or(io::ErrorKind::NotFound)?;
        pair[usize::from(end == End::Receiver)].host.run(job)
    }

    /// Runs the network from `clock`'s time zero to the end of the scenario. It calls `goes_on`
    /// several times a second and ends early, with an error, when that returns false.
    ///
    /// The result contains what the network saw. What only applications know is empty: goodput,
    /// congestion state, messages.
    ///
    /// # Errors
    /// Contradictory settings; a capture that cannot be written; a stop.
    pub fn run(
        &self,
        seed: u64,
        options: RunOptions<'_>,
        clock: Clock,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(RunResult, Timing), EmuError> {
        let meter = Rc::new(RefCell::new(Meter::new(2 * self.namespaces.len())));
        let mut hosts =
            HostFactory { testnet: self, clock, meter: Rc::clone(&meter), inputs: Vec::new() };
        let chain = network(&self.scenario, Seed(seed), &mut hosts)?;
        let config = run_config(&self.scenario, seed, options)?;
        let system = |what| move |error| EmuError::System { what, error };
        let mut pacer = Pacer::new(clock, hosts.inputs, goes_on)
            .map_err(system("cannot wait for the TUN devices"))?;
        let before = self.unread().map_err(system("cannot count lost packets"))?;
        // If this is not permitted, the result's timing shows whether it was needed.
        let is_first = sys::run_first(2).is_ok();
        let result = chain.run_paced(config, &mut pacer);
        if is_first {
            sys::run_as_others();
        }
        let result = result.map_err(|error| match error {
            SimError::Stopped { .. } => EmuError::Stopped,
            other => RunError::from(other).into(),
        })?;
        let unread = self.unread().map_err(system("cannot count lost packets"))? - before;
        let timing = meter.borrow().finish(unread);
        Ok((result, timing))
    }

    fn unread(&self) -> io::Result<u64> {
        self.namespaces.iter().flatten().map(HostNamespace::unread).sum()
    }
}

/// Checks that IPv6 exists and has room for the scenario's packets.
fn check_ipv6(scenario: &Scenario) -> Result<(), EmuError> {
    if !Path::new("/proc/sys/net/ipv6").exists() {
        return Err(EmuError::NoIpv6);
    }
    let short = scenario.flows.iter().find(|flow| flow.packet.bytes() < IPV6_MTU);
    short.map_or(Ok(()), |flow| {
        let (flow, bytes) = (flow.name.clone(), flow.packet.bytes());
        Err(EmuError::ShortPackets { flow, bytes, least: IPV6_MTU })
    })
}

/// Raises the limit of open files: each host needs a few, and the limit that a shell sets is low.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this fails, the limit may still be enough.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Creates the network's side of the hosts, in the order of the flows.
struct HostFactory<'a> {
    testnet: &'a Testnet,
    clock: Clock,
    meter: Rc<RefCell<Meter>>,
    /// The packets that each host sends, by its number.
    inputs: Vec<Rc<RefCell<TunInput>>>,
}

impl Hosts for HostFactory<'_> {
    fn pair(&mut self, flow: &Flow, _: PairAddresses, _: Seed) -> Result<HostPair, String> {
        let namespaces =
            self.testnet.namespaces.get(self.inputs.len() / 2).ok_or("it has no hosts")?;
        let last = self.testnet.scenario.topology.routers() as u64;
        let routers = flow.leaves.unwrap_or(last) - flow.enters.unwrap_or(1) + 1;
        let routers = u8::try_from(routers).unwrap_or(u8::MAX);
        let dccp_udp_port = (flow.protocol.family == Family::Dccp).then_some(PORT);
        let mut door = |end: usize| {
            let (tun, meter) = (Arc::clone(&namespaces[end].tun), Rc::clone(&self.meter));
            let input = TunInput::new(tun, dccp_udp_port, Rc::clone(&meter));
            let (input, number) = (Rc::new(RefCell::new(input)), self.inputs.len());
            self.inputs.push(Rc::clone(&input));
            Box::new(TunHost::new(number, routers, self.clock, input, meter))
        };
        Ok(HostPair { sender: door(0), receiver: door(1), source: Some(Box::new(ExternalSource)) })
    }

    fn play_many(&self) -> bool {
        true
    }

    fn ip(&self) -> IpVersion {
        self.testnet.ip
    }
}
