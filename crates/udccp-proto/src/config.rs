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
    /// Key of everything that must not be guessed: initial sequence numbers, ephemeral ports,
    /// hash table order. Truly random in production, from a seed in simulation.
    pub secret: [u8; 32],
    /// Ephemeral DCCP ports, first and last (default 49152 to 65535, RFC 6335).
    pub ephemeral_ports: (u16, u16),
    /// Resets sent for packets that belong to no connection, per second (default 100).
    pub out_of_the_blue_resets_per_sec: u32,
    /// Connections held at once (default 1,000,000). Those in TIMEWAIT do not count.
    pub max_connections: usize,
    /// Tuples of addresses and ports held in TIMEWAIT at once (default 262,144). Each takes at most
    /// 64 bytes. Beyond, the oldest is freed early, and counted in
    /// `EndpointStats::timewaits_evicted`.
    pub max_timewaits: usize,
    /// No packet leaves before then (default `None`; RFC 4340 section 7.3). A host that was up
    /// before with the same `secret` and another clock waits here for two minutes, the longest life
    /// of a packet; with a new random secret, numbers of before are not met again.
    pub quiet_until: Option<Instant>,
    /// Receive checksum offload, as network cards have it: whoever hands in datagrams has verified
    /// header checksums, or knows that no bit can be wrong, and they are not verified again
    /// (default false). What is sent always carries the right checksum.
    pub receive_checksum_offload: bool,
    /// The CCIDs that connections can use (default CCIDs 2 and 3).
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

/// Whether a server keeps nothing of a handshake until it is over, and has the client carry what it
/// would have kept, in an Init Cookie (RFC 4340 section 8.1.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum InitCookies {
    /// Every Request makes a connection.
    Never,
    /// From half of the backlog on, so that a flood of Requests cannot fill it.
    #[default]
    UnderLoad,
    /// No Request makes a connection.
    Always,
}

/// Settings of a listener.
#[derive(Clone, Debug)]
pub struct ListenConfig {
    /// Service codes served here (RFC 4340 section 8.1.2); at least one.
    pub services: Vec<ServiceCode>,
    /// Connections in handshake or waiting for `accept`, at most (default 128). Further Requests
    /// are answered with Reset, Too Busy. With Init Cookies, only connections that wait for
    /// `accept` count, and those that come back while these are too many have to try again: data
    /// that they bring is lost until one of them is let in.
    pub backlog: usize,
    /// When handshakes go on without state here (default under load).
    pub init_cookies: InitCookies,
    /// How long an Init Cookie may be used (default 60 s).
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

/// The one client that a server waits for, and how ([`Endpoint::invite`](crate::Endpoint::invite),
/// RFC 5596).
#[derive(Clone, Debug)]
pub struct InviteOptions {
    /// Our IP address (the true one, it is in the checksum) and our UDP encapsulation port, 0
    /// over raw IP.
    pub local: SocketAddr,
    /// The DCCP port served.
    pub local_port: u16,
    /// The client's IP address and UDP encapsulation port (0 over raw IP), as they look from here.
    pub remote: SocketAddr,
    /// The client's DCCP port, as it looks from here.
    pub remote_port: u16,
    /// The service that the client will ask for.
    pub service: ServiceCode,
    /// Send Listen packets (default true). Without, the client is waited for in silence.
    pub sends_listen: bool,
    /// Settings of the connection.
    pub config: SharedConfig,
}

/// Where to connect to, from where, and how.
#[derive(Clone, Debug)]
pub struct ConnectOptions {
    /// Our IP address (the true one, it is in the checksum) and our UDP encapsulation port, 0
    /// over raw IP.
    pub local: SocketAddr,
    /// Our DCCP port; `None` picks an ephemeral one (RFC 6056).
    pub local_port: Option<u16>,
    /// The peer's IP address and UDP encapsulation port, 0 over raw IP.
    pub remote: SocketAddr,
    /// The peer's DCCP port.
    pub remote_port: u16,
    /// The service asked for.
    pub service: ServiceCode,
    /// Settings of the connection. Those of many connections are best shared.
    pub config: SharedConfig,
}

/// How the path's MTU is looked for with padded Syncs (RFC 8899).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PmtuProbing {
    /// Size that almost every path takes, in bytes with the IP header: what follows when the first
    /// size does not get through (default 1280).
    pub base: u16,
    /// When to try larger sizes again (PMTU_RAISE_TIMER, default 10 min).
    pub raise: Duration,
    /// After losses the size in use is tested, but not more often than this (default 15 s).
    pub doubt: Duration,
    /// Begin when the first message is queued whose packet might be larger than the path's least
    /// MTU (`pmtu_floor`), and not when the connection opens (default false). Most connections of
    /// small messages then never send a probe.
    pub when_needed: bool,
}

impl Default for PmtuProbing {
    fn default() -> Self {
        Self {
            base: 1280,
            raise: Duration::from_secs(600),
            doubt: Duration::from_secs(15),
            when_needed: false,
        }
    }
}

/// What `send` does when the send queue is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueuePolicy {
    /// Refuse: `SendError::Full` gives the message back.
    #[default]
    Refuse,
    /// Drop the newest queued message of lowest priority, if lower than the new one's; report it
    /// with `MessageDropped`. Otherwise refuse.
    DropLowest,
}

/// Quick-Start (RFC 5634): off unless set. It needs IP options, which sockets over UDP cannot send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QuickStartConfig {
    /// A client's rate to ask for with its Request, headers included; asked for once.
    pub request: Option<DataRate>,
    /// The greatest rate that is allowed to a peer that asks; usually that of the access link.
    pub accept: Option<DataRate>,
}

/// Settings of a connection. `Default` is what the RFCs ask for, or, where they leave it open, what
/// the field's text names.
#[derive(Clone, Debug, PartialEq)]
pub struct ConnectionConfig {
    /// CCIDs for data we send, best first (default 2).
    pub tx_ccids: Vec<u8>,
    /// CCIDs for data we receive, best first (default 2).
    pub rx_ccids: Vec<u8>,
    /// Settings of CCID 2.
    pub ccid2: Ccid2Config,
    /// Settings of CCID 3.
    pub ccid3: Ccid3Config,
    /// Settings of CCID 4.
    pub ccid4: Ccid4Config,
    /// Quick-Start (default: neither asked for nor allowed).
    pub quick_start: QuickStartConfig,
    /// First Sequence Window in packets, 32..2^46 (default 100, RFC 4340 section 7.5.2). It is
    /// raised as the congestion window needs it.
    pub sequence_window: u64,
    /// Messages that may wait to be sent (default 128).
    pub send_queue_packets: usize,
    /// Payload bytes that may wait to be sent (default 256 KiB); one message always fits.
    pub send_queue_bytes: usize,
    /// What a full send queue does.
    pub queue_policy: QueuePolicy,
    /// Payload bytes that may wait to be read (default 1 MiB).
    pub recv_queue_bytes: usize,
    /// Messages that may wait to be read (default 1024).
    pub recv_queue_packets: usize,
    /// Hold acknowledgements back while the receive queue is half full or more (default true): the
    /// peer's window stays shut until the application reads, instead of filling the queue with
    /// packets that would have to be dropped.
    pub hold_acks_when_full: bool,
    //= 4340-12.1-1
    /// Use ECN (default true, RFC 4340 section 12); `false` declares us ECN Incapable.
    pub ecn: bool,
    /// One in this many data packets, and none within three round-trip times of the one before,
    /// leaves with a congestion mark of our own, to see whether the peer reports it (default
    /// `None`: never, RFC 4340 section 12.3). A reported one costs nothing. One that is not counts
    /// as a mark of the network's, and after three in a row nothing ECN-capable is sent any more.
    pub ecn_probe: Option<NonZeroU32>,
    /// Allow short (24-bit) sequence numbers both ways (default false, RFC 4340 section 7.6.1).
    pub short_seqnos: bool,
    /// Checksum coverage of data that we send, 0..=15 (default 0: everything, section 9.2).
    pub send_cscov: u8,
    /// Least coverage that we accept, 0..=15 (default 0: everything, section 9.2.1).
    pub min_cscov: u8,
    /// Send, and ask for, the Data Checksum option (default false, section 9.3).
    pub data_checksum: bool,
    /// Deliver data that its Data Checksum shows to be corrupt, with a note, instead of dropping it
    /// (default false, section 9.3).
    pub deliver_corrupt: bool,
    /// Every packet goes the long way, which the short one has to agree with. For tests.
    #[doc(hidden)]
    pub long_way_only: bool,
    /// Ask the peer for NDP Counts (default false, section 7.7.2).
    pub ndp_count: bool,
    /// Send a Timestamp on the handshake for a first round-trip sample (default true).
    pub handshake_timestamps: bool,
    /// Path MTU in bytes with the IP header (default 1500).
    pub path_mtu: u16,
    /// Least path MTU in bytes with the IP header that ICMP messages or probes can lead to (default
    /// `None`: 1280 on IPv6, which every link takes, and 576 on IPv4), so that nobody can drive it
    /// down to a useless value (RFC 4340 section 14.1). Not above `path_mtu`. A path that takes
    /// less needs the setting.
    pub pmtu_floor: Option<u16>,
    /// Find out by probes what the path takes, up to `path_mtu` (default `None`: routers have to
    /// say). Packets must leave with Don't Fragment.
    pub pmtu_probing: Option<PmtuProbing>,
    /// Silence of the peer before a Sync probes an open connection (default `None`: never). A peer
    /// that lives answers at once.
    pub keep_alive: Option<Duration>,
    /// Unanswered keep-alive probes, sent ever further apart, before giving up (default 5). Where
    /// there is an `idle_limit`, that decides instead.
    pub keep_alive_probes: u32,
    /// Silence of the peer after which it counts as gone, whether or not anything was sent: the
    /// connection ends with `CloseReason::PeerSilent` (default `None`: never). With `keep_alive`,
    /// which has to be shorter, probes leave until then, at least one in every `keep_alive`;
    /// without, a peer that lives and has nothing to send counts as gone too.
    pub idle_limit: Option<Duration>,
    /// Time without any packet of the peer while data is sent, before giving up (default 5 min).
    pub silence_timeout: Duration,
    /// After `close`, time to deliver what is queued before Close leaves (default 5 s), and then
    /// for the peer to confirm before [`EventKind::CloseUnconfirmed`](crate::EventKind).
    pub close_linger: Duration,
    /// First retransmission timeout of Request, Close and CloseReq without an RTT (default 1 s,
    /// doubling to 64 s; section 8.1.1).
    pub initial_rto: Duration,
    /// Requests retransmitted before giving up (default 6).
    pub request_retries: u32,
    /// Time a server or client may stay in RESPOND or PARTOPEN (default 4 MSL = 8 min, sections
    /// 8.1.3 and 8.1.5).
    pub handshake_timeout: Duration,
    /// Closes or CloseReqs retransmitted before giving up (default 8).
    pub close_retries: u32,
    /// Time in TIMEWAIT (default 2 MSL = 4 min, section 8.3).
    pub timewait: Duration,
    /// Server closes with Close and holds TIMEWAIT itself, instead of CloseReq (default false).
    pub server_timewait: bool,
    /// Time between Syncs sent in answer to packets that do not fit: at most eight of them leave in
    /// any eight times this long (default 125 ms, i.e. at most 8 in any second, section 7.5.4).
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
    /// The first setting that cannot be used.
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
