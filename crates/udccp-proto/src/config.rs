//! Settings of endpoints, listeners and connections. Defaults are the RFCs' values.

use core::net::SocketAddr;
use core::num::NonZeroU32;

use udccp_base::{DataRate, Duration, Instant};
use udccp_wire::ServiceCode;

use crate::ccid::{Ccid2Config, Ccid3Config, Ccid4Config, CcidRegistry};
use crate::connection::MIN_MTU;
use crate::error::ConfigError;
use crate::shared_config::SharedConfig;

/// Largest Sequence Window, 2^46 - 1 (RFC 4340 section 7.5.2).
pub const MAX_SEQUENCE_WINDOW: u64 = (1 << 46) - 1;
/// Smallest Sequence Window (RFC 4340 section 7.5.2).
pub const MIN_SEQUENCE_WINDOW: u64 = 32;

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct EndpointConfig {
    /// Key from which everything unpredictable is derived: initial sequence numbers, ephemeral
    /// ports, the order of hash tables. Random in production, from a seed in simulation.
    pub secret: [u8; 32],
    /// Ephemeral DCCP ports, first and last (default 49152 to 65535, RFC 6335).
    pub ephemeral_ports: (u16, u16),
    /// Most Resets per second in answer to packets that belong to no connection (default 100).
    pub out_of_the_blue_resets_per_sec: u32,
    /// Most connections at a time (default 1,000,000). Those in TIMEWAIT do not count.
    pub max_connections: usize,
    /// Most tuples of addresses and ports in TIMEWAIT (default 262,144, of at most 64 bytes each).
    /// If there are more, the oldest is freed early, and counted in
    /// `EndpointStats::timewaits_evicted`.
    pub max_timewaits: usize,
    /// No packet is sent before this time (default `None`; RFC 4340 section 7.3). A host that
    /// restarts with the same `secret` and another clock has to wait two minutes, the longest life
    /// of a packet. With a new random secret, earlier sequence numbers do not recur.
    pub quiet_until: Option<Instant>,
    /// Receive checksum offload, as in network cards: the header checksums of datagrams that are
    /// passed in have been verified, or cannot be wrong, and are not verified again (default
    /// false). Packets that are sent always have a correct checksum.
    pub receive_checksum_offload: bool,
    /// The CCIDs that connections can use (default CCIDs 2, 3 and 4).
    pub ccids: CcidRegistry,
}

impl EndpointConfig {
    /// Default settings with this secret.
    pub fn new(secret: [u8; 32]) -> Self {
        Self {
            secret,
            ephemeral_ports: (49_152, 65_535),
            out_of_the_blue_resets_per_sec: 100,
            quiet_until: None,
            max_connections: 1_000_000,
            max_timewaits: 1 << 18,
            receive_checksum_offload: false,
            ccids: CcidRegistry::default(),
        }
    }
}

/// When a server keeps no state of a handshake until it is complete, but has the client return that
/// state in an Init Cookie (RFC 4340 section 8.1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitCookies {
    /// Never: every Request creates a connection.
    Never,
    /// If half of the backlog is in use, so that a flood of Requests cannot fill it.
    #[default]
    UnderLoad,
    /// Always: no Request creates a connection.
    Always,
}

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Service codes served here (RFC 4340 section 8.1.2); at least one.
    pub services: Vec<ServiceCode>,
    /// Most connections in the handshake or waiting for `accept` (default 128). Further Requests
    /// are answered with a Reset of code Too Busy. With Init Cookies, only connections that wait
    /// for `accept` count; if there are too many, clients that return a cookie have to try again,
    /// and data that came with earlier tries is lost.
    pub backlog: usize,
    /// When to use Init Cookies (default under load).
    pub init_cookies: InitCookies,
    /// How long an Init Cookie is valid (default 60 s).
    pub cookie_lifetime: Duration,
    /// Settings of the connections accepted here.
    pub connection: SharedConfig,
}

impl ListenConfig {
    /// A listener for one service code with default settings.
    pub fn new(service: ServiceCode) -> Self {
        Self {
            services: vec![service],
            backlog: 128,
            init_cookies: InitCookies::default(),
            cookie_lifetime: Duration::from_secs(60),
            connection: ConnectionConfig::default().into(),
        }
    }
}

/// The one client that a server waits for, with its settings
/// ([`Endpoint::invite`](crate::Endpoint::invite), RFC 5596).
#[derive(Clone, Debug)]
pub struct InviteOptions {
    /// Our IP address, not a wildcard, because the checksum includes it; and our UDP encapsulation
    /// port, 0 over raw IP.
    pub local: SocketAddr,
    /// The DCCP port served.
    pub local_port: u16,
    /// The client's IP address and UDP encapsulation port (0 over raw IP), as seen from here.
    pub remote: SocketAddr,
    /// The client's DCCP port, as seen from here.
    pub remote_port: u16,
    /// The service code that the client will ask for.
    pub service: ServiceCode,
    /// Send Listen packets (default true). Otherwise wait for the client without sending anything.
    pub sends_listen: bool,
    /// Settings of the connection.
    pub config: SharedConfig,
}

/// The addresses, service code and settings of a connection to start.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Our IP address, not a wildcard, because the checksum includes it; and our UDP encapsulation
    /// port, 0 over raw IP.
    pub local: SocketAddr,
    /// Our DCCP port; `None` picks an ephemeral one (RFC 6056).
    pub local_port: Option<u16>,
    /// The peer's IP address and UDP encapsulation port, 0 over raw IP.
    pub remote: SocketAddr,
    /// The peer's DCCP port.
    pub remote_port: u16,
    /// The service code to ask for.
    pub service: ServiceCode,
    /// Settings of the connection. Share one object among many connections to save memory.
    pub config: SharedConfig,
}

/// How the path MTU is searched for with padded Syncs (RFC 8899).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmtuProbing {
    /// Size that almost every path can carry, in bytes with the IP header (BASE_PLPMTU, default
    /// 1280). It is tried if packets of the first size do not get through.
    pub base: u16,
    /// Time after which larger sizes are tried again (PMTU_RAISE_TIMER, default 10 min).
    pub raise: Duration,
    /// Shortest time between two tests of the size in use, which follow losses (default 15 s).
    pub confirmation: Duration,
    /// Start the search when the first message is queued whose packet might exceed the smallest
    /// path MTU (`pmtu_floor`), and not when the connection opens (default false). Most connections
    /// that carry only small messages then never send a probe.
    pub when_needed: bool,
}

impl Default for PmtuProbing {
    fn default() -> Self {
        Self {
            base: 1280,
            raise: Duration::from_secs(600),
            confirmation: Duration::from_secs(15),
            when_needed: false,
        }
    }
}

/// What happens to a new message when the send queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePolicy {
    /// It is refused, and `SendError::Full` returns it.
    #[default]
    Refuse,
    /// The newest of the queued messages with the lowest priority is dropped, if its priority is
    /// lower than that of the new one, and reported with `MessageDropped`. Otherwise the new one is
    /// refused.
    DropLowest,
}

/// Quick-Start (RFC 5634), off by default. It needs IP options, which sockets over UDP cannot send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuickStartConfig {
    /// The rate that a client requests with its Request, headers included; it asks once.
    pub request: Option<DataRate>,
    /// The highest rate that a peer may be granted, usually that of the access link.
    pub accept: Option<DataRate>,
}

/// Settings of a connection. Defaults are the values of the RFCs or, if those leave a value open,
/// the ones given for each field.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionConfig {
    /// CCIDs for data we send, the preferred one first (default 2).
    pub tx_ccids: Vec<u8>,
    /// CCIDs for data we receive, the preferred one first (default 2).
    pub rx_ccids: Vec<u8>,
    /// Settings of CCID 2.
    pub ccid2: Ccid2Config,
    /// Settings of CCID 3.
    pub ccid3: Ccid3Config,
    /// Settings of CCID 4.
    pub ccid4: Ccid4Config,
    /// Quick-Start (default: neither requested nor granted).
    pub quick_start: QuickStartConfig,
    /// Initial Sequence Window in packets, 32 to 2^46 - 1 (default 100, RFC 4340 section 7.5.2). It
    /// grows with the congestion window.
    pub sequence_window: u64,
    /// Limit of the send queue in messages, at least 1 (default 128).
    pub send_queue_packets: usize,
    /// Limit of the send queue in payload bytes, at least 1 (default 256 KiB); one message always
    /// fits.
    pub send_queue_bytes: usize,
    /// What happens when the send queue is full (default: the message is refused).
    pub queue_policy: QueuePolicy,
    /// Limit of the receive queue in payload bytes, at least 1 (default 1 MiB).
    pub recv_queue_bytes: usize,
    /// Limit of the receive queue in messages, at least 1 (default 1024).
    pub recv_queue_packets: usize,
    /// Hold back acknowledgements while the receive queue is half full or more (default true). The
    /// peer's window then stays closed until the application reads; otherwise its packets would
    /// fill the queue and be dropped.
    pub hold_acks_when_full: bool,
    //= 4340-12.1-1
    /// Use ECN (default true, RFC 4340 section 12). With `false` we declare ourselves ECN
    /// Incapable.
    pub ecn: bool,
    /// One in this many data packets is sent with a congestion mark of our own, to check whether
    /// the peer reports it; there are at least three round-trip times between two (default `None`:
    /// never, RFC 4340 section 12.3). A mark that is reported has no effect. One that is not counts
    /// as a mark by the network, and after three in a row ECN is no longer used for what we send.
    pub ecn_probe: Option<NonZeroU32>,
    /// Allow short (24-bit) sequence numbers in both directions (default false, RFC 4340 section
    /// 7.6.1).
    pub short_seqnos: bool,
    /// Checksum coverage of data that we send, 0 to 15 (default 0: everything, section 9.2).
    pub send_cscov: u8,
    /// Smallest coverage that we accept, 0 to 15 (default 0: everything, section 9.2.1).
    pub min_cscov: u8,
    /// Send, and ask for, the Data Checksum option (default false, section 9.3).
    pub data_checksum: bool,
    /// Deliver data that its Data Checksum shows to be corrupt, with `Delivery::is_corrupt` set,
    /// instead of dropping it (default false, section 9.3).
    pub deliver_corrupt: bool,
    /// Processes every packet in the general way, whose results the fast way has to match. For
    /// tests.
    #[doc(hidden)]
    pub long_way_only: bool,
    /// Ask the peer for NDP Counts (default false, section 7.7.2).
    pub ndp_count: bool,
    /// Send a Timestamp in the handshake, for a first round-trip time (default true).
    pub handshake_timestamps: bool,
    /// Upper limit of the path MTU in bytes with the IP header (default 1500).
    pub path_mtu: u16,
    /// Smallest path MTU in bytes with the IP header that ICMP messages or probes can lead to
    /// (default `None`: 1280 on IPv6, which every link carries, and 576 on IPv4), so that an
    /// attacker cannot reduce it to a useless value (RFC 4340 section 14.1). Not above `path_mtu`.
    /// Set it if the path carries less.
    pub pmtu_floor: Option<u16>,
    /// Search for the largest packet that the path carries, up to `path_mtu` (default `None`: rely
    /// on reports of routers). Packets must be sent with Don't Fragment.
    pub pmtu_probing: Option<PmtuProbing>,
    /// Silence of the peer after which an open connection sends a Sync as a probe, which a live
    /// peer answers at once (default `None`: never).
    pub keep_alive: Option<Duration>,
    /// Unanswered keep-alive probes, at increasing intervals, after which the connection is given
    /// up (default 5). Not used if there is an `idle_limit`.
    pub keep_alive_probes: u32,
    /// Silence of the peer after which the connection ends with `CloseReason::PeerSilent`, whether
    /// or not anything was sent (default `None`: never). With `keep_alive`, which has to be
    /// shorter, probes are sent until then, at least one in every `keep_alive`. Without it, a live
    /// peer that has nothing to send counts as gone too. Time in which the driver did not run does
    /// not count.
    pub idle_limit: Option<Duration>,
    /// Time without any packet from the peer while sent data is unacknowledged, after which the
    /// connection ends (default 5 min). In the last eighth of it, a few Syncs are sent as probes,
    /// which a live peer answers at once.
    pub silence_timeout: Duration,
    /// After `close`: how long to deliver what is queued before the Close is sent (default 5 s),
    /// and then how long the peer has to confirm before
    /// [`EventKind::CloseUnconfirmed`](crate::EventKind). Zero: what is queued is dropped.
    pub close_linger: Duration,
    /// First retransmission timeout of Request, Close and CloseReq without an RTT (default 1 s,
    /// doubling to 64 s; section 8.1.1).
    pub initial_rto: Duration,
    /// Retransmissions of a Request before giving up (default 6).
    pub request_retries: u32,
    /// How long a server may stay in RESPOND, or a client in PARTOPEN (default 4 MSL = 8 min,
    /// sections 8.1.3 and 8.1.5).
    pub handshake_timeout: Duration,
    /// Retransmissions of a Close or CloseReq before giving up (default 8).
    pub close_retries: u32,
    /// Time in TIMEWAIT (default 2 MSL = 4 min, section 8.3).
    pub timewait: Duration,
    /// The server closes with a Close and holds TIMEWAIT itself, instead of sending a CloseReq
    /// (default false).
    pub server_timewait: bool,
    /// Mean time between Syncs in answer to packets with unexpected numbers: at most eight are sent
    /// within eight times this long (default 125 ms, that is at most 8 per second, section 7.5.4).
    pub sync_interval: Duration,
}

impl Default for ConnectionConfig {
    fn default() -> Self {
        Self {
            tx_ccids: vec![2],
            rx_ccids: vec![2],
            ccid2: Ccid2Config::default(),
            ccid3: Ccid3Config::default(),
            ccid4: Ccid4Config::default(),
            quick_start: QuickStartConfig::default(),
            sequence_window: 100,
            send_queue_packets: 128,
            send_queue_bytes: 256 << 10,
            queue_policy: QueuePolicy::Refuse,
            recv_queue_bytes: 1 << 20,
            recv_queue_packets: 1024,
            hold_acks_when_full: true,
            ecn: true,
            ecn_probe: None,
            short_seqnos: false,
            send_cscov: 0,
            min_cscov: 0,
            data_checksum: false,
            deliver_corrupt: false,
            long_way_only: false,
            ndp_count: false,
            handshake_timestamps: true,
            path_mtu: 1500,
            pmtu_floor: None,
            pmtu_probing: None,
            keep_alive: None,
            keep_alive_probes: 5,
            idle_limit: None,
            silence_timeout: Duration::from_secs(300),
            close_linger: Duration::from_secs(5),
            initial_rto: Duration::from_secs(1),
            request_retries: 6,
            handshake_timeout: Duration::from_secs(480),
            close_retries: 8,
            timewait: Duration::from_secs(240),
            server_timewait: false,
            sync_interval: Duration::from_millis(125),
        }
    }
}

impl ConnectionConfig {
    /// Checks the settings against each other and the RFC's ranges.
    ///
    /// # Errors
    /// The first invalid setting.
    pub fn check(&self) -> Result<(), ConfigError> {
        for list in [&self.tx_ccids, &self.rx_ccids] {
            if list.is_empty() || list.len() > 250 {
                return Err(ConfigError::CcidList);
            }
        }
        if !(MIN_SEQUENCE_WINDOW..=MAX_SEQUENCE_WINDOW).contains(&self.sequence_window) {
            return Err(ConfigError::SequenceWindow(self.sequence_window));
        }
        for cscov in [self.send_cscov, self.min_cscov] {
            if cscov > 15 {
                return Err(ConfigError::ChecksumCoverage(cscov));
            }
        }
        for mtu in [self.path_mtu].into_iter().chain(self.pmtu_floor) {
            if mtu < MIN_MTU {
                return Err(ConfigError::PathMtu(mtu));
            }
        }
        // A keep-alive timer of no time would expire for ever without time passing.
        if [self.keep_alive, self.idle_limit].contains(&Some(Duration::ZERO)) {
            return Err(ConfigError::NoTime);
        }
        if let (Some(keep_alive), Some(idle_limit)) = (self.keep_alive, self.idle_limit) {
            if keep_alive >= idle_limit {
                return Err(ConfigError::IdleLimit { keep_alive, idle_limit });
            }
        }
        let queues = [
            self.send_queue_packets,
            self.send_queue_bytes,
            self.recv_queue_packets,
            self.recv_queue_bytes,
        ];
        if queues.contains(&0) {
            return Err(ConfigError::EmptyQueue);
        }
        Ok(())
    }
}
