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
use crate::host::{Elsewhere, TunHost};
use crate::host_namespace::HostNamespace;
use crate::input::TunInput;
use crate::pacer::Pacer;
use crate::sys;
use crate::timing::{Meter, Timing};

/// Most hosts of a scenario: each is a network namespace and a thread.
pub const MAX_HOSTS: usize = 256;

/// The port that receivers serve, of TCP, UDP, DCCP, and of the UDP around DCCP.
pub const PORT: u16 = 5001;

/// What every IPv6 device carries at least (RFC 8200 section 5).
pub(crate) const IPV6_MTU: u64 = 1_280;

/// The hosts of a scenario, two for each flow, set up and idle: what plays the flows is started
/// inside of them. They are gone when this is dropped, or when the program ends in any way.
#[derive(Debug)]
pub struct Testnet {
    scenario: Scenario,
    ip: IpVersion,
    namespaces: Vec<[HostNamespace; 2]>,
}

impl Testnet {
    /// Sets the hosts up, with IPv4 addresses.
    ///
    /// # Errors
    /// What the machine lacks, or cannot keep up with.
    pub fn new(scenario: &Scenario) -> Result<Self, EmuError> {
        Self::with_ip(scenario, IpVersion::V4)
    }

    /// Sets the hosts up, with addresses of this kind.
    ///
    /// # Errors
    /// What the machine lacks, or cannot keep up with; packets that are too short for IPv6.
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
                // So the kernel says that there are as many namespaces as it allows.
                io::ErrorKind::StorageFull => EmuError::Namespaces { error },
                _ => EmuError::Host { flow: flow.name.clone(), role, error },
            })
        };
        Ok([namespace("sender", at.sender)?, namespace("receiver", at.receiver)?])
    }

    /// A scenario that asks for more than this machine moves would only show its limits.
    fn check_speed(&self) -> Result<(), EmuError> {
        let Some((namespaces, flow)) = self.namespaces.first().zip(self.scenario.flows.first())
        else {
            return Ok(());
        };
        let able = capacity::able(namespaces, PairAddresses::of(0, self.ip), flow.packet);
        let able =
            able.map_err(|error| EmuError::System { what: "cannot try the devices", error })?;
        let wanted = capacity::wanted(&self.scenario);
        if wanted > able { Err(EmuError::TooFast { wanted, able }) } else { Ok(()) }
    }

    /// The address of an end of the flow with this number.
    pub fn address(&self, flow: usize, end: End) -> core::net::IpAddr {
        let at = PairAddresses::of(flow, self.ip);
        match end {
            End::Sender => at.sender,
            End::Receiver => at.receiver,
        }
    }

    /// Does a job on the host of an end of the flow with this number: sockets and processes that
    /// it makes are of that host. The job runs on a thread that lives as long as the host.
    ///
    /// # Errors
    /// Those of the job; a flow that there is not.
    pub fn on_host<T: Send + 'static>(
        &self,
        flow: usize,
        end: End,
        job: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let pair = self.namespaces.get(flow).ok_or(io::ErrorKind::NotFound)?;
        pair[usize::from(end == End::Receiver)].host.run(job)
    }

    /// Runs the network from `clock`'s zero to the end of the scenario. It ends early, with an
    /// error, when `goes_on` says so; it is asked some times a second.
    ///
    /// The result has what the network saw. What only applications know is empty: goodput,
    /// congestion state, messages.
    ///
    /// # Errors
    /// Settings that contradict each other; a capture that cannot be written; a stop.
    pub fn run(
        &self,
        seed: u64,
        options: RunOptions<'_>,
        clock: Clock,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(RunResult, Timing), EmuError> {
        let meter = Rc::new(RefCell::new(Meter::new(2 * self.namespaces.len())));
        let mut doors =
            Doors { testnet: self, clock, meter: Rc::clone(&meter), inputs: Vec::new() };
        let chain = network(&self.scenario, Seed(seed), &mut doors)?;
        let config = run_config(&self.scenario, seed, options)?;
        let system = |what| move |error| EmuError::System { what, error };
        let mut pacer = Pacer::new(clock, doors.inputs, goes_on)
            .map_err(system("cannot wait for the TUN devices"))?;
        let before = self.unread().map_err(system("cannot count lost packets"))?;
        // Where that is not allowed, the result's timing shows whether it was needed.
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

/// Whether there is IPv6, and room in it for the scenario's packets.
fn check_ipv6(scenario: &Scenario) -> Result<(), EmuError> {
    if !Path::new("/proc/sys/net/ipv6").exists() {
        return Err(EmuError::NoIpv6);
    }
    let short = scenario.flows.iter().find(|flow| flow.packet.bytes() < IPV6_MTU);
    short.map_or(Ok(()), |flow| {
        Err(EmuError::ShortPackets { flow: flow.name.clone(), bytes: flow.packet.bytes() })
    })
}

/// A host needs a few open files; the limit that a shell sets is low.
fn open_many_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // Where it stays as it was, it may do.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

/// Makes the doors to the hosts, in the order of the flows.
struct Doors<'a> {
    testnet: &'a Testnet,
    clock: Clock,
    meter: Rc<RefCell<Meter>>,
    /// What each host sends, by its number.
    inputs: Vec<Rc<RefCell<TunInput>>>,
}

impl Hosts for Doors<'_> {
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
        Ok(HostPair { sender: door(0), receiver: door(1), source: Some(Box::new(Elsewhere)) })
    }

    fn play_many(&self) -> bool {
        true
    }

    fn ip(&self) -> IpVersion {
        self.testnet.ip
    }
}
