//! The UDP or raw IP socket: batched reads and writes, ECN in both directions, ICMP reports.
//! Nothing here depends on DCCP except its ports over raw IP.

mod batch;
mod claims;
mod errors;
mod filter;
mod gathering;
mod poll;
mod port_names;
mod raw;
mod receive;
mod routes;
mod socket_options;
mod transmit;

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use quinn_udp::{UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, Socket, Type};
use udccp_base::Ecn;

use crate::{EndpointOptions, Error, process};

pub(crate) use claims::Claims;
pub(crate) use errors::{Cause, NetworkReport, Report};
pub(crate) use poll::wait;
pub use port_names::kernel_has_dccp;
pub(crate) use receive::{KERNEL_OVERHEAD_BYTES, Receiver};
use routes::Routes;
use socket_options::{
    allow_fragments, bind_device, set_mark, set_recv_buffer, set_send_buffer, share_port,
    stop_merging, stop_packet_info, stop_timestamps,
};
pub(crate) use transmit::{Failure, Flushed, Transmitter};

/// Default receive buffer requested from the kernel. A burst waits there until the driver runs. The
/// kernel grants at most `net.core.rmem_max`.
pub(crate) const RECV_BUFFER_BYTES: usize = 4 << 20;

/// The carrier of DCCP packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    /// UDP (RFC 6773): the kernel distinguishes endpoints by UDP ports.
    Udp,
    /// IP, as protocol 33: every endpoint of the host sees every packet.
    RawIp,
}

/// One bound socket.
#[derive(Debug)]
pub(crate) struct Io {
    socket: Socket,
    /// Reads with control messages. Made for UDP, but also works for raw IP.
    state: UdpSocketState,
    /// Writes UDP with control messages. It permanently stops using features that it believes the
    /// system refuses: segmentation, and the ECN bits over IPv4.
    sending: RwLock<UdpSocketState>,
    carrier: Carrier,
    /// The port is 0 over raw IP.
    local: SocketAddr,
    recv_buffer_bytes: usize,
    /// Whether to pass many datagrams per call, if the kernel can.
    offload: bool,
    /// Firewall mark of sent packets.
    mark: Option<u32>,
    /// Differentiated services code point of sent packets.
    dscp: u8,
    /// The only network interface to use.
    device: Option<String>,
    routes: Routes,
    /// Whether writes fail as with a full send buffer.
    #[cfg(test)]
    pub(crate) is_stuck: std::sync::atomic::AtomicBool,
}

impl Io {
    /// Opens the socket that the options describe.
    pub(crate) fn open(addr: SocketAddr, options: &EndpointOptions) -> io::Result<Self> {
        // An IPv6 socket for a single IPv4 address would have no advantage.
        let addr = canonical(addr);
        if options.raw_ip { Self::raw(addr, options) } else { Self::bind(addr, options) }
    }

    /// A UDP socket; an IPv6 wildcard address serves IPv4 too.
    pub(crate) fn bind(addr: SocketAddr, options: &EndpointOptions) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(addr), Type::DGRAM, Some(Protocol::UDP))?;
        if options.reuse_port {
            share_port(&socket, true)?;
        }
        if addr.is_ipv6() {
            socket.set_only_v6(!addr.ip().is_unspecified())?;
        }
        bind_udp(&socket, addr, options.reuse_port)?;
        Self::set_up(socket, Carrier::Udp, options)
    }

    /// Lets another socket of this process have the port and all packets that arrive there. From
    /// now on nothing is sent or read here. Returns whether the kernel accepted this.
    pub(crate) fn release_port(&self) -> bool {
        let mut elsewhere = self.local;
        if elsewhere.ip().is_unspecified() {
            elsewhere.set_ip(match elsewhere.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        // A connected socket receives only from that address. It is its own, so nothing arrives.
        let is_deaf = self.socket.connect(&elsewhere.into()).is_ok();
        is_deaf && share_port(&self.socket, true).is_ok()
    }

    /// Uses a UDP socket that the caller has bound.
    pub(crate) fn adopt(socket: UdpSocket, options: &EndpointOptions) -> io::Result<Self> {
        let refuse = |why| Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        if socket.local_addr()?.port() == 0 {
            return refuse("the socket is not bound to a port");
        }
        if socket.peer_addr().is_ok() {
            return refuse("the socket is connected, and could serve one peer only");
        }
        Self::set_up(socket.into(), Carrier::Udp, options)
    }

    /// A raw socket of protocol 33, for the family of the address. The port is ignored.
    fn raw(addr: SocketAddr, options: &EndpointOptions) -> io::Result<Self> {
        Self::set_up(raw::open(addr)?, Carrier::RawIp, options)
    }

    fn set_up(socket: Socket, carrier: Carrier, options: &EndpointOptions) -> io::Result<Self> {
        set_recv_buffer(&socket, options.recv_buffer);
        bind_device(&socket, options.device.as_deref())?;
        if let Some(bytes) = options.send_buffer {
            set_send_buffer(&socket, bytes);
        }
        let recv_buffer_bytes = socket.recv_buffer_size()?;
        // Also sets Don't Fragment.
        //= 4340-14.2-1
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let sending = RwLock::new(UdpSocketState::new(UdpSockRef::from(&socket))?);
        stop_timestamps(&socket);
        let mut local = bound_to(&socket)?;
        if carrier == Carrier::Udp && !local.ip().is_unspecified() {
            stop_packet_info(&socket);
        }
        match carrier {
            #[cfg(unix)]
            Carrier::Udp => state.enable_transport_errors(UdpSockRef::from(&socket))?,
            #[cfg(not(unix))]
            Carrier::Udp => {}
            Carrier::RawIp => {
                raw::enable_icmp_errors(&socket, local)?;
                // The system returns the protocol number there.
                local.set_port(0);
            }
        }
        if !options.offload && carrier == Carrier::Udp {
            stop_merging(&socket);
        }
        if cfg!(not(target_os = "linux")) && options.dscp != 0 {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let (offload, mark, dscp) = (options.offload, options.mark, options.dscp);
        let device = options.device.clone();
        let io = Self {
            socket,
            state,
            sending,
            carrier,
            local,
            recv_buffer_bytes,
            offload,
            mark,
            dscp,
            device,
            routes: Routes::default(),
            #[cfg(test)]
            is_stuck: false.into(),
        };
        io.set_ttl(options.ttl)?;
        set_mark(&io.socket, mark)?;
        Ok(io)
    }

    /// Sets the time to live, or hop limit, of sent packets.
    fn set_ttl(&self, ttl: Option<u8>) -> io::Result<()> {
        let Some(ttl) = ttl.map(u32::from) else { return Ok(()) };
        if self.local.is_ipv4() {
            return self.socket.set_ttl_v4(ttl);
        }
        self.socket.set_unicast_hops_v6(ttl)?;
        if self.carrier == Carrier::Udp && self.local.ip().is_unspecified() {
            // The socket reaches IPv4 as well.
            self.socket.set_ttl_v4(ttl)?;
        }
        Ok(())
    }

    /// Tells the kernel which packets to copy to this socket (raw IP).
    pub(crate) fn set_packet_filter(&self, claims: &Claims) -> Result<(), Error> {
        let attached = claims.with_wanted(|wanted| filter::attach(&self.socket, wanted));
        attached.map_err(|source| Error::Io { what: "cannot filter DCCP packets", source })
    }

    /// Whether DCCP is sent without UDP.
    pub(crate) fn is_raw(&self) -> bool {
        self.carrier == Carrier::RawIp
    }

    /// The bound address.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// The kernel's receive buffer in bytes, which includes its own overhead per packet.
    pub(crate) fn recv_buffer_bytes(&self) -> usize {
        self.recv_buffer_bytes
    }

    /// The socket to wait on.
    pub(crate) fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Whether the system may fragment packets.
    pub(crate) fn may_fragment(&self) -> bool {
        // Over IPv6, raw sockets do not have the IPv4 setting, which is then reported as missing.
        self.state.may_fragment() && !self.is_raw()
    }

    /// Writes packets that routers may fragment. This is a setting of the whole socket, so it is
    /// changed before and restored after.
    fn while_fragmenting<R>(&self, write: impl FnOnce() -> R) -> R {
        //= 4340-14.2-6
        allow_fragments(&self.socket, true);
        let result = write();
        allow_fragments(&self.socket, false);
        result
    }

    /// Datagrams that one read can merge.
    pub(crate) fn gro_segments(&self) -> usize {
        if self.offload && !self.is_raw() { self.state.gro_segments() } else { 1 }
    }

    fn sending(&self) -> RwLockReadGuard<'_, UdpSocketState> {
        self.sending.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// A single datagram was refused too, without segmentation or ECN. So those were not the reason
    /// for earlier refusals: the local address is gone, or a route forbids sending. Both stay in
    /// use.
    pub(crate) fn forget_refusals(&self) {
        let domain = Domain::for_address(self.local);
        // On a new socket, so that the settings of this one stay as they are.
        let aside = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
        let fresh = aside.and_then(|socket| UdpSocketState::new(UdpSockRef::from(&socket)));
        if let Ok(fresh) = fresh {
            *self.sending.write().unwrap_or_else(PoisonError::into_inner) = fresh;
        }
    }

    /// Most datagrams in one write.
    pub(crate) fn max_gso_segments(&self) -> usize {
        match (self.offload, self.carrier) {
            (false, _) => 1,
            (true, Carrier::Udp) => self.sending().max_gso_segments(),
            (true, Carrier::RawIp) => raw::MAX_MESSAGES,
        }
    }

    /// The local address of a packet that arrived for `ip`, or for the one address of the socket.
    pub(crate) fn arrived_at(&self, ip: Option<IpAddr>) -> SocketAddr {
        let ip = ip.unwrap_or(self.local.ip());
        SocketAddr::new(ip.to_canonical(), self.local.port())
    }

    /// Sends a datagram that is not DCCP. It is lost if the socket has no room.
    pub(crate) fn send_non_dccp(&self, payload: &[u8], to: SocketAddr) -> io::Result<()> {
        match self.socket.send_to(payload, &self.in_family(to).into()) {
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => Err(e),
            _ => Ok(()),
        }
    }

    /// `addr` in the family of the socket (an IPv6 socket reaches IPv4 by mapped addresses).
    fn in_family(&self, addr: SocketAddr) -> SocketAddr {
        match (self.local, addr.ip()) {
            (SocketAddr::V6(_), IpAddr::V4(v4)) => {
                SocketAddr::new(v4.to_ipv6_mapped().into(), addr.port())
            }
            _ => addr,
        }
    }
}

/// Sends a datagram to itself at `addr`, and returns whether its ECN mark arrived.
///
/// # Errors
/// The system's error for a UDP socket on this address.
pub fn probe_ecn(addr: SocketAddr) -> io::Result<bool> {
    let io = Io::bind(addr, &EndpointOptions::default())?;
    let transmit = quinn_udp::Transmit {
        destination: io.local,
        ecn: Some(quinn_udp::EcnCodepoint::Ect0),
        contents: b"mark",
        segment_size: None,
        src_ip: None,
    };
    io.sending().try_send(UdpSockRef::from(&io.socket), &transmit)?;
    // The kernel delivers to ourselves within the call, or not at all.
    let mut rx = Receiver::new(&io);
    let count = rx.read(&io)?;
    let mut seen = false;
    rx.deliver(&io, count, |d| seen |= d.ecn == Ecn::Ect0);
    Ok(seen)
}

/// How often to try to bind a port in use. Its last user may be about to close it.
const TRIES: usize = 4;

/// Binds a UDP socket. The port of a dropped socket becomes free a moment later, when its driver
/// has ended. Until then, that socket gives way.
fn bind_udp(socket: &Socket, addr: SocketAddr, shares: bool) -> io::Result<()> {
    let is_taken = |e: &io::Error| e.kind() == io::ErrorKind::AddrInUse && addr.port() != 0;
    let mut bound = socket.bind(&addr.into());
    for _ in 0..TRIES {
        if !bound.as_ref().is_err_and(is_taken) {
            break;
        }
        // Only for this moment, so that no other process can share the port.
        let given = !shares && process::release_port(addr.port());
        if given {
            share_port(socket, true)?;
        }
        bound = socket.bind(&addr.into());
        if given {
            share_port(socket, false)?;
        }
    }
    bound
}

fn bound_to(socket: &Socket) -> io::Result<SocketAddr> {
    let local = socket.local_addr()?.as_socket();
    local.ok_or_else(|| io::Error::other("the socket is bound to no IP address"))
}

/// Converts an IPv4-mapped IPv6 address to IPv4.
pub(crate) fn canonical(addr: SocketAddr) -> SocketAddr {
    match addr.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, addr.port()),
        IpAddr::V6(_) => addr,
    }
}

fn ecn_from(codepoint: Option<quinn_udp::EcnCodepoint>) -> Ecn {
    Ecn::from_bits(codepoint.map_or(0, |c| c as u8))
}

fn ecn_into(ecn: Ecn) -> Option<quinn_udp::EcnCodepoint> {
    quinn_udp::EcnCodepoint::from_bits(ecn as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_seen_on_loopback() {
        assert!(probe_ecn("127.0.0.1:0".parse().unwrap()).unwrap());
    }

    /// A regression: the system took the largest number for a negative one.
    #[test]
    fn buffers_without_a_limit_are_at_least_the_usual_ones() {
        let bytes = |options: &EndpointOptions| {
            let io = Io::bind("127.0.0.1:0".parse().unwrap(), options).unwrap();
            (io.recv_buffer_bytes(), io.socket.send_buffer_size().unwrap())
        };
        let usual = bytes(&EndpointOptions::default());
        for limit in [usize::MAX, 1 << 32] {
            let most = bytes(&EndpointOptions::default().recv_buffer(limit).send_buffer(limit));
            assert!(most.0 >= usual.0 && most.1 >= usual.1, "{most:?} {usual:?}");
        }
    }

    //= 4340-14.2-1 test
    #[test]
    #[cfg(target_os = "linux")]
    fn packets_are_never_fragmented() {
        use rustix::net::sockopt::{
            Ipv4PathMtuDiscovery, Ipv6PathMtuDiscovery, ip_mtu_discover, ipv6_mtu_discover,
        };
        let bind = |at: &str| Io::bind(at.parse().unwrap(), &EndpointOptions::default()).unwrap();
        let v4 = bind("127.0.0.1:0");
        assert_eq!(ip_mtu_discover(&v4.socket), Ok(Ipv4PathMtuDiscovery::PROBE));
        let v6 = bind("[::1]:0");
        assert_eq!(ipv6_mtu_discover(&v6.socket), Ok(Ipv6PathMtuDiscovery::PROBE));
    }

    //= 4340-14.2-4 test
    //= 4340-14.2-5 test
    //= 4340-14.2-6 test
    #[test]
    #[cfg(target_os = "linux")]
    fn fragmentation_is_allowed_for_one_packet_only() {
        use rustix::net::sockopt::{Ipv4PathMtuDiscovery, ip_mtu_discover};
        let io = Io::bind("127.0.0.1:0".parse().unwrap(), &EndpointOptions::default()).unwrap();
        let inside = io.while_fragmenting(|| ip_mtu_discover(&io.socket));
        assert_eq!(inside, Ok(Ipv4PathMtuDiscovery::DONT));
        assert_eq!(ip_mtu_discover(&io.socket), Ok(Ipv4PathMtuDiscovery::PROBE));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_socket_for_both_families_limits_the_hops_of_both() {
        let options = EndpointOptions::default().ttl(7);
        let io = Io::bind("[::]:0".parse().unwrap(), &options).unwrap();
        let hops = (io.socket.unicast_hops_v6().unwrap(), io.socket.ttl_v4().unwrap());
        assert_eq!(hops, (7, 7));
    }

    #[test]
    fn a_port_in_use_is_refused_by_the_system() {
        let io = Io::bind("127.0.0.1:0".parse().unwrap(), &EndpointOptions::default()).unwrap();
        let again = Io::bind(io.local_addr(), &EndpointOptions::default());
        assert_eq!(again.unwrap_err().kind(), io::ErrorKind::AddrInUse);
    }
}
