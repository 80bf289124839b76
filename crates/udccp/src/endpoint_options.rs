//! Settings of the socket below connections.

use std::time::Duration;

use udccp_proto::ccid::CcidRegistry;

use crate::io::RECV_BUFFER_BYTES;
use crate::{Address, Error};

/// Who answers packets to DCCP ports that no program of this host has, over raw IP. Such an answer
/// is a Reset; where nobody gives it, a client waits in vain instead of being refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnswerForHost {
    /// This endpoint, if it listens, no other one does so already, and the kernel has no DCCP of
    /// its own.
    #[default]
    IfAlone,
    /// The same, and also while it does not listen: for a program that is the DCCP of its host. It
    /// then sees every DCCP packet of the host.
    WhileOpen,
    /// Others, or nobody.
    Never,
    /// This endpoint, whatever others do. Ports that other endpoints have claimed are still theirs.
    Always,
}

/// Settings of the socket below, and of the endpoint on it.
#[derive(Clone, Debug)]
pub struct EndpointOptions {
    pub(crate) recv_buffer: usize,
    pub(crate) send_buffer: Option<usize>,
    pub(crate) max_connections: usize,
    pub(crate) max_timewaits: usize,
    pub(crate) ephemeral_ports: (u16, u16),
    pub(crate) stray_resets_per_sec: u32,
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
            stray_resets_per_sec: 100,
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

    /// These settings, over what the address of a peer says, UDP or raw IP.
    ///
    /// # Errors
    /// The address names no port.
    pub(crate) fn for_peer(self, peer: Address) -> Result<Self, Error> {
        peer.named().map(|peer| self.raw_ip(peer.is_raw()))
    }

    /// Kernel receive buffer in bytes (default 4 MiB; the kernel allows `net.core.rmem_max`).
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

    /// Connections held at once (default 1,000,000). Those in TIMEWAIT do not count.
    #[must_use]
    pub fn max_connections(mut self, n: usize) -> Self {
        self.max_connections = n;
        self
    }

    /// Closed connections whose addresses and ports are kept out of use for a while (TIMEWAIT) at
    /// once, of at most 64 bytes each (default 262,144). Beyond, the oldest is freed early and
    /// counted in [`EndpointStats::timewaits_evicted`](crate::EndpointStats).
    #[must_use]
    pub fn max_timewaits(mut self, n: usize) -> Self {
        self.max_timewaits = n;
        self
    }

    /// Hand many packets to the kernel, and take many from it, with one call (UDP GSO and GRO;
    /// default true where the kernel can). A capture on this machine sees such a batch as one huge
    /// datagram; without, it sees what is on the wire.
    #[must_use]
    pub fn offload(mut self, offload: bool) -> Self {
        self.offload = offload;
        self
    }

    /// Send DCCP as IP protocol 33 through a raw socket, without UDP around it (default false).
    /// Needs Linux and the right to open raw sockets (CAP_NET_RAW); one endpoint serves either IPv4
    /// or IPv6. DCCP ports are then shared with all other programs of the host: see the guide on
    /// raw IP.
    #[must_use]
    pub fn raw_ip(mut self, raw_ip: bool) -> Self {
        self.raw_ip = raw_ip;
        self
    }

    /// Raw IP only: who answers packets to ports that nobody has.
    #[must_use]
    pub fn answer_for_host(mut self, answers: AnswerForHost) -> Self {
        self.answer_for_host = answers;
        self
    }

    /// Whether it has answers to give before there is a listener or a connection.
    pub(crate) fn answers_before_it_listens(&self) -> bool {
        let answers = self.answer_for_host;
        self.raw_ip && matches!(answers, AnswerForHost::Always | AnswerForHost::WhileOpen)
    }

    /// Time to live, or hop limit, of packets, 1 to 255 (default: the system's, mostly 64).
    #[must_use]
    pub fn ttl(mut self, ttl: u8) -> Self {
        self.ttl = Some(ttl);
        self
    }

    /// Firewall mark of packets, for rules of routing and filtering (Linux; needs CAP_NET_ADMIN;
    /// default: none).
    #[must_use]
    pub fn mark(mut self, mark: u32) -> Self {
        self.mark = Some(mark);
        self
    }

    /// Share the UDP port with other sockets that do the same (`SO_REUSEPORT`; default false). The
    /// kernel spreads clients among them by their addresses, so that each connection stays with one
    /// socket. Not for raw IP, where sockets share anyway.
    #[must_use]
    pub fn reuse_port(mut self, reuse: bool) -> Self {
        self.reuse_port = reuse;
        self
    }

    /// Send and receive by this network interface alone, for example `eth0` (`SO_BINDTODEVICE`;
    /// Linux; default: by what routing says).
    #[must_use]
    pub fn device(mut self, name: impl Into<String>) -> Self {
        self.device = Some(name.into());
        self
    }

    /// Differentiated services code point of packets, 0 to 63 (RFC 2474; default 0; larger values
    /// are cut to six bits). 46 is expedited forwarding, as for voice. Linux; UDP packets then
    /// leave without segmentation offload.
    #[must_use]
    pub fn dscp(mut self, code_point: u8) -> Self {
        self.dscp = code_point & 63;
        self
    }

    /// Whether the end of the process, or of the runtime, closes what is still open and waits for
    /// it (default true). Without, connections are cut off and their peers hear nothing.
    #[must_use]
    pub fn close_at_exit(mut self, close: bool) -> Self {
        self.close_at_exit = close;
        self
    }

    /// First and last DCCP port picked for outgoing connections (default 49152 to 65535).
    #[must_use]
    pub fn ephemeral_ports(mut self, first: u16, last: u16) -> Self {
        self.ephemeral_ports = (first, last);
        self
    }

    /// Resets sent per second for packets that belong to no connection (default 100).
    #[must_use]
    pub fn stray_resets_per_sec(mut self, n: u32) -> Self {
        self.stray_resets_per_sec = n;
        self
    }

    /// The CCIDs that connections can use, experimental ones included (default: CCIDs 2, 3 and 4).
    #[must_use]
    pub fn ccids(mut self, ccids: CcidRegistry) -> Self {
        self.ccids = ccids;
        self
    }

    /// Send nothing for this long after the start (default: not at all). A program that restarts
    /// with the same `secret` waits for two minutes, so that its numbers do not meet those of
    /// packets still on their way (RFC 4340 section 7.3); drawn secrets make that as good as
    /// impossible.
    #[must_use]
    pub fn quiet_time(mut self, quiet: Duration) -> Self {
        self.quiet_time = quiet;
        self
    }

    /// Key of initial sequence numbers and port choice (default: drawn from the system).
    #[must_use]
    pub fn secret(mut self, secret: [u8; 32]) -> Self {
        self.secret = Some(secret);
        self
    }
}
