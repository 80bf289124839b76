//! ICMP messages about packets that we sent, from the socket's error queue.
//= 6773-3.6-1

use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(target_os = "linux")]
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV6};

#[cfg(target_os = "linux")]
use nix::sys::socket::{ControlMessageOwned, SockaddrIn6};

use super::Io;

/// More than any DCCP header without options, so ports and sequence numbers are included.
#[cfg(target_os = "linux")]
const QUOTE_BYTES: usize = 128;

/// A report of the network about a packet that we sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// The packet's destination.
    pub(crate) remote: SocketAddr,
    /// Our address to which the message was sent, and from which the packet was. `None` if this
    /// host reports the error itself.
    pub(crate) local: Option<IpAddr>,
    /// The beginning of its DCCP packet, as quoted by the message.
    pub(crate) quoted: Vec<u8>,
    /// The reported error.
    pub(crate) network_report: NetworkReport,
}

/// Why the system did not send a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// No memory, or the queue of the device is full: a loss like any other.
    NoRoom,
    /// The error is about an earlier packet.
    EarlierPacket,
    /// The packet is larger than the interface allows.
    TooBig,
    /// Anything else.
    Unreachable,
}

impl Cause {
    pub(crate) fn of(error: &io::Error) -> Self {
        #[cfg(unix)]
        use nix::libc::{ECONNREFUSED, EMSGSIZE, ENOBUFS, ENOMEM};
        #[cfg(windows)]
        use windows_errors::{ECONNREFUSED, EMSGSIZE, ENOBUFS, ENOMEM};
        match error.raw_os_error() {
            Some(ENOBUFS | ENOMEM) => Self::NoRoom,
            Some(ECONNREFUSED) => Self::EarlierPacket,
            Some(EMSGSIZE) => Self::TooBig,
            _ => Self::Unreachable,
        }
    }
}

/// Errors of Winsock, under the names of their equivalents elsewhere.
#[cfg(windows)]
mod windows_errors {
    /// `WSAECONNRESET`: an earlier datagram reached a closed port.
    pub(super) const ECONNREFUSED: i32 = 10054;
    /// `WSAEMSGSIZE`.
    pub(super) const EMSGSIZE: i32 = 10040;
    /// `WSAENOBUFS`.
    pub(super) const ENOBUFS: i32 = 10055;
    /// `WSA_NOT_ENOUGH_MEMORY`.
    pub(super) const ENOMEM: i32 = 8;
}

/// What the network reports about a packet that did not arrive.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has a use for it"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NetworkReport {
    /// It was too big; the path carries IP packets of this many bytes.
    TooBig(u16),
    /// It was too big for our own interface, which carries IP packets of this many bytes.
    TooBigHere(u16),
    /// The destination host has nothing on this port, or does not support the protocol.
    PortClosed,
    /// It could not be delivered for another reason, or another host reports it.
    Unreachable,
}

impl Io {
    /// The next queued report.
    #[cfg(target_os = "linux")]
    pub(crate) fn take_report(&self) -> Option<Report> {
        use std::io::IoSliceMut;
        use std::os::fd::AsRawFd;

        use nix::sys::socket::{MsgFlags, SockaddrStorage, recvmsg};

        // A queue full of other entries must not delay the driver.
        for _ in 0..64 {
            let mut quoted = vec![0; QUOTE_BYTES];
            let mut space = vec![0; 512];
            let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
            let (bytes, remote, local, error) = {
                let mut slices = [IoSliceMut::new(&mut quoted)];
                let fd = self.socket.as_raw_fd();
                let entry =
                    recvmsg::<SockaddrStorage>(fd, &mut slices, Some(&mut space), flags).ok()?;
                let error = entry.cmsgs().ok().and_then(|mut all| {
                    all.find_map(|c| match c {
                        ControlMessageOwned::Ipv4RecvErr(e, by) => Some((
                            e,
                            by.map(|a| Ipv4Addr::from(a.sin_addr.s_addr.to_ne_bytes()).into()),
                        )),
                        ControlMessageOwned::Ipv6RecvErr(e, by) => {
                            Some((e, by.map(|a| Ipv6Addr::from(a.sin6_addr.s6_addr).into())))
                        }
                        _ => None,
                    })
                });
                let local = entry.cmsgs().ok().and_then(|mut all| all.find_map(|c| arrived_at(&c)));
                let local = local.or_else(|| self.one_address());
                (entry.bytes, entry.address.as_ref().and_then(to_std), local, error)
            };
            quoted.truncate(bytes);
            let (Some(remote), Some((error, by))) = (remote, error) else { continue };
            let remote = super::canonical(remote);
            let by_host = by.is_none_or(|by: IpAddr| by.to_canonical() == remote.ip());
            if let Some(network_report) = verdict(&error, by_host) {
                let local = local.filter(|_| error.ee_origin != nix::libc::SO_EE_ORIGIN_LOCAL);
                return Some(Report { remote, local, quoted, network_report });
            }
        }
        None
    }

    /// The address that all packets come to, unless the socket is for all addresses of the host.
    #[cfg(target_os = "linux")]
    fn one_address(&self) -> Option<IpAddr> {
        Some(self.local.ip().to_canonical()).filter(|ip| !ip.is_unspecified())
    }

    /// Other systems report nothing here, so a handshake ends by a timeout.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn take_report(&self) -> Option<Report> {
        None
    }
}

#[cfg(target_os = "linux")]
fn to_std(addr: &nix::sys::socket::SockaddrStorage) -> Option<SocketAddr> {
    let v4 = addr.as_sockaddr_in().map(|a| SocketAddr::from((a.ip(), a.port())));
    // With the scope, because a link-local address is a different one on another link.
    let in_scope = |a: &SockaddrIn6| SocketAddrV6::new(a.ip(), a.port(), 0, a.scope_id());
    v4.or_else(|| addr.as_sockaddr_in6().map(|a| in_scope(a).into()))
}

/// The address to which a message was sent, if this control message contains it.
#[cfg(target_os = "linux")]
fn arrived_at(message: &ControlMessageOwned) -> Option<IpAddr> {
    match message {
        ControlMessageOwned::Ipv4PacketInfo(info) => {
            Some(Ipv4Addr::from(info.ipi_addr.s_addr.to_ne_bytes()).into())
        }
        ControlMessageOwned::Ipv6PacketInfo(info) => {
            Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).to_canonical())
        }
        _ => None,
    }
}

/// The meaning of an entry of the error queue; `None` if it does not concern us. `by_host`: it
/// comes from the destination host, not from a router.
#[cfg(target_os = "linux")]
fn verdict(e: &nix::libc::sock_extended_err, by_host: bool) -> Option<NetworkReport> {
    const LOCAL: u8 = nix::libc::SO_EE_ORIGIN_LOCAL;
    const ICMP: u8 = nix::libc::SO_EE_ORIGIN_ICMP;
    const ICMP6: u8 = nix::libc::SO_EE_ORIGIN_ICMP6;
    let bytes = || u16::try_from(e.ee_info).ok();
    let mtu = || bytes().map(NetworkReport::TooBig);
    match (e.ee_origin, e.ee_type, e.ee_code) {
        // RFC 792 destination unreachable, code 4: fragmentation needed (RFC 1191).
        (ICMP, 3, 4) => mtu(),
        // RFC 4443 packet too big.
        (ICMP6, 2, _) => mtu(),
        (LOCAL, ..) if e.ee_errno == nix::libc::EMSGSIZE as u32 => {
            bytes().map(NetworkReport::TooBigHere)
        }
        // RFC 792 and RFC 4443: protocol or port unreachable, unrecognized Next Header.
        (ICMP, 3, 2 | 3) | (ICMP6, 1, 4) | (ICMP6, 4, 1) if by_host => {
            Some(NetworkReport::PortClosed)
        }
        // Not reachable, or not within the packet's hop limit.
        (ICMP, 3, _) | (ICMP6, 1, _) | (ICMP, 11, 0) | (ICMP6, 3, 0) | (ICMP6, 4, 1) => {
            Some(NetworkReport::Unreachable)
        }
        _ => None,
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use udccp_base::{Datagram, Ecn, Payload};

    use super::*;
    use crate::EndpointOptions;
    use crate::io::{Flushed, Receiver, Transmitter};

    #[test]
    fn a_closed_port_is_reported_with_address_and_quote() {
        let io = Io::bind("127.0.0.1:0".parse().unwrap(), &EndpointOptions::default()).unwrap();
        // A port that was just released is closed.
        let closed = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let mut tx = Transmitter::new(|_| false, false);
        tx.push(
            &Datagram {
                src: io.local_addr(),
                dst: closed,
                protocol: Datagram::DCCP,
                ecn: Ecn::NotEct,
                header: (1..=12).collect::<Vec<u8>>().into(),
                payload: Payload::EMPTY,
            },
            64,
        );
        assert!(matches!(tx.flush(&io), Flushed::Done));
        let mut rx = Receiver::new(&io);
        let failed = (0..100).any(|_| {
            std::thread::park_timeout(Duration::from_millis(1));
            let e = rx.read(&io).unwrap_err();
            e.kind() != io::ErrorKind::WouldBlock
        });
        assert!(failed, "the socket says that something is queued");
        let report = io.take_report().expect("the kernel queued the ICMP message");
        assert_eq!((report.remote, report.local), (closed, Some(io.local_addr().ip())));
        assert_eq!(report.quoted, (1..=12).collect::<Vec<u8>>());
        assert_eq!(report.network_report, NetworkReport::PortClosed);
        assert_eq!(io.take_report(), None);
    }
}
