//! Settings of endpoints and their sockets.

use std::time::Duration;

use udccp_proto::ccid::CcidRegistry;

use crate::io::RECV_BUFFER_BYTES;
use crate::{Address, Error};

/// Raw IP only: who answers packets to DCCP ports that no program of this host serves. The answer
/// is a Reset; without it, a client is not refused but waits until it times out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerForHost {
    /// This endpoint, if it listens, no other endpoint answers already, and the kernel has no DCCP
    /// of its own.
    #[default]
    IfAlone,
    /// As `IfAlone`, but also while this endpoint does not listen, for a program that provides DCCP
    /// for its host. It receives every DCCP packet of the host.
    WhileOpen,
    /// Not this endpoint.
    Never,
    /// This endpoint, even if others answer too. Ports that other endpoints have claimed remain
    /// theirs.
    Always,
}

/// Settings of an endpoint and of its socket.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    pub(crate) recv_buffer: usize,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) max_connections: usize,
    pub(crate) max_timewaits: usize,
    pub(crate) ephemeral_ports: (u16, u16),
    pub(crate) out_of_the_blue_resets_per_sec: u32,
    pub(crate) secret: Option<[u8; 32]>,
    pub(crate) quiet_time: Duration,
    pub(crate) ccids: CcidRegistry,
    pub(crate) offload: bool,
    pub(crate) raw_ip: bool,
    pub(crate) answer_for_host: AnswerForHost,
    pub(crate) ttl: Option<u8>,
    pub(crate) mark: Option<u32>,
    pub(crate) close_at_exit: bool,
    pub(crate) reuse_port: bool,
    pub(crate) device: Option<String>,
    pub(crate) dscp: u8,
}

impl Default for EndpointOptions {
    fn default() -> Self {
        Self {
            recv_buffer: RECV_BUFFER_BYTES,
            send_buffer: None,
            max_connections: 1_000_000,
            max_timewaits: 1 << 18,
            ephemeral_ports: (49_152, 65_535),
            out_of_the_blue_resets_per_sec: 100,
            secret: None,
            quiet_time: Duration::ZERO,
            ccids: CcidRegistry::default(),
            offload: true,
            raw_ip: false,
            answer_for_host: AnswerForHost::default(),
            ttl: None,
            mark: None,
            close_at_exit: true,
            reuse_port: false,
            device: None,
            dscp: 0,
        }
    }
}

impl EndpointOptions {
    /// The default settings.
    pub fn new() -> Self {
        Self::default()
    }

    /// These settings, with UDP or raw IP as in the address of a peer.
    ///
    /// # Errors
    /// The port of the address is 0.
    pub(crate) fn for_peer(self, peer: Address) -> Result<Self, Error> {
        peer.named().map(|peer| self.raw_ip(peer.is_raw()))
    }

    /// Kernel receive buffer in bytes (default 4 MiB; Linux grants at most `net.core.rmem_max`).
    #[must_use]
    pub fn recv_buffer(mut self, bytes: usize) -> Self {
        self.recv_buffer = bytes;
        self
    }

    /// Kernel send buffer in bytes (default: the system's).
    #[must_use]
    pub fn send_buffer(mut self, bytes: usize) -> Self {
        self.send_buffer = Some(bytes);
        self
    }

    /// Most connections at a time (default 1,000,000). Those in TIMEWAIT do not count.
    #[must_use]
    pub fn max_connections(mut self, n: usize) -> Self {
        self.max_connections = n;
        self
    }

    /// Most closed connections in TIMEWAIT, which keeps their addresses and ports out of use for a
    /// while (default 262,144, of at most 64 bytes each). If there are more, the oldest ends early
    /// and is counted in [`EndpointStats::timewaits_evicted`](crate::EndpointStats).
    #[must_use]
    pub fn max_timewaits(mut self, n: usize) -> Self {
        self.max_timewaits = n;
        self
    }

    /// Pass many packets to and from the kernel in one call (UDP GSO and GRO; default true, if the
    /// kernel can). A capture on this machine then shows such a batch as one large datagram; with
    /// `false` it shows the packets of the wire.
    #[must_use]
    pub fn offload(mut self, offload: bool) -> Self {
        self.offload = offload;
        self
    }

    /// Send DCCP as IP protocol 33 through a raw socket, without UDP around it (default false).
    /// Needs Linux and permission to open raw sockets (CAP_NET_RAW). An endpoint serves either IPv4
    /// or IPv6. All programs of the host share its DCCP ports: see the guide on raw IP.
    #[must_use]
    pub fn raw_ip(mut self, raw_ip: bool) -> Self {
        self.raw_ip = raw_ip;
        self
    }

    /// Raw IP only: who answers packets to ports that no program serves (default
    /// [`AnswerForHost::IfAlone`]).
    #[must_use]
    pub fn answer_for_host(mut self, answers: AnswerForHost) -> Self {
        self.answer_for_host = answers;
        self
    }

    /// Whether the endpoint has to answer before there is a listener or a connection.
    pub(crate) fn answers_before_it_listens(&self) -> bool {
        let answers = self.answer_for_host;
        self.raw_ip && matches!(answers, AnswerForHost::Always | AnswerForHost::WhileOpen)
    }

    /// Time to live (IPv4) or hop limit (IPv6) of packets, 1 to 255 (default: the system's, usually
    /// 64).
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Firewall mark of packets, for routing and filter rules (`SO_MARK`; Linux; needs
    /// CAP_NET_ADMIN; default: none).
    #[must_use]
    pub fn mark(mut self, mark: u32) -> Self {
        self.mark = Some(mark);
        self
    }

    /// Share the UDP port with other sockets that set this too (`SO_REUSEPORT`; default false). The
    /// kernel distributes clients among them by address, so that each connection stays with one
    /// socket. Not needed over raw IP, where sockets share it anyway.
    #[must_use]
    pub fn reuse_port(mut self, reuse: bool) -> Self {
        self.reuse_port = reuse;
        self
    }

    /// Send and receive only on this network interface, for example `eth0` (`SO_BINDTODEVICE`;
    /// Linux; default: the routes decide).
    #[must_use]
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Differentiated services code point of packets, 0 to 63 (RFC 2474; default 0; only the lowest
    /// six bits count). 46 is expedited forwarding, as for voice. Linux only. UDP packets are then
    /// sent without segmentation offload.
    #[must_use]
    pub fn dscp(mut self, code_point: u8) -> Self {
        self.dscp = code_point & 63;
        self
    }

    /// Whether the end of the process, or of the runtime, closes open connections and waits for it
    /// (default true). With `false`, they end without any packet to their peers.
    #[must_use]
    pub fn close_at_exit(mut self, close: bool) -> Self {
        self.close_at_exit = close;
        self
    }

    /// First and last DCCP port for outgoing connections without a port of their own (default 49152
    /// to 65535, RFC 6335).
    #[must_use]
    pub fn ephemeral_ports(mut self, first: u16, last: u16) -> Self {
        self.ephemeral_ports = (first, last);
        self
    }

    /// Most Resets per second in answer to packets that belong to no connection (default 100).
    #[must_use]
    pub fn out_of_the_blue_resets_per_sec(mut self, n: u32) -> Self {
        self.out_of_the_blue_resets_per_sec = n;
        self
    }

    /// The CCIDs that connections can use, which may include experimental ones (default: CCIDs 2, 3
    /// and 4).
    #[must_use]
    pub fn ccids(mut self, ccids: CcidRegistry) -> Self {
        self.ccids = ccids;
        self
    }

    /// Send nothing for this long after the start (default: zero). A program that restarts with the
    /// same `secret` waits for two minutes, so that its sequence numbers do not meet those of
    /// packets still in the network (RFC 4340 section 7.3). With a random secret there is no need
    /// to wait.
    #[must_use]
    pub fn quiet_time(mut self, quiet: Duration) -> Self {
        self.quiet_time = quiet;
        self
    }

    /// Key from which initial sequence numbers and ports are derived (default: random, from the
    /// system).
    #[must_use]
    pub fn secret(mut self, secret: [u8; 32]) -> Self {
        self.secret = Some(secret);
        self
    }
}
