//! Creates ICMP Destination Unreachable messages over IPv4 (RFC 792), and translates them with the
//! packet that they quote.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};

use udccp_base::{Datagram, Ecn, Payload};
use udccp_packet::checksum::Sum;
use udccp_packet::ip::Ipv4Header;

use crate::packet::{End, Ports, rewrite_header};

/// IP protocol number of ICMP.
pub(crate) const PROTOCOL: u8 = 1;

const UNREACHABLE: u8 = 3;
const PORT_UNREACHABLE: u8 = 3;
const TTL: u8 = 64;
/// ICMP header before the quoted packet.
const ICMP_BYTES: usize = 8;
/// Most bytes of a DCCP packet to quote.
const QUOTE_BYTES: usize = 64;
/// Where the quoted transport header begins, without IP options.
const QUOTED_AT: usize = ICMP_BYTES + Ipv4Header::LEN;

/// The packet that a message quotes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct QuotedPacket {
    pub(crate) ports: Ports,
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
}

/// A Port Unreachable message about `datagram`, from a router at `from`; `None` over IPv6.
pub(crate) fn port_unreachable(from: IpAddr, datagram: &Datagram) -> Option<Datagram> {
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (datagram.src.ip(), datagram.dst.ip()) else {
        return None;
    };
    let mut bytes = vec![UNREACHABLE, PORT_UNREACHABLE, 0, 0, 0, 0, 0, 0];
    let ecn = datagram.ecn as u8;
    let (protocol, payload_len) = (datagram.protocol, datagram.transport_len());
    let header = Ipv4Header { src, dst, protocol, ecn, ttl: TTL, identification: 0, payload_len };
    bytes.extend_from_slice(&header.to_bytes());
    let quoted = datagram.header.len().min(QUOTE_BYTES);
    bytes.extend_from_slice(&datagram.header[..quoted]);
    set_checksum(&mut bytes);
    let to = SocketAddr::new(datagram.src.ip(), 0);
    Some(Datagram {
        src: SocketAddr::new(from, 0),
        dst: to,
        protocol: PROTOCOL,
        ecn: Ecn::NotEct,
        header: bytes.into(),
        payload: Payload::EMPTY,
    })
}

/// The packet that a Destination Unreachable message quotes; `None` for other messages.
pub(crate) fn quoted(message: &Datagram) -> Option<QuotedPacket> {
    let bytes = &message.header[..];
    let ip = bytes.get(ICMP_BYTES..QUOTED_AT)?;
    let transport = bytes.get(QUOTED_AT..QUOTED_AT + 8)?;
    let ports = match ip[9] {
        Datagram::DCCP => Ports::Dccp,
        Datagram::UDP => Ports::Udp,
        _ => return None,
    };
    if bytes[0] != UNREACHABLE || ip[0] != 0x45 {
        return None;
    }
    let end = |address: &[u8], port: &[u8]| {
        let ip = Ipv4Addr::new(address[0], address[1], address[2], address[3]);
        SocketAddr::new(ip.into(), u16::from_be_bytes([port[0], port[1]]))
    };
    let (src, dst) = (end(&ip[12..16], &transport[..2]), end(&ip[16..20], &transport[2..4]));
    Some(QuotedPacket { ports, src, dst })
}

/// Replaces one end of the quoted packet, and the opposite end of the message itself, with `to`;
/// `None` if the addresses are not IPv4.
pub(crate) fn translate(message: &Datagram, end: End, to: SocketAddr) -> Option<Datagram> {
    let about = quoted(message)?;
    let IpAddr::V4(address) = to.ip() else { return None };
    let mut bytes = message.header.to_vec();
    let (at, from) = if end == End::Source { (12, about.src) } else { (16, about.dst) };
    bytes[ICMP_BYTES + at..ICMP_BYTES + at + 4].copy_from_slice(&address.octets());
    let ip = &mut bytes[ICMP_BYTES..QUOTED_AT];
    ip[10..12].fill(0);
    let mut sum = Sum::new();
    sum.add(ip);
    ip[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
    let transport = &mut bytes[QUOTED_AT..];
    match about.ports {
        Ports::Dccp => rewrite_header(transport, end, from, to),
        Ports::Udp => {
            let at = if end == End::Source { 0 } else { 2 };
            transport[at..at + 2].copy_from_slice(&to.port().to_be_bytes());
        }
    }
    set_checksum(&mut bytes);
    let outer = SocketAddr::new(to.ip(), 0);
    let (src, dst) = match end {
        End::Source => (message.src, outer),
        End::Destination => (outer, message.dst),
    };
    Some(Datagram { src, dst, header: bytes.into(), ..message.clone() })
}

fn set_checksum(bytes: &mut [u8]) {
    bytes[2..4].fill(0);
    let mut sum = Sum::new();
    sum.add(bytes);
    bytes[2..4].copy_from_slice(&sum.checksum().to_be_bytes());
}
