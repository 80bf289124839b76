//! DCCP: the same endpoint as in sockets, one per host.

use std::sync::LazyLock;

use udccp_base::{
    AppPort, DataRate, DataSize, Datagram, Duration, Instant, Machine, Message, Payload, Probe,
    QuickStart, Seed, SendOutcome, Sent, Transport,
};
use udccp_cc::{Algorithm, Cut, GrowthAfterCut, IdlePolicy, InitialWindow};
use udccp_proto::ccid::ccid2::{self, AckRatioConfig, Ccid2Config};
use udccp_proto::ccid::{Ccid3Config, CcidRegistry};
use udccp_proto::{
    ConnectOptions, ConnectionConfig, ConnectionId, Endpoint, EndpointConfig, InviteOptions,
    ListenConfig, ListenerId, QuickStartConfig, SendError, SharedConfig, State,
};
use udccp_sim::PairAddresses;
use udccp_wire::ServiceCode;

use super::host_model::HostModel;
use super::{CLIENT_PORT, Ends, SERVER_PORT, Shared, nat, raw};
use crate::protocol;
use crate::schema::{DccpOptions, DccpProfile, Flow, Percent};

/// The service code of measurements: `SC:PERF`.
pub const SERVICE: ServiceCode = ServiceCode(u32::from_be_bytes(*b"PERF"));

/// The largest congestion window in packets, if a flow sets none.
const LARGEST_WINDOW: u32 = 1_000_000;

/// The CCIDs of all hosts.
static CCIDS: LazyLock<CcidRegistry> = LazyLock::new(CcidRegistry::with_experiments);

/// The role of a host.
#[derive(Debug)]
enum Role {
    /// Connects when it is opened, and needs the options no longer.
    Active(Option<Box<ConnectOptions>>),
    /// Accepts the first connection.
    Passive(ListenerId),
    /// Invites its client when the flow starts.
    Inviting(Box<Invitation>),
    /// Failed to start; the flow does not exist.
    Refused,
}

/// An invitation that is sent when it is due.
#[derive(Debug)]
struct Invitation {
    due: Instant,
    options: InviteOptions,
}

/// One host's endpoint with its one connection.
#[derive(Debug)]
struct DccpEnd {
    endpoint: Endpoint,
    role: Role,
    id: Option<ConnectionId>,
    path_mtu: u16,
    opened: bool,
    uses_quick_start: bool,
    /// Only where the scenario describes a host that adds something to the endpoint.
    host: Option<Box<HostModel>>,
}

pub(super) fn build(
    flow: &Flow,
    at: PairAddresses,
    seed: Seed,
    algorithm: Option<&Algorithm>,
    configs: &mut Shared<SharedConfig>,
) -> Result<Ends, String> {
    let mut config = dccp_config(flow.protocol.name, flow.packet, &flow.dccp)?;
    if let Some(algorithm) = algorithm {
        if flow.protocol.ccid != Some(ccid2::NUMBER) {
            let name = flow.protocol.name;
            return Err(format!("{name} takes no window algorithm; dccp/ccid2 and any TCP do"));
        }
        config.ccid2.algorithm = algorithm.clone();
    }
    let config = configs.of(config);
    let secret = |name: &str| EndpointConfig {
        ccids: CCIDS.clone(),
        // Simulated packets have no bit errors, because links drop the packets that they corrupt.
        receive_checksum_offload: true,
        ..EndpointConfig::new(seed.stream(name).bytes32())
    };
    // Settings that the endpoint would refuse at the start of the flow must be an error here.
    let trial = || Endpoint::new(secret("trial"));
    let place = nat::NatAddresses::of(flow, at);
    let (local, remote) = (raw(place.sender), raw(at.receiver));
    let service = flow.dccp.service.map_or(SERVICE, |service| service.0);
    let options = ConnectOptions {
        local,
        local_port: Some(CLIENT_PORT),
        remote,
        remote_port: SERVER_PORT,
        service,
        config: config.clone(),
    };
    trial().connect(Instant::ZERO, options.clone()).map_err(|e| e.to_string())?;
    let sender =
        DccpEnd::new(Endpoint::new(secret("client")), Role::Active(Some(Box::new(options))), flow);
    let mut endpoint = Endpoint::new(secret("server"));
    let inside = raw(place.receiver);
    if flow.dccp.invite == Some(true) {
        let options = InviteOptions {
            local: inside,
            local_port: SERVER_PORT,
            remote: raw(at.sender),
            remote_port: CLIENT_PORT,
            service,
            sends_listen: true,
            config,
        };
        trial().invite(Instant::ZERO, options.clone()).map_err(|e| e.to_string())?;
        let role =
            Role::Inviting(Box::new(Invitation { due: Instant::ZERO + flow.start, options }));
        let receiver = DccpEnd::new(endpoint, role, flow);
        return Ok(place.ends(Box::new(sender), Box::new(receiver)));
    }
    let listen = ListenConfig { connection: config, ..ListenConfig::new(service) };
    let listener = endpoint.listen(Some(inside), SERVER_PORT, listen).map_err(|e| e.to_string())?;
    let receiver = DccpEnd::new(endpoint, Role::Passive(listener), flow);
    Ok(place.ends(Box::new(sender), Box::new(receiver)))
}

/// The connection settings of a flow: its protocol (`dccp/...`), its IP packets and its options.
///
/// # Errors
/// Settings that contradict each other, or a protocol that is not carried by DCCP, as text.
pub fn dccp_config(
    protocol: &str,
    packet: DataSize,
    options: &DccpOptions,
) -> Result<ConnectionConfig, String> {
    let mut config = ConnectionConfig {
        path_mtu: u16::try_from(packet.bytes()).unwrap_or(u16::MAX),
        ..ConnectionConfig::default()
    };
    if let Some(window) = options.sequence_window {
        config.sequence_window = window;
    }
    if let Some(ecn) = options.ecn {
        config.ecn = ecn;
    }
    if let Some(queue) = options.send_queue {
        config.send_queue_packets = queue.0 as usize;
        config.send_queue_bytes = queue.0 as usize * config.path_mtu as usize;
    }
    let ccid = protocol::find(protocol).and_then(|p| p.ccid);
    let ccid = ccid.ok_or_else(|| format!("{protocol} has no CCID: DCCP does not carry it"))?;
    (config.tx_ccids, config.rx_ccids) = (vec![ccid], vec![ccid]);
    if options.quick_start.is_some() {
        let accept = Some(DataRate::from_bits_per_sec(u64::MAX));
        config.quick_start = QuickStartConfig { request: options.quick_start, accept };
    }
    ccid2_options(&mut config, options);
    tfrc_options(&mut config.ccid3, options);
    tfrc_options(&mut config.ccid4.tfrc, options);
    config.check().map_err(|e| e.to_string())?;
    Ok(config)
}

fn ccid2_options(config: &mut ConnectionConfig, options: &DccpOptions) {
    let ccid2 = &mut config.ccid2;
    if options.profile == Some(DccpProfile::Linux2622) {
        linux_2_6_22(ccid2);
    }
    if let Some(ratio) = options.ack_ratio {
        ccid2.ack_ratio = AckRatioConfig::Fixed(u16::try_from(ratio).unwrap_or(u16::MAX));
    }
    if let Some(window) = options.initial_window {
        ccid2.initial_window = window.0;
    }
    if let Algorithm::NewReno { cut, after_cut } = &mut ccid2.algorithm {
        *cut = options.window_cut.map_or(*cut, keep);
        *after_cut = options.growth_after_cut.map_or(*after_cut, GrowthAfterCut::from);
    }
    // Simulated peers do no harm, and simulated paths may be long and fast.
    ccid2.max_window = options.max_window.map_or(LARGEST_WINDOW, |window| window.0);
    if let Some(min) = options.min_rto {
        ccid2.rto.min = min;
    }
}

/// The CCID 2 of Linux 2.6.22 (`ccid2.c`): the window grows whether it is used or not, the peer is
/// not told of a new Ack Ratio, every data packet acknowledges, and a timeout takes a second.
fn linux_2_6_22(ccid2: &mut Ccid2Config) {
    ccid2.idle = IdlePolicy::Unchecked;
    ccid2.ack_ratio = AckRatioConfig::Fixed(2);
    ccid2.ack_of_ack_after = 1;
    ccid2.initial_window = InitialWindow::Packets(1);
    ccid2.rto.min = Duration::from_secs(1);
}

fn tfrc_options(tfrc: &mut Ccid3Config, options: &DccpOptions) {
    if let Some(tick) = options.timer_tick {
        tfrc.granularity = tick;
    }
    if let Some(reduce) = options.oscillation_reduction {
        tfrc.oscillation_reduction = reduce;
    }
    if let Some(discount) = options.history_discounting {
        tfrc.history_discounting = discount;
    }
}

/// The share kept when `cut` is cut.
pub(super) fn keep(cut: Percent) -> Cut {
    Cut { keep_permille: ((100.0 - cut.0) * 10.0 + 0.5) as u32 }
}

impl DccpEnd {
    fn new(mut endpoint: Endpoint, role: Role, flow: &Flow) -> Self {
        endpoint.ignore_events();
        let path_mtu = u16::try_from(flow.packet.bytes()).unwrap_or(u16::MAX);
        let uses_quick_start = flow.dccp.quick_start.is_some();
        let host = HostModel::new(&flow.dccp);
        Self { endpoint, role, id: None, path_mtu, opened: false, uses_quick_start, host }
    }

    /// Invites the client when it is due.
    fn invite(&mut self, now: Instant) {
        if let Role::Inviting(invitation) = &self.role
            && invitation.due <= now
        {
            // The same call succeeded when the flow was built.
            self.role = match self.endpoint.invite(now, invitation.options.clone()) {
                Ok(listener) => Role::Passive(listener),
                Err(_) => Role::Refused,
            };
        }
    }

    /// Whether the host accepts a packet that arrives. If not, the packet is dropped.
    #[inline(never)]
    fn admit(&mut self, now: Instant, place: &mut Option<Datagram>) -> bool {
        let Some(host) = &mut self.host else { return true };
        place.take_if(|datagram| !host.accepts(now, datagram)).is_none()
    }

    /// Like `poll_transmit_into`, at a host that has to see every call. So no packet is the last.
    #[inline(never)]
    fn poll_as_host(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        let may_send = self.host.as_mut().is_none_or(|host| host.may_send(now));
        if !may_send || self.endpoint.poll_transmit_into(now, out) == Sent::Nothing {
            return Sent::Nothing;
        }
        let is_client = matches!(self.role, Role::Active(_));
        if let (Some(host), Some(datagram)) = (&mut self.host, out) {
            host.on_sent(is_client, datagram);
        }
        Sent::One
    }

    /// Accepts the first connection, the only one that matters.
    #[inline]
    fn accept(&mut self) {
        if self.id.is_none() {
            self.accept_first();
        }
    }

    #[cold]
    fn accept_first(&mut self) {
        if let Role::Passive(listener) = &self.role {
            self.id = self.endpoint.accept(*listener);
            self.opened |= self.id.is_some();
        }
    }
}

impl Machine for DccpEnd {
    fn handle_datagram(&mut self, now: Instant, datagram: Datagram) {
        self.handle_datagram_in(now, &mut Some(datagram));
    }

    fn handle_datagram_in(&mut self, now: Instant, place: &mut Option<Datagram>) {
        if self.host.is_some() && !self.admit(now, place) {
            return;
        }
        self.endpoint.handle_datagram_in(now, place);
        self.accept();
    }

    fn handle_timeout(&mut self, now: Instant) {
        if let Some(host) = &mut self.host {
            host.wake(now, || self.endpoint.poll_timeout());
        }
        self.invite(now);
        self.endpoint.handle_timeout(now);
        self.accept();
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let mut datagram = None;
        self.poll_transmit_into(now, &mut datagram);
        datagram
    }

    fn poll_transmit_into(&mut self, now: Instant, out: &mut Option<Datagram>) -> Sent {
        if self.host.is_some() {
            return self.poll_as_host(now, out);
        }
        self.endpoint.poll_transmit_into(now, out)
    }

    fn may_transmit(&self) -> bool {
        self.host.is_some() || self.endpoint.may_transmit()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        match (&self.role, &self.host) {
            (Role::Inviting(..), _) | (_, Some(_)) => self.poll_timeout_of_host(),
            _ => self.endpoint.poll_timeout(),
        }
    }
}

impl DccpEnd {
    /// Like `poll_timeout`, for a host that adds something to the endpoint or invites.
    #[inline(never)]
    fn poll_timeout_of_host(&self) -> Option<Instant> {
        if let Some(until) = self.host.as_ref().and_then(|host| host.blocked_until()) {
            return Some(until);
        }
        let due = match (&self.role, self.endpoint.poll_timeout()) {
            (Role::Inviting(invitation), due) => {
                Some(due.map_or(invitation.due, |due| due.min(invitation.due)))
            }
            (_, due) => due,
        };
        due.map(|at| self.host.as_ref().map_or(at, |host| host.fire(at)))
    }
}

impl AppPort for DccpEnd {
    fn send(&mut self, now: Instant, message: Message) -> SendOutcome {
        let Some(id) = self.id else { return SendOutcome::Closed(message) };
        match self.endpoint.send(now, id, message) {
            Ok(()) => SendOutcome::Accepted,
            Err(SendError::Full(message)) => SendOutcome::Full(message),
            Err(other) => SendOutcome::Closed(other.into_message()),
        }
    }

    fn fill(&mut self, now: Instant, bytes: Option<u32>, most: u32) -> (u32, u32) {
        self.id.map_or((0, 0), |id| self.endpoint.fill(now, id, bytes, most))
    }

    fn is_writable(&self) -> bool {
        self.id.is_some_and(|id| self.endpoint.is_writable(id))
    }

    fn close(&mut self, now: Instant) {
        if let Some(id) = self.id {
            self.endpoint.close(now, id);
        }
    }

    fn max_payload(&self) -> usize {
        let mps = self.id.and_then(|id| self.endpoint.max_message_size(id));
        // Before the connection exists: IPv4 header and the longest generic header with an ack.
        let most = mps.unwrap_or(usize::from(self.path_mtu).saturating_sub(20 + 24));
        self.host.as_ref().map_or(most, |host| host.max_payload(most))
    }
}

impl Transport for DccpEnd {
    fn open(&mut self, now: Instant) {
        let Role::Active(options) = &mut self.role else { return };
        let Some(options) = options.take() else { return };
        // The same call succeeded when the flow was built.
        match self.endpoint.connect(now, *options) {
            Ok(id) => (self.id, self.opened) = (Some(id), true),
            Err(_) => self.role = Role::Refused,
        }
    }

    fn poll_delivered(&mut self, now: Instant) -> Option<Payload> {
        let id = self.id.filter(|&id| self.endpoint.is_readable(id))?;
        self.endpoint.recv(now, id).ok().flatten()
    }

    fn take_delivered(&mut self, _now: Instant) -> u64 {
        self.id.map_or(0, |id| self.endpoint.take_received(id))
    }

    fn receive_in(&mut self, now: Instant, place: &mut Option<Datagram>) -> (u64, Instant) {
        self.handle_datagram_in(now, place);
        let bytes = self.take_delivered(now);
        let idle_until = match self.may_transmit() {
            true => Instant::ZERO,
            false => self.poll_timeout().unwrap_or(Instant::MAX),
        };
        (bytes, idle_until)
    }

    fn is_closed(&self) -> bool {
        let over = |id| self.endpoint.state(id).is_none_or(State::is_over);
        matches!(self.role, Role::Refused) || (self.opened && self.id.is_none_or(over))
    }

    fn is_spent(&self) -> bool {
        let is_host_spent = self.host.as_ref().is_none_or(|host| host.is_spent());
        let invites = matches!(self.role, Role::Inviting(..));
        is_host_spent && !invites && self.is_closed() && self.endpoint.is_spent()
    }

    fn uses_quick_start(&self) -> bool {
        self.uses_quick_start
    }

    fn watches_device(&self) -> bool {
        self.host.as_ref().is_some_and(|host| host.watches_device())
    }

    fn on_device(&mut self, _now: Instant, ip_len: u32, leaves: Instant) {
        if let Some(host) = &mut self.host {
            host.on_device(ip_len, leaves);
        }
    }

    fn poll_quick_start(&mut self) -> Option<QuickStart> {
        self.endpoint.poll_quick_start()
    }

    fn handle_with_quick_start(
        &mut self,
        now: Instant,
        datagram: Datagram,
        option: QuickStart,
        ttl: u8,
    ) {
        self.endpoint.handle_with_quick_start(now, datagram, option, ttl);
    }

    fn probe(&self) -> Probe {
        let Some(stats) = self.id.and_then(|id| self.endpoint.stats(id)) else {
            return Probe::default();
        };
        stats.probe()
    }
}
