//! Settings of connections.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use udccp_proto::{ConnectionConfig, InitCookies, QueuePolicy};

use crate::{Ccid2Options, Ccid3Options, Ccid4Options};

/// Silence before a peer is probed, unless set otherwise. Many NATs and firewalls forget a UDP flow
/// after 30 s (RFC 4787 asks for two minutes), and the connection with it.
const KEEP_ALIVE: Duration = Duration::from_secs(25);

/// Silence after which a peer is gone, unless set otherwise: the longest life of a packet (RFC 4340
/// section 3.4), so that an answer is not just late; a change of networks or the restart of a
/// router takes less.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// How long an Init Cookie may be used, unless set otherwise.
const COOKIE_LIFETIME: Duration = Duration::from_secs(60);

/// How the path's MTU is looked for with padded packets (RFC 8899).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PmtuProbing {
    /// Size that almost every path takes, in bytes with the IP header: what follows when the first
    /// size does not get through (default 1280).
    pub base: u16,
    /// When to try larger sizes again (PMTU_RAISE_TIMER, default 10 min).
    pub raise: Duration,
    /// After losses the size in use is tested, but not more often than this (default 15 s).
    pub doubt: Duration,
    /// Begin when the first message is queued whose packet might be larger than the path's least
    /// MTU (`pmtu_floor`), and not when the connection opens (default true).
    pub when_needed: bool,
}

impl PmtuProbing {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    fn to_proto(self) -> udccp_proto::PmtuProbing {
        let Self { base, when_needed, .. } = self;
        let (raise, doubt) = (self.raise.into(), self.doubt.into());
        udccp_proto::PmtuProbing { base, raise, doubt, when_needed }
    }
}

impl Default for PmtuProbing {
    fn default() -> Self {
        let proto = udccp_proto::PmtuProbing::default();
        let (raise, doubt) = (proto.raise.to_std(), proto.doubt.to_std());
        Self { base: proto.base, raise, doubt, when_needed: true }
    }
}

/// Settings of connections, with defaults that suit a socket.
///
/// ```
/// use std::time::Duration;
///
/// let options = udccp::Options::new()
///     .close_linger(Duration::from_secs(2))
///     .recv_queue(4 << 20, 4096);
/// # drop(options);
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) config: Arc<ConnectionConfig>,
    pub(crate) backlog: usize,
    pub(crate) init_cookies: InitCookies,
    pub(crate) cookie_lifetime: udccp_base::Duration,
    pub(crate) local_port: Option<u16>,
    pub(crate) local_ip: Option<IpAddr>,
    pub(crate) request_data: Bytes,
}

impl Default for Options {
    fn default() -> Self {
        // Most connections of a program share it.
        static CONFIG: LazyLock<Arc<ConnectionConfig>> =
            LazyLock::new(|| Arc::new(default_config()));
        Self {
            config: Arc::clone(&CONFIG),
            backlog: 128,
            init_cookies: InitCookies::default(),
            cookie_lifetime: COOKIE_LIFETIME.into(),
            local_port: None,
            local_ip: None,
            request_data: Bytes::new(),
        }
    }
}

fn default_config() -> ConnectionConfig {
    ConnectionConfig {
        // Room for a few full batches, so that a writer finds the next one filled.
        send_queue_packets: 512,
        send_queue_bytes: 1 << 20,
        // CCID 2 where the peer has it in its list; a peer that insists on CCID 3 or 4 has its way.
        tx_ccids: vec![2, 3, 4],
        rx_ccids: vec![2, 3, 4],
        ccid2: Ccid2Options::default().0,
        ccid3: Ccid3Options::default().0,
        ccid4: Ccid4Options::default().0,
        pmtu_probing: Some(PmtuProbing::default().to_proto()),
        keep_alive: Some(KEEP_ALIVE.into()),
        idle_limit: Some(IDLE_LIMIT.into()),
        ..ConnectionConfig::default()
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $type:ty = $value:expr;)*) => {
        impl Options {
            $(
                $(#[$doc])*
                #[must_use]
                pub fn $name(mut self, $name: $type) -> Self {
                    Arc::make_mut(&mut self.config).$name = $value;
                    self
                }
            )*
        }
    };
}

setters! {
    /// CCIDs for the data that we send, best first (default 2, 3, 4). The listener's order counts.
    tx_ccids: Vec<u8> = tx_ccids;
    /// CCIDs for the data that we receive, best first (default 2, 3, 4).
    rx_ccids: Vec<u8> = rx_ccids;
    /// First Sequence Window in packets, 32 and up (default 100; it grows as needed).
    sequence_window: u64 = sequence_window;
    /// What a full send queue does (default: refuse, so that `send` waits).
    queue_policy: QueuePolicy = queue_policy;
    /// Hold acknowledgements back while the receive queue is nearly full, so that a slow reader
    /// slows the sender down instead of losing messages (default true).
    hold_acks_when_full: bool = hold_acks_when_full;
    /// Use ECN (default true).
    ecn: bool = ecn;
    /// Mark one in so many data packets ourselves, to find a receiver that hides congestion marks
    /// (default: none).
    ecn_probe: Option<NonZeroU32> = ecn_probe;
    /// Allow 24-bit sequence numbers (default false).
    short_seqnos: bool = short_seqnos;
    /// Checksum coverage of what we send, 0 to 15 (default 0: everything).
    send_cscov: u8 = send_cscov;
    /// Least checksum coverage that we accept, 0 to 15 (default 0: everything).
    min_cscov: u8 = min_cscov;
    /// Carry a CRC-32c of the data (default false).
    data_checksum: bool = data_checksum;
    /// Deliver data that its checksum shows to be corrupt, with a note (`recv_with_meta`), instead
    /// of dropping it (default false). The peer has to send checksums: see `data_checksum`.
    deliver_corrupt: bool = deliver_corrupt;
    /// Ask the peer to count packets without data (default false).
    ndp_count: bool = ndp_count;
    /// Take a first round-trip sample in the handshake (default true).
    handshake_timestamps: bool = handshake_timestamps;
    /// Path MTU in bytes, IP header included (default 1500), at most. The interface's is never
    /// exceeded, and a router that reports a smaller one is believed.
    path_mtu: u16 = path_mtu;
    /// Find out by padded packets what the path takes, up to `path_mtu` (default: on, where the
    /// system can send packets that no router cuts). Routers that say so are believed either way.
    pmtu_probing: Option<PmtuProbing> = pmtu_probing.map(PmtuProbing::to_proto);
    /// Silence of the peer after which it is probed, which a living peer answers (default 25 s).
    /// Has to be shorter than `idle_limit`.
    keep_alive: Option<Duration> = keep_alive.map(Into::into);
    /// Unanswered probes before the connection is given up, where there is no `idle_limit`
    /// (default 5).
    keep_alive_probes: u32 = keep_alive_probes;
    /// Silence of the peer after which it is gone: the connection ends, and calls say so (default
    /// 120 s). `None` keeps connections of peers that vanish for ever, unless `keep_alive` probes
    /// them. Without `keep_alive`, a peer that lives and has nothing to say counts as gone too.
    idle_limit: Option<Duration> = idle_limit.map(Into::into);
    /// Least path MTU in bytes that ICMP messages or probes can lead to (default 1280 on IPv6, 576
    /// on IPv4).
    pmtu_floor: Option<u16> = pmtu_floor;
    /// Settings of CCID 2: window algorithm, initial window, timeouts.
    ccid2: Ccid2Options = ccid2.0;
    /// Settings of CCID 3: oscillation reduction, history discounting, pacing.
    ccid3: Ccid3Options = ccid3.0;
    /// Settings of CCID 4: those of CCID 3, and the size of headers.
    ccid4: Ccid4Options = ccid4.0;
    /// Time without any packet of the peer while data is sent, before giving up (default 5 min).
    silence_timeout: Duration = silence_timeout.into();
    /// How long a close may take to deliver what is queued (default 5 s), how long the peer then
    /// has to confirm it (or 14 round-trip times, if that is longer), and how long the end of the
    /// process waits for both. Zero: a close, a drop and the end of the process reset at once.
    close_linger: Duration = close_linger.into();
    /// First retransmission timeout of a handshake (default 1 s, doubling).
    initial_rto: Duration = initial_rto.into();
    /// Requests sent again before a connect fails (default 6).
    request_retries: u32 = request_retries;
    /// Longest time of a handshake that has begun (default 8 min).
    handshake_timeout: Duration = handshake_timeout.into();
    /// Closes sent again before the peer counts as gone (default 8): the first after two round-trip
    /// times (`initial_rto` where none is known), each later one after twice the wait before, at
    /// most 64 s. With the default that takes 1022 round-trip times, such as 51 s for 50 ms. The
    /// connection is kept until then, in the background.
    close_retries: u32 = close_retries;
    /// Time in TIMEWAIT (default 4 min).
    timewait: Duration = timewait.into();
    /// Hold TIMEWAIT at the server when it closes (default false: the client holds it).
    server_timewait: bool = server_timewait;
    /// Time between Syncs that answer packets which do not fit: at most eight leave in any eight
    /// times this long (default 125 ms).
    sync_interval: Duration = sync_interval.into();
}

impl Options {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// One CCID and no other, both ways (default: 2, or 3 or 4 if the peer asks for it alone).
    #[must_use]
    pub fn ccid(mut self, ccid: u8) -> Self {
        let config = Arc::make_mut(&mut self.config);
        (config.tx_ccids, config.rx_ccids) = (vec![ccid], vec![ccid]);
        self
    }

    /// What may wait to be sent, in bytes and messages (default 1 MiB, 512). `send` waits while
    /// the queue is full.
    #[must_use]
    pub fn send_queue(mut self, bytes: usize, messages: usize) -> Self {
        let config = Arc::make_mut(&mut self.config);
        (config.send_queue_bytes, config.send_queue_packets) = (bytes, messages);
        self
    }

    /// What may wait to be read, in bytes and messages (default 1 MiB, 1024). The peer is slowed
    /// down as the queue fills.
    #[must_use]
    pub fn recv_queue(mut self, bytes: usize, messages: usize) -> Self {
        let config = Arc::make_mut(&mut self.config);
        (config.recv_queue_bytes, config.recv_queue_packets) = (bytes, messages);
        self
    }

    /// Listeners only: connections that may be in handshake or wait for `accept` (default 128).
    /// While so many wait for `accept`, a client that brings an [Init Cookie](Self::init_cookies)
    /// back has to try again. It does by itself, but what it sent with its first tries is lost, as
    /// what the network loses: DCCP sends no message twice.
    #[must_use]
    pub fn backlog(mut self, connections: usize) -> Self {
        self.backlog = connections;
        self
    }

    /// Listeners only: when to keep nothing of a handshake until it is over, so that a flood of
    /// Requests costs no memory (default: from half of the backlog on).
    #[must_use]
    pub fn init_cookies(mut self, when: InitCookies) -> Self {
        self.init_cookies = when;
        self
    }

    /// Listeners only: how long a client may take to bring an Init Cookie back (default 60 s).
    #[must_use]
    pub fn cookie_lifetime(mut self, lifetime: Duration) -> Self {
        self.cookie_lifetime = lifetime.into();
        self
    }

    /// Listeners only: serve this local address alone; an unspecified address stands for all of its
    /// IP version (default: every address of the endpoint). Listeners for different addresses may
    /// have the same DCCP port.
    #[must_use]
    pub fn local_ip(mut self, ip: IpAddr) -> Self {
        self.local_ip = Some(ip);
        self
    }

    /// Outgoing connections only: our DCCP port (default: an ephemeral one).
    #[must_use]
    pub fn local_port(mut self, port: u16) -> Self {
        self.local_port = Some(port);
        self
    }

    /// Outgoing connections only: data that goes with the Request and so arrives a round-trip time
    /// earlier (default: none). A server that cannot keep it says so:
    /// `ConnectionEvent::PeerDropped`.
    #[must_use]
    pub fn request_data(mut self, data: impl Into<Bytes>) -> Self {
        self.request_data = data.into();
        self
    }

    /// The settings as the protocol has them. For the crates of this repository, which take both
    /// from one source; not part of the interface.
    #[doc(hidden)]
    pub fn protocol_config(&self) -> &ConnectionConfig {
        &self.config
    }

    /// The same to change; not part of the interface.
    #[doc(hidden)]
    pub fn protocol_config_mut(&mut self) -> &mut ConnectionConfig {
        Arc::make_mut(&mut self.config)
    }
}
