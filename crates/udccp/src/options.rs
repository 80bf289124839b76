//! Settings of connections.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use bytes::Bytes;
use udccp_proto::{ConnectionConfig, InitCookies, QueuePolicy};

use crate::{Ccid2Options, Ccid3Options, Ccid4Options};

/// Default of `keep_alive`. Many NATs and firewalls forget a UDP flow, and with it the connection,
/// after 30 s of silence (RFC 4787 asks for two minutes).
const KEEP_ALIVE: Duration = Duration::from_secs(25);

/// Default of `idle_limit`: the longest life of a packet (RFC 4340 section 3.4), so that an answer
/// that is only late still arrives. A change of networks or the restart of a router takes less.
const IDLE_LIMIT: Duration = Duration::from_secs(120);

/// Default of `cookie_lifetime`.
const COOKIE_LIFETIME: Duration = Duration::from_secs(60);

/// How the path MTU is searched for with padded packets (RFC 8899), up to [`Options::path_mtu`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PmtuProbing {
    /// Size that almost every path can carry, in bytes with the IP header (BASE_PLPMTU, default
    /// 1280). It is tried if packets of the first size do not get through.
    pub base: u16,
    /// Time after which larger sizes are tried again (PMTU_RAISE_TIMER, default 10 min).
    pub raise: Duration,
    /// Shortest time between two tests of the size in use, which follow losses (default 15 s).
    pub confirmation: Duration,
    /// Start the search when the first message is queued whose packet might exceed the smallest
    /// path MTU (`pmtu_floor`), and not when the connection opens (default true).
    pub when_needed: bool,
}

impl PmtuProbing {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    fn to_proto(self) -> udccp_proto::PmtuProbing {
        let Self { base, when_needed, .. } = self;
        let (raise, confirmation) = (self.raise.into(), self.confirmation.into());
        udccp_proto::PmtuProbing { base, raise, confirmation, when_needed }
    }
}

impl Default for PmtuProbing {
    fn default() -> Self {
        let proto = udccp_proto::PmtuProbing::default();
        let (raise, confirmation) = (proto.raise.to_std(), proto.confirmation.to_std());
        Self { base: proto.base, raise, confirmation, when_needed: true }
    }
}

/// Settings of connections. The defaults suit sockets; where they differ from the RFCs' values, the
/// method says so.
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
        // Shared by most connections of a program.
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
        // Enough for a few full batches, so that a writer finds the next one filled.
        send_queue_packets: 512,
        send_queue_bytes: 1 << 20,
        // CCID 2 if the peer allows it; CCID 3 or 4 if the peer offers only that one.
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
    /// CCIDs for the data that we send, the preferred one first (default 2, 3, 4). If both sides
    /// have several in common, the server's order decides.
    tx_ccids: Vec<u8> = tx_ccids;
    /// CCIDs for the data that we receive, the preferred one first (default 2, 3, 4). As for
    /// `tx_ccids`, the server's order decides.
    rx_ccids: Vec<u8> = rx_ccids;
    /// Initial Sequence Window in packets, 32 to 2^46 - 1 (default 100, RFC 4340 section 7.5.2). It
    /// grows with the congestion window.
    sequence_window: u64 = sequence_window;
    /// What happens when the send queue is full (default: `send` waits, and `try_send` returns the
    /// message).
    queue_policy: QueuePolicy = queue_policy;
    /// Hold back acknowledgements while the receive queue is half full or more, so that a slow
    /// reader slows the sender down instead of losing messages (default true).
    hold_acks_when_full: bool = hold_acks_when_full;
    /// Use ECN (default true, RFC 4340 section 12).
    ecn: bool = ecn;
    /// Set the congestion mark on one in this many of our own data packets, to detect a receiver
    /// that hides congestion marks (default: none, RFC 4340 section 12.3).
    ecn_probe: Option<NonZeroU32> = ecn_probe;
    /// Allow 24-bit sequence numbers (default false, RFC 4340 section 7.6.1).
    short_seqnos: bool = short_seqnos;
    /// Checksum coverage of the data that we send, 0 to 15 (default 0: everything, RFC 4340 section
    /// 9.2).
    send_cscov: u8 = send_cscov;
    /// Smallest checksum coverage that we accept, 0 to 15 (default 0: everything, RFC 4340 section
    /// 9.2.1).
    min_cscov: u8 = min_cscov;
    /// Send a CRC-32c of the data, and ask the peer for one (default false; Data Checksum, RFC 4340
    /// section 9.3).
    data_checksum: bool = data_checksum;
    /// Deliver data that its checksum shows to be corrupt, instead of dropping it (default false).
    /// `recv_with_meta` tells which messages are. The peer has to send checksums: see
    /// `data_checksum`.
    deliver_corrupt: bool = deliver_corrupt;
    /// Ask the peer to count its packets without data (NDP Count; default false, RFC 4340 section
    /// 7.7.2).
    ndp_count: bool = ndp_count;
    /// Measure a first round-trip time in the handshake (default true).
    handshake_timestamps: bool = handshake_timestamps;
    /// Upper limit of the path MTU in bytes, IP header included (default 1500). The interface's MTU
    /// is a limit too, and so is a smaller one that a router reports.
    path_mtu: u16 = path_mtu;
    /// Search for the largest packet that the path carries, up to `path_mtu` (default: on, if the
    /// system can send packets with Don't Fragment). `None`: only routers' reports count, which are
    /// believed in any case.
    pmtu_probing: Option<PmtuProbing> = pmtu_probing.map(PmtuProbing::to_proto);
    /// Silence of the peer after which it is sent a probe, which a live peer answers (default 25 s;
    /// `None`: no probes). Must be above zero and shorter than `idle_limit`.
    keep_alive: Option<Duration> = keep_alive.map(Into::into);
    /// Unanswered probes after which the connection is given up if there is no `idle_limit`
    /// (default 5).
    keep_alive_probes: u32 = keep_alive_probes;
    /// Silence of the peer after which the connection ends with an error, whether or not data was
    /// sent (default 120 s). With `None`, a connection to a peer that vanished stays until
    /// `keep_alive` probes or `silence_timeout` end it. Without `keep_alive`, a live peer that
    /// sends nothing counts as gone too.
    idle_limit: Option<Duration> = idle_limit.map(Into::into);
    /// Smallest path MTU in bytes, IP header included, that ICMP messages or probes can lead to
    /// (default 1280 on IPv6, 576 on IPv4).
    pmtu_floor: Option<u16> = pmtu_floor;
    /// Settings of CCID 2: window algorithm, initial window, timeouts and others.
    ccid2: Ccid2Options = ccid2.0;
    /// Settings of CCID 3: oscillation reduction, history discounting, send credit and others.
    ccid3: Ccid3Options = ccid3.0;
    /// Settings of CCID 4: those of CCID 3, and the size of headers.
    ccid4: Ccid4Options = ccid4.0;
    /// Time without any packet from the peer while sent data is unacknowledged, after which the
    /// connection ends (default 5 min). An `idle_limit` that is shorter, such as the default, acts
    /// first.
    silence_timeout: Duration = silence_timeout.into();
    /// How long a close may take to deliver what is queued (default 5 s); how long the peer then
    /// has to confirm (at least 14 round-trip times); and how long the end of the process waits for
    /// both. Zero: a close, a drop and the end of the process reset the connection at once.
    close_linger: Duration = close_linger.into();
    /// First retransmission timeout in the handshake (default 1 s; it doubles, up to 64 s).
    initial_rto: Duration = initial_rto.into();
    /// Retransmissions of a Request before connecting fails (default 6).
    request_retries: u32 = request_retries;
    /// How long a handshake may take after the first answer (default 8 min).
    handshake_timeout: Duration = handshake_timeout.into();
    /// Retransmissions of a Close before the peer counts as gone (default 8). The first follows
    /// after two round-trip times (`initial_rto` if none was measured); each further wait is twice
    /// as long, up to 64 s. The default takes 1022 round-trip times, for example 51 s for 50 ms, in
    /// the background.
    close_retries: u32 = close_retries;
    /// Time in TIMEWAIT (default 4 min, twice the longest life of a packet, RFC 4340 section 8.3).
    timewait: Duration = timewait.into();
    /// The server holds TIMEWAIT if it closes (default false: the client holds it).
    server_timewait: bool = server_timewait;
    /// Mean time between Syncs that answer packets with unexpected numbers (default 125 ms): at
    /// most eight are sent within eight times this long (RFC 4340 section 7.5.4).
    sync_interval: Duration = sync_interval.into();
}

impl Options {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// Uses this CCID only, in both directions (default: 2, or 3 or 4 if the peer offers only that
    /// one).
    #[must_use]
    pub fn ccid(mut self, ccid: u8) -> Self {
        let config = Arc::make_mut(&mut self.config);
        (config.tx_ccids, config.rx_ccids) = (vec![ccid], vec![ccid]);
        self
    }

    /// Limits of the send queue, in bytes and messages, at least 1 each (default 1 MiB, 512).
    /// `send` waits while the queue is full. One message always fits in bytes.
    #[must_use]
    pub fn send_queue(mut self, bytes: usize, messages: usize) -> Self {
        let config = Arc::make_mut(&mut self.config);
        (config.send_queue_bytes, config.send_queue_packets) = (bytes, messages);
        self
    }

    /// Limits of the receive queue, in bytes and messages, at least 1 each (default 1 MiB, 1024).
    /// The peer is slowed down as the queue fills.
    #[must_use]
    pub fn recv_queue(mut self, bytes: usize, messages: usize) -> Self {
        let config = Arc::make_mut(&mut self.config);
        (config.recv_queue_bytes, config.recv_queue_packets) = (bytes, messages);
        self
    }

    /// Listeners only: how many connections may be in the handshake or wait for `accept` (default
    /// 128). Further clients are refused as Too Busy. With [Init Cookies](Self::init_cookies), only
    /// connections that wait for `accept` count; a client that returns a cookie while there are too
    /// many tries again by itself, but data that came with its first tries is lost: DCCP sends no
    /// message twice.
    #[must_use]
    pub fn backlog(mut self, connections: usize) -> Self {
        self.backlog = connections;
        self
    }

    /// Listeners only: when to keep no state of a handshake until it is complete, so that a flood
    /// of Requests uses no memory (default: from half of the backlog on; RFC 4340 section 8.1.4).
    #[must_use]
    pub fn init_cookies(mut self, when: InitCookies) -> Self {
        self.init_cookies = when;
        self
    }

    /// Listeners only: how long a client may take to return an Init Cookie (default 60 s).
    #[must_use]
    pub fn cookie_lifetime(mut self, lifetime: Duration) -> Self {
        self.cookie_lifetime = lifetime.into();
        self
    }

    /// Listeners only: serve this local address only (default: every address of the endpoint). An
    /// unspecified address stands for all addresses of its IP version. Listeners on different
    /// addresses may have the same DCCP port.
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

    /// Outgoing connections only: data to send with the Request, which arrives a round-trip time
    /// earlier (default: none). It must fit in one packet. A server that cannot keep it reports
    /// that: `ConnectionEvent::PeerDropped`.
    #[must_use]
    pub fn request_data(mut self, data: impl Into<Bytes>) -> Self {
        self.request_data = data.into();
        self
    }

    /// The settings in the protocol's form, for the other crates of this repository; not part of
    /// the interface.
    #[doc(hidden)]
    pub fn protocol_config(&self) -> &ConnectionConfig {
        &self.config
    }

    /// The same, to change them; not part of the interface.
    #[doc(hidden)]
    pub fn protocol_config_mut(&mut self) -> &mut ConnectionConfig {
        Arc::make_mut(&mut self.config)
    }
}
