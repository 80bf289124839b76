//! DCCP as IP protocol 33, through a raw socket.
//!
//! The kernel writes the IP header of sent packets and, over IPv4, keeps that of received packets.
//! It neither computes nor checks the DCCP checksum, which the endpoint does.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use quinn_udp::RecvMeta;
use socket2::{Domain, Protocol, Socket, Type};
use udccp_base::{Datagram, Ecn, Payload};
use udccp_packet::ip::IpPacket;

/// Most packets in one write.
pub(super) const MAX_MESSAGES: usize = 64;

/// Opens the socket, for the family of `addr`.
pub(super) fn open(addr: SocketAddr) -> io::Result<Socket> {
    if !cfg!(target_os = "linux") {
        let says = "DCCP over raw IP is made for Linux";
        return Err(io::Error::new(io::ErrorKind::Unsupported, says));
    }
    let protocol = Protocol::from(i32::from(Datagram::DCCP));
    let socket = Socket::new(Domain::for_address(addr), Type::RAW, Some(protocol))?;
    // Until a port is served or used, no packet is for this socket.
    super::filter::attach(&socket, super::filter::Wanted::Nothing)?;
    let mut local = addr;
    local.set_port(0);
    socket.bind(&local.into())?;
    Ok(socket)
}

/// Requests ICMP messages. Over IPv6, raw sockets lack the IPv4 settings that UDP sockets have.
pub(super) fn enable_icmp_errors(socket: &Socket, addr: SocketAddr) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::socket::{setsockopt, sockopt};
        if addr.is_ipv4() {
            setsockopt(socket, sockopt::Ipv4RecvErr, &true)?;
        } else {
            setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
        }
    }
    let _ = (socket, addr);
    Ok(())
}

/// The packet in one buffer, without its IP header; `None` if it is not for a single host.
pub(super) fn unwrap(meta: &RecvMeta, bytes: &Bytes) -> Option<Datagram> {
    let (src, dst, ecn, header) = if meta.addr.is_ipv4() {
        ipv4(bytes)?
    } else {
        let mut src = meta.addr;
        src.set_port(0);
        let ecn = Ecn::from_bits(meta.ecn.map_or(0, |ecn| ecn as u8));
        (src, meta.dst_ip?, ecn, bytes.clone())
    };
    if dst.is_multicast() || dst == IpAddr::V4(Ipv4Addr::BROADCAST) {
        return None;
    }
    Some(Datagram {
        src,
        dst: (dst, 0).into(),
        protocol: Datagram::DCCP,
        ecn,
        header: header.into(),
        payload: Payload::EMPTY,
    })
}

/// Parses an IPv4 packet as the kernel passes it to raw sockets: complete, checked, reassembled.
fn ipv4(packet: &Bytes) -> Option<(SocketAddr, IpAddr, Ecn, Bytes)> {
    let ip = IpPacket::parse(packet).ok().filter(|ip| ip.pseudo.src.is_ipv4() && ip.is_whole())?;
    let src = SocketAddr::new(ip.pseudo.src, 0);
    let inner = packet.slice(ip.header_len..ip.len);
    Some((src, ip.pseudo.dst, Ecn::from_bits(ip.ecn), inner))
}

/// Packets that are sent together, all on the same path.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux has a use for it"))]
#[derive(Clone, Copy, Debug)]
pub(super) struct Train<'a> {
    pub(super) src: IpAddr,
    pub(super) dst: SocketAddr,
    /// DSCP and ECN.
    pub(super) tos: u8,
    /// The packets, concatenated.
    pub(super) bytes: &'a [u8],
    /// The end of each packet.
    pub(super) ends: &'a [usize],
}

/// Writes packets from `from` on. Returns how many the system accepted, at least one.
#[cfg(target_os = "linux")]
pub(super) fn send(socket: &Socket, train: Train<'_>, from: usize) -> io::Result<usize> {
    linux::send(socket, train, from)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn send(_: &Socket, _: Train<'_>, _: usize) -> io::Result<usize> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
mod linux {
    use std::cell::RefCell;
    use std::io::{self, IoSlice};
    use std::net::{IpAddr, SocketAddr};
    use std::os::fd::AsRawFd;

    use nix::libc;
    use nix::sys::socket::{
        ControlMessage, MsgFlags, MultiHeaders, SockaddrIn, SockaddrIn6, SockaddrLike, sendmmsg,
    };
    use socket2::Socket;

    use super::{MAX_MESSAGES, Train};

    /// The structures that the kernel needs for the packets of one call. They contain pointers into
    /// themselves, so each thread has its own, and no call allocates.
    struct Headers {
        v4: MultiHeaders<SockaddrIn>,
        v6: MultiHeaders<SockaddrIn6>,
    }

    thread_local! {
        static HEADERS: RefCell<Headers> = RefCell::new(Headers {
            v4: headers(nix::cmsg_space!(libc::in_pktinfo, u8)),
            v6: headers(nix::cmsg_space!(libc::in6_pktinfo, i32)),
        });
    }

    fn headers<S: SockaddrLike + Copy>(control: Vec<u8>) -> MultiHeaders<S> {
        MultiHeaders::preallocate(MAX_MESSAGES, Some(control))
    }

    pub(super) fn send(socket: &Socket, train: Train<'_>, from: usize) -> io::Result<usize> {
        HEADERS.with_borrow_mut(|headers| match (train.src, train.dst) {
            (IpAddr::V4(src), SocketAddr::V4(dst)) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from(src).to_be() },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                let tos = train.tos;
                let control =
                    [ControlMessage::Ipv4PacketInfo(&info), ControlMessage::Ipv4Tos(&tos)];
                send_all(socket, &mut headers.v4, train, from, SockaddrIn::from(dst), &control)
            }
            (IpAddr::V6(src), SocketAddr::V6(dst)) => {
                let info = libc::in6_pktinfo {
                    ipi6_addr: libc::in6_addr { s6_addr: src.octets() },
                    ipi6_ifindex: 0,
                };
                let class = i32::from(train.tos);
                let control =
                    [ControlMessage::Ipv6PacketInfo(&info), ControlMessage::Ipv6TClass(&class)];
                send_all(socket, &mut headers.v6, train, from, SockaddrIn6::from(dst), &control)
            }
            _ => Err(io::ErrorKind::InvalidInput.into()),
        })
    }

    fn send_all<S: SockaddrLike + Copy>(
        socket: &Socket,
        headers: &mut MultiHeaders<S>,
        train: Train<'_>,
        from: usize,
        to: S,
        control: &[ControlMessage<'_>],
    ) -> io::Result<usize> {
        let count = (train.ends.len() - from).min(MAX_MESSAGES);
        let packets: [[IoSlice<'_>; 1]; MAX_MESSAGES] = std::array::from_fn(|i| {
            let n = from + i.min(count.saturating_sub(1));
            let begin = n.checked_sub(1).map_or(0, |before| train.ends[before]);
            [IoSlice::new(&train.bytes[begin..train.ends[n]])]
        });
        let addresses = [Some(to); MAX_MESSAGES];
        let flags = MsgFlags::MSG_DONTWAIT;
        let fd = socket.as_raw_fd();
        let sent = sendmmsg(fd, headers, &packets[..count], &addresses[..count], control, flags)?;
        Ok(sent.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(addr: &str) -> RecvMeta {
        let mut meta = RecvMeta::default();
        meta.addr = addr.parse().unwrap();
        meta
    }

    /// An IPv4 header with four bytes of options, three bytes of data, and padding of the link.
    const PACKET: [u8; 30] = [
        0x46, 3, 0, 27, 0, 0, 0x40, 0, 64, 33, 0, 0, 10, 1, 0, 1, 10, 2, 0, 1, 1, 1, 1, 0, 7, 8, 9,
        0, 0, 0,
    ];

    #[test]
    fn the_ipv4_header_comes_off_with_its_options_and_the_padding() {
        let got = unwrap(&meta("10.1.0.1:0"), &Bytes::from_static(&PACKET)).unwrap();
        assert_eq!(got.src, "10.1.0.1:0".parse().unwrap());
        assert_eq!(got.dst, "10.2.0.1:0".parse().unwrap());
        assert_eq!((got.ecn, &got.header[..]), (Ecn::Ce, &[7, 8, 9][..]));
    }

    #[test]
    fn inconsistent_or_multicast_packets_are_dropped() {
        let with = |at: usize, value: u8| {
            let mut packet = PACKET.to_vec();
            packet[at] = value;
            unwrap(&meta("10.1.0.1:0"), &packet.into())
        };
        assert!(with(0, 0x44).is_none(), "a header of 16 bytes");
        assert!(with(0, 0x66).is_none(), "version 6");
        assert!(with(3, 31).is_none(), "longer than what is here");
        assert!(with(3, 20).is_none(), "shorter than its header");
        assert!(with(16, 224).is_none(), "multicast");
        assert!(unwrap(&meta("10.1.0.1:0"), &Bytes::from_static(&PACKET[..19])).is_none());
    }

    #[test]
    fn ipv6_control_messages_replace_the_header() {
        let bytes = Bytes::from_static(&[1, 2, 3]);
        let mut meta = meta("[fd00::1]:33");
        assert!(unwrap(&meta, &bytes).is_none(), "no destination is known");
        meta.dst_ip = Some("fd00::2".parse().unwrap());
        meta.ecn = quinn_udp::EcnCodepoint::from_bits(2);
        let got = unwrap(&meta, &bytes).unwrap();
        assert_eq!(got.src, "[fd00::1]:0".parse().unwrap());
        assert_eq!(got.dst, "[fd00::2]:0".parse().unwrap());
        assert_eq!((got.ecn, &got.header[..]), (Ecn::Ect0, &[1, 2, 3][..]));
    }
}
