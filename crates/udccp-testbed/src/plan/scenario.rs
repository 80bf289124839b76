//! Derives the plan of a run from a scenario.

use core::net::IpAddr;

use udccp_agent::{
    AgentError, AgentSpec, DccpImplementation, OurTransport, unsupported_tcp_options,
};
use udccp_base::{Instant, Seed};
use udccp_cc::InitialWindow;
use udccp_link::{LinkConfig, QueueLimit};
use udccp_scenario::schema::{Flow, Scenario, TcpProfile};
use udccp_scenario::{Family, access_links, hop_configs, routers_of};
use udccp_sim::{IpVersion, PairAddresses};

use super::shaper::{self, Shaper, Side};
use super::{
    Agent, Device, IpStep, Namespace, Plan, RouteMetrics, SCHEMA, Setting, Step, Tap, Wire, WireEnd,
};

/// The port that receivers listen on.
const PORT: u16 = 5001;
/// Time between two samples of a queue.
const LOOK_NS: u64 = 50_000_000;
/// A page of memory is 4 KiB.
const PAGE_BITS: u32 = 12;
/// Largest buffer that a socket may request.
const MAX_BUFFER_BYTES: u64 = 64 << 20;
/// Most memory of a guest in MiB: without and with buffers that flows request.
const MAX_MEMORY_MIB: [u64; 2] = [4096, 12_288];
/// Most flows: each needs a few programs, which are started one after the other.
const MAX_FLOWS: usize = 200;
/// TCP buffers (minimum, default, maximum) of Linux 6.1 on a machine with enough memory.
const MODERN: [&str; 2] = ["4096 131072 6291456", "4096 16384 4194304"];
/// The same for Linux 2.6.22, which uses three quarters of the receive buffer as window.
const OF_2007: [&str; 2] = ["4096 87380 4194304", "4096 16384 4194304"];

/// Which implementation runs the DCCP flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DccpStack {
    /// The kernel.
    #[default]
    Linux,
    /// Crate `udccp`, in UDP datagrams.
    OursUdp,
    /// Crate `udccp`, as IP protocol 33.
    OursRaw,
}

/// Options of a plan.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PlanOptions {
    /// Which implementation runs the DCCP flows.
    pub dccp: DccpStack,
    /// Whether the run uses a real clock. The kernel then wakes up late, so token buckets hold what
    /// is sent in that time, and programs read at once.
    pub real_time: bool,
}

/// A plan with additional information.
#[derive(Clone, Debug)]
pub struct Built {
    /// What to play.
    pub plan: Plan,
    /// Where the kernel differs from the scenario, each as a clause.
    pub departures: Vec<String>,
    /// Memory that a guest needs for it, in MiB.
    pub memory_mib: u64,
    /// The configuration of each watched queue's link.
    pub links: Vec<LinkConfig>,
}

impl DccpStack {
    const fn run(self) -> DccpImplementation {
        match self {
            Self::Linux => DccpImplementation::Linux,
            // No offload: a token bucket that splits large packets counts the pieces with their
            // Ethernet headers, which a scenario's links do not have.
            Self::OursUdp => {
                DccpImplementation::Ours { transport: OurTransport::UdpEncap, offload: false }
            }
            Self::OursRaw => {
                DccpImplementation::Ours { transport: OurTransport::Raw, offload: false }
            }
        }
    }
}

/// The plan of a scenario's run with this seed.
///
/// # Errors
/// Everything that Linux cannot do, each as a clause.
pub fn plan(scenario: &Scenario, seed: u64, options: PlanOptions) -> Result<Built, Vec<String>> {
    let mut build = Build::new(scenario, options.real_time);
    build.routers(scenario);
    for (i, flow) in scenario.flows.iter().enumerate() {
        build.flow(scenario, i, flow, Seed(seed), options.dccp);
    }
    build.settings(scenario, options.dccp);
    build.finish(scenario)
}

struct Build {
    plan: Plan,
    departures: Vec<String>,
    gaps: Vec<String>,
    largest: u64,
    links: Vec<LinkConfig>,
    waiting_bytes: u64,
    wires: u32,
    real_time: bool,
}

/// One end of a wire: its namespace, its device there, and the link for packets that leave.
struct End<'a> {
    namespace: usize,
    device: &'a str,
    link: &'a LinkConfig,
}

impl Build {
    fn new(scenario: &Scenario, real_time: bool) -> Self {
        let duration_ns = scenario.time.duration.as_nanos();
        let plan = Plan {
            schema: SCHEMA,
            duration_ns,
            look_ns: LOOK_NS.min(scenario.time.measure.every.as_nanos()),
            files: Vec::new(),
            namespaces: Vec::new(),
            wires: Vec::new(),
            steps: Vec::new(),
            taps: Vec::new(),
            queues: Vec::new(),
            agents: Vec::new(),
        };
        let largest = scenario.flows.iter().map(|f| f.packet.bytes()).max().unwrap_or(1500);
        let mut gaps = Vec::new();
        if scenario.flows.len() > MAX_FLOWS {
            gaps.push(format!("{} flows; at most {MAX_FLOWS}", scenario.flows.len()));
        }
        Self {
            plan,
            departures: Vec::new(),
            gaps,
            largest,
            links: Vec::new(),
            waiting_bytes: 0,
            wires: 0,
            real_time,
        }
    }

    /// The routers, and the links between neighbours.
    fn routers(&mut self, scenario: &Scenario) {
        for router in 0..scenario.topology.routers() {
            self.namespace(format!("r{}", router + 1), true);
        }
        for (i, hop) in hop_configs(scenario).iter().enumerate() {
            let left = End { namespace: i, device: "right", link: &hop.forward };
            let right = End { namespace: i + 1, device: "left", link: &hop.reverse };
            self.wire(&left, &right, self.largest);
            for (end, link) in [(&left, &hop.forward), (&right, &hop.reverse)] {
                let name = end.device.to_owned();
                self.plan.queues.push(Device { namespace: end.namespace, name });
                self.links.push(link.clone());
            }
        }
    }

    fn namespace(&mut self, name: String, forwards: bool) -> usize {
        let mut files = vec![
            Setting::new("net/ipv6/conf/all/disable_ipv6", 1),
            Setting::new("net/ipv6/conf/default/disable_ipv6", 1),
        ];
        if self.real_time {
            // One processor receives everything, so no packet overtakes another.
            files.push(Setting::new("net/core/rps_default_mask", 1));
        }
        if forwards {
            files.push(Setting::new("net/ipv4/ip_forward", 1));
        }
        let ip = vec![IpStep::up("lo", true)];
        self.plan.namespaces.push(Namespace { name, files, ip, ..Namespace::default() });
        self.plan.namespaces.len() - 1
    }

    /// Joins two namespaces. Both ends have the same hardware address and do not resolve others, so
    /// only packets of the flows are on a wire.
    fn wire(&mut self, a: &End<'_>, b: &End<'_>, mtu: u64) {
        self.wires += 1;
        let [.., high, low] = self.wires.to_be_bytes();
        // Without segmentation offload, so that the wire carries single packets.
        let end = |end: &End<'_>| WireEnd {
            name: end.device.to_owned(),
            namespace: self.plan.namespaces[end.namespace].name.clone(),
            hardware: Some([2, 0, 0, 0, high, low]),
            mtu: Some(u32::try_from(mtu).unwrap_or(u32::MAX)),
        };
        let wire = Wire::Cable(end(a), end(b));
        self.plan.wires.push(wire);
        for (end, other) in [(a, b), (b, a)] {
            self.shape(end, other);
            let up = IpStep::up(end.device, false);
            self.plan.namespaces[end.namespace].ip.push(up);
        }
    }

    /// Sets up one direction of a wire: from `end` to `far`.
    fn shape(&mut self, end: &End<'_>, far: &End<'_>) {
        let mut shaper = match Shaper::new(end.link, self.largest, self.real_time) {
            Ok(shaper) => shaper,
            Err(gaps) => {
                self.gaps.extend(gaps);
                return;
            }
        };
        self.departures.extend(shaper::departures(end.link));
        self.plan.namespaces[end.namespace].tc.extend(shaper.lines(end.device));
        let ifb = format!("ifb-{}", far.device);
        if shaper.shapes_ingress() && far.device == "eth0" {
            // Packets are recorded before the far end shapes them.
            self.gaps.push("reordering on an access link".into());
        } else if shaper.shapes_ingress() {
            let space = &mut self.plan.namespaces[far.namespace];
            let (name, namespace) = (ifb.clone(), space.name.clone());
            self.plan.wires.push(Wire::Ifb { name, namespace });
            space.tc.extend(shaper.ingress_lines(far.device, &ifb));
            space.ip.push(IpStep::up(&ifb, true));
        }
        self.waiting_bytes += waiting(end.link, self.largest);
        let mut changes = end.link.changes.clone();
        changes.sort_by_key(|(at, _)| *at);
        for (at, change) in changes {
            let at_ns = (at - Instant::ZERO).as_nanos();
            for (side, line) in shaper.change(end.device, &ifb, &change) {
                let namespace = if side == Side::Far { far.namespace } else { end.namespace };
                match self.plan.steps.last_mut() {
                    Some(step) if step.at_ns == at_ns && step.namespace == namespace => {
                        step.tc.push(line);
                    }
                    _ => self.plan.steps.push(Step { at_ns, namespace, tc: vec![line] }),
                }
            }
        }
    }

    /// Both hosts of a flow, with their programs.
    fn flow(&mut self, scenario: &Scenario, i: usize, flow: &Flow, seed: Seed, dccp: DccpStack) {
        let at = PairAddresses::of(i, IpVersion::V4);
        let specs =
            AgentSpec::pair(scenario, flow, seed, [at.sender, at.receiver], PORT, dccp.run());
        let specs = match specs {
            Ok(specs) => specs,
            Err(error) => return self.gaps.push(clause(&error, flow)),
        };
        let links = access_links(scenario, flow);
        let (enters, leaves) = routers_of(scenario, flow);
        let names = [format!("s{}", i + 1), format!("d{}", i + 1)];
        let ends = [(at.sender, enters), (at.receiver, leaves)];
        for (k, (name, (address, router))) in names.into_iter().zip(ends).enumerate() {
            let host = self.namespace(name.clone(), false);
            let up = &links[k];
            // A host's timing noise only affects what it sends.
            let down = LinkConfig { variation: udccp_link::Variation::None, ..up.clone() };
            let own = End { namespace: host, device: "eth0", link: up };
            let other = End { namespace: router, device: &name, link: &down };
            self.wire(&own, &other, flow.packet.bytes());
            self.address(host, address, flow);
            self.routes(scenario, router, &name, address);
            self.host_settings(host, flow);
            let device = Device { namespace: host, name: "eth0".to_owned() };
            let encapsulated = flow.protocol.family == Family::Dccp && dccp == DccpStack::OursUdp;
            self.plan.taps.push(Tap { device, address, encapsulated });
        }
        let hosts = self.plan.namespaces.len() - 2;
        // The receiver starts first.
        let [sender, receiver] = specs;
        for (namespace, mut spec) in [(hosts + 1, receiver), (hosts, sender)] {
            spec.prompt = self.real_time;
            self.plan.agents.push(Agent { namespace, spec });
        }
        let clauses = tcp_departures(flow).into_iter().chain(dccp_departures(flow, dccp));
        self.departures.extend(clauses.map(|what| format!("flow \"{}\": {what}", flow.name)));
    }

    fn address(&mut self, host: usize, address: IpAddr, flow: &Flow) {
        let mut metrics = RouteMetrics::default();
        if flow.protocol.family == Family::Tcp {
            let millis = flow.tcp.min_rto.map(|rto| rto.as_millis().max(1));
            metrics.least_rto_ms = millis.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
            metrics.initial_window = initial_window(flow);
            metrics.max_window = flow.tcp.max_window.map(|window| window.0);
        }
        let device = || "eth0".to_owned();
        let ip = &mut self.plan.namespaces[host].ip;
        ip.push(IpStep::Address { device: device(), address });
        ip.push(IpStep::Route { to: None, device: device(), metrics });
    }

    /// Routes from every router to a host.
    fn routes(&mut self, scenario: &Scenario, last: usize, device: &str, address: IpAddr) {
        for router in 0..scenario.topology.routers() {
            let device = match router.cmp(&last) {
                core::cmp::Ordering::Less => "right",
                core::cmp::Ordering::Equal => device,
                core::cmp::Ordering::Greater => "left",
            };
            let (to, device) = (Some(address), device.to_owned());
            let route = IpStep::Route { to, device, metrics: RouteMetrics::default() };
            self.plan.namespaces[router].ip.push(route);
        }
    }

    fn host_settings(&mut self, host: usize, flow: &Flow) {
        let namespace = &mut self.plan.namespaces[host];
        if flow.protocol.family != Family::Tcp {
            return;
        }
        let old = flow.tcp.profile == TcpProfile::Linux2622;
        let [receive, send] = if old { OF_2007 } else { MODERN };
        let ecn = u8::from(flow.tcp.ecn == Some(true));
        for (key, value) in [
            ("tcp_rmem", receive.to_owned()),
            ("tcp_wmem", send.to_owned()),
            ("tcp_ecn", ecn.to_string()),
            ("tcp_adv_win_scale", if old { "2" } else { "1" }.to_owned()),
        ] {
            namespace.files.push(Setting::new(format!("net/ipv4/{key}"), value));
        }
        if let Some(timestamps) = flow.tcp.timestamps {
            let value = u8::from(timestamps).to_string();
            namespace.files.push(Setting::new("net/ipv4/tcp_timestamps", value));
        }
    }

    /// Settings that apply to the whole kernel.
    fn settings(&mut self, scenario: &Scenario, dccp: DccpStack) {
        let files = &mut self.plan.files;
        for key in ["rmem_max", "wmem_max"] {
            files.push(Setting::new(format!("net/core/{key}"), MAX_BUFFER_BYTES));
        }
        // Queues that are separate on real machines share one processor here.
        files.push(Setting::new("net/core/netdev_max_backlog", 100_000));
        let is_dccp = |f: &&Flow| f.protocol.family == Family::Dccp;
        let mut windows: Vec<u64> =
            scenario.flows.iter().filter(is_dccp).filter_map(|f| f.dccp.sequence_window).collect();
        windows.sort_unstable();
        windows.dedup();
        match (dccp, windows.as_slice()) {
            (DccpStack::Linux, [window]) => {
                self.plan.files.push(Setting::new("net/dccp/default/seq_window", window));
            }
            (DccpStack::Linux, [_, _, ..]) => {
                self.gaps.push(
                    "different first sequence windows: the kernel has one for all connections"
                        .into(),
                );
            }
            _ => {}
        }
    }

    /// Memory that a guest needs, in MiB. Its TCP may use all of it: the kernel's default limit is
    /// a tenth, beyond which every TCP connection of the guest slows down.
    fn memory(&mut self, scenario: &Scenario) -> u64 {
        // A packet's buffer takes some 2 kB, whatever its size. Socket buffers come in addition.
        let packets = self.waiting_bytes / self.largest.max(1) + 1;
        let hosts = 2 * scenario.flows.len() as u64;
        let [most, most_with_buffers] = MAX_MEMORY_MIB;
        let usual = (160 + packets * 3 / 1024 + hosts * 24).min(most);
        let buffers = scenario.flows.iter().map(buffer_bytes).sum::<u64>() >> 20;
        let mib = (usual + buffers).next_multiple_of(32);
        if mib > most_with_buffers {
            self.gaps.push(format!(
                "socket buffers of {buffers} MiB do not fit into a guest of {most_with_buffers} MiB"
            ));
        }
        let pages = mib << 20 >> PAGE_BITS;
        self.plan.files.push(Setting::new("net/ipv4/tcp_mem", format!("{pages} {pages} {pages}")));
        mib
    }

    fn finish(mut self, scenario: &Scenario) -> Result<Built, Vec<String>> {
        let memory_mib = self.memory(scenario);
        if !self.gaps.is_empty() {
            let mut gaps = Vec::new();
            for gap in self.gaps {
                if !gaps.contains(&gap) {
                    gaps.push(gap);
                }
            }
            return Err(gaps);
        }
        self.plan.steps.sort_by_key(|step| step.at_ns);
        let mut departures = Vec::new();
        for departure in self.departures {
            if !departures.contains(&departure) {
                departures.push(departure);
            }
        }
        Ok(Built { plan: self.plan, departures, memory_mib, links: self.links })
    }
}

/// Memory for the buffers that a TCP flow requests; the kernel doubles both.
fn buffer_bytes(flow: &Flow) -> u64 {
    if flow.protocol.family != Family::Tcp {
        return 0;
    }
    let both = [flow.tcp.send_buffer, flow.tcp.receive_buffer].into_iter().flatten();
    both.map(|buffer| 2 * buffer.bytes().min(MAX_BUFFER_BYTES)).sum()
}

/// Bytes that may be queued at a link: in its queue, if limited, and in its delay line.
fn waiting(link: &LinkConfig, largest: u64) -> u64 {
    let queue = match link.limit {
        QueueLimit::Unlimited => 0,
        QueueLimit::Packets(n) => u64::from(n) * largest,
        QueueLimit::Bytes(n) => n,
    };
    let delayed = link.rate.map_or(0, |rate| rate.bytes_in(link.delay).bytes());
    queue + delayed
}

fn clause(error: &AgentError, flow: &Flow) -> String {
    let text = error.to_string();
    let named = text.contains(&format!("\"{}\"", flow.name));
    if named { text } else { format!("flow \"{}\": {text}", flow.name) }
}

/// The initial window of a TCP flow in segments, if it differs from the kernel's 10.
fn initial_window(flow: &Flow) -> Option<u32> {
    let mss = u32::try_from(flow.packet.bytes().saturating_sub(40)).unwrap_or(u32::MAX);
    match flow.tcp.initial_window {
        Some(window) => Some(window.0.packets(mss)),
        // Linux used this until 2.6.39.
        None if flow.tcp.profile == TcpProfile::Linux2622 => {
            Some(InitialWindow::Rfc3390.packets(mss))
        }
        None => None,
    }
}

/// TCP options for which the kernel uses its own value, except those set by routes and settings.
fn tcp_departures(flow: &Flow) -> Vec<String> {
    if flow.protocol.family != Family::Tcp {
        return Vec::new();
    }
    let held = ["initial_window", "max_window", "min_rto", "timestamps", "ecn"];
    let mut gaps = unsupported_tcp_options(flow);
    gaps.retain(|gap| !held.iter().any(|key| gap.contains(&format!("tcp.{key} "))));
    let profile = "tcp.profile";
    if let Some(gap) = gaps.iter_mut().find(|gap| gap.contains(profile)) {
        *gap = "TCP is the kernel's with the buffers and first window of the profile".into();
    }
    gaps
}

/// Default send buffer of a Linux socket in bytes (`net.core.wmem_default`).
const SOCKET_SEND_BUFFER: u64 = 212_992;

/// DCCP options that the flow's implementation does not support.
fn dccp_departures(flow: &Flow, dccp: DccpStack) -> Vec<String> {
    if flow.protocol.family != Family::Dccp {
        return Vec::new();
    }
    let options = &flow.dccp;
    if dccp != DccpStack::Linux {
        let differs = options.send_buffer.is_some_and(|size| size.bytes() != SOCKET_SEND_BUFFER);
        let buffer = "dccp.send_buffer is that of the kernel's sockets, 208 KiB";
        let profile = "dccp.profile is without that kernel's Ack Vector and send buffer";
        let notes = [(buffer, differs), (profile, options.profile.is_some())];
        return notes
            .iter()
            .filter(|(_, is_gap)| *is_gap)
            .map(|(note, _)| (*note).into())
            .collect();
    }
    let keys = [
        ("profile", options.profile.is_some()),
        ("ack_ratio", options.ack_ratio.is_some()),
        ("initial_window", options.initial_window.is_some()),
        ("window_cut", options.window_cut.is_some()),
        ("max_window", options.max_window.is_some()),
        ("min_rto", options.min_rto.is_some()),
        ("ecn", options.ecn == Some(true)),
        ("oscillation_reduction", options.oscillation_reduction.is_some()),
        ("history_discounting", options.history_discounting.is_some()),
        ("timer_tick", options.timer_tick.is_some()),
        ("timers", options.timers.is_some()),
        ("wakes_every", options.wakes_every.is_some()),
        ("send_buffer", options.send_buffer.is_some()),
    ];
    let set = keys.into_iter().filter(|(_, is_set)| *is_set);
    set.map(|(key, _)| format!("dccp.{key} is the kernel's own")).collect()
}
