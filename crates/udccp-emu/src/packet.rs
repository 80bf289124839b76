//! Real packets as the datagrams that the network carries, and back.

use core::ops::Deref;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use bytes::{Buf, Bytes};
use udccp_base::{Datagram, Ecn, Payload};
use udccp_wire::ip::{Ipv4Header, Ipv6Header};

const UDP_HEADER: usize = 8;

/// What an IP header says.
struct Envelope {
    src: SocketAddr,
    dst: SocketAddr,
    protocol: u8,
    ecn: Ecn,
    header_len: usize,
    /// Of header and data.
    len: usize,
}

/// The datagram of an IP packet; `None` for anything else, and for what the network could not
/// deliver as it is: options of IPv4, extension headers of IPv6, fragments. Transport header and
/// data are the packet's own bytes with their checksum; where data begin is known for TCP, UDP, and
/// DCCP with or without UDP.
pub(crate) fn datagram(mut packet: Bytes, dccp_udp_port: Option<u16>) -> Option<Datagram> {
    let Envelope { src, dst, protocol, ecn, header_len, len } = match packet.first()? >> 4 {
        4 => v4(packet.first_chunk()?)?,
        6 => v6(packet.first_chunk()?)?,
        _ => return None,
    };
    if !(header_len..=packet.len()).contains(&len) {
        return None;
    }
    packet.truncate(len);
    packet.advance(header_len);
    let at = transport_header(protocol, &packet, dccp_udp_port).min(packet.len());
    let payload = packet.split_off(at);
    let payload = if payload.is_empty() { Payload::EMPTY } else { Payload::Bytes(payload) };
    Some(Datagram { src, dst, protocol, ecn, header: packet.into(), payload })
}

fn v4(header: &[u8; Ipv4Header::LEN]) -> Option<Envelope> {
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    if header[0] != 0x45 || is_fragment {
        return None;
    }
    let address = |at: usize| -> SocketAddr {
        (Ipv4Addr::from_octets(core::array::from_fn(|i| header[at + i])), 0).into()
    };
    Some(Envelope {
        src: address(12),
        dst: address(16),
        protocol: header[9],
        ecn: Ecn::from_bits(header[1]),
        header_len: Ipv4Header::LEN,
        len: usize::from(u16::from_be_bytes([header[2], header[3]])),
    })
}

fn v6(header: &[u8; Ipv6Header::LEN]) -> Option<Envelope> {
    // Hop-by-hop options, routing, fragment, destination options (RFC 8200 section 4).
    if matches!(header[6], 0 | 43 | 44 | 60) {
        return None;
    }
    let address = |at: usize| -> SocketAddr {
        (Ipv6Addr::from_octets(core::array::from_fn(|i| header[at + i])), 0).into()
    };
    Some(Envelope {
        src: address(8),
        dst: address(24),
        protocol: header[6],
        ecn: Ecn::from_bits(header[1] >> 4),
        header_len: Ipv6Header::LEN,
        len: Ipv6Header::LEN + usize::from(u16::from_be_bytes([header[4], header[5]])),
    })
}

/// Bytes before the data.
fn transport_header(protocol: u8, transport: &[u8], dccp_udp_port: Option<u16>) -> usize {
    let at = |i: usize| transport.get(i).copied().unwrap_or(0);
    match protocol {
        Datagram::TCP => usize::from(at(12) >> 4) * 4,
        Datagram::DCCP => dccp_header_len(transport),
        Datagram::UDP => {
            let ports = [[at(0), at(1)], [at(2), at(3)]].map(u16::from_be_bytes);
            let is_dccp = dccp_udp_port.is_some_and(|port| ports.contains(&port));
            let inner = transport.get(UDP_HEADER..).unwrap_or_default();
            UDP_HEADER + if is_dccp { dccp_header_len(inner) } else { 0 }
        }
        // What is not understood carries no data that counts.
        _ => transport.len(),
    }
}

/// Bytes before the application data of a DCCP packet (RFC 4340 section 5.1); all of one whose
/// type has none.
fn dccp_header_len(dccp: &[u8]) -> usize {
    let offset = dccp.get(4).map_or(0, |words| usize::from(*words) * 4);
    // Request, Response, Data, DataAck.
    match dccp.get(8).map(|b| b >> 1 & 0xf) {
        Some(0 | 1 | 2 | 4) => offset,
        _ => dccp.len(),
    }
}

/// An IP header.
#[derive(Clone, Copy, Debug)]
pub(crate) enum IpHeader {
    V4([u8; Ipv4Header::LEN]),
    V6([u8; Ipv6Header::LEN]),
}

impl IpHeader {
    /// That of a datagram which arrives with this time to live; `None` where its addresses are of
    /// two kinds.
    pub(crate) fn of(datagram: &Datagram, identification: u16, ttl: u8) -> Option<Self> {
        let (protocol, ecn) = (datagram.protocol, datagram.ecn as u8);
        let payload_len = datagram.transport_len();
        match (datagram.src.ip(), datagram.dst.ip()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let header =
                    Ipv4Header { src, dst, protocol, ecn, ttl, identification, payload_len };
                Some(Self::V4(header.to_bytes()))
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let (next_header, hop_limit) = (protocol, ttl);
                let header = Ipv6Header { src, dst, next_header, ecn, hop_limit, payload_len };
                Some(Self::V6(header.to_bytes()))
            }
            _ => None,
        }
    }
}

impl Deref for IpHeader {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::V4(bytes) => bytes,
            Self::V6(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(protocol: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x45, 2, 0, 20 + transport.len() as u8, 0, 1, 0x40, 0, 64, protocol];
        packet.extend([0, 0, 10, 1, 0, 1, 10, 2, 0, 1]);
        packet.extend(transport);
        packet
    }

    fn lens(protocol: u8, transport: &[u8]) -> (usize, usize) {
        let d = datagram(packet(protocol, transport).into(), Some(6511)).unwrap();
        assert_eq!(d.ip_len(), 20 + transport.len());
        (d.header.len(), d.payload.len())
    }

    #[test]
    fn data_begin_after_the_header_of_the_transport() {
        let mut tcp = [0; 40];
        tcp[12] = 8 << 4;
        assert_eq!(lens(6, &tcp), (32, 8));
        assert_eq!(lens(17, &[0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4]), (8, 4));
        let mut dccp = [0; 30];
        (dccp[4], dccp[8]) = (5, 2 << 1 | 1);
        assert_eq!(lens(33, &dccp), (20, 10), "Data");
        dccp[8] = 3 << 1 | 1;
        assert_eq!(lens(33, &dccp), (30, 0), "an Ack has no data");
        let mut udp = vec![0x19, 0x6f, 0xc0, 0, 0, 38, 0, 0];
        dccp[8] = 4 << 1 | 1;
        udp.extend(dccp);
        assert_eq!(lens(17, &udp), (28, 10), "DataAck inside UDP");
        assert_eq!(lens(1, &[3, 3, 0, 0]), (4, 0), "ICMP");
    }

    /// From fd00:1::1 to fd00:2::1, ECT(0).
    fn packet_v6(next_header: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0x20, 0, 0, 0, transport.len() as u8, next_header, 64];
        for net in [1, 2] {
            packet.extend([0xfd, 0, 0, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        }
        packet.extend(transport);
        packet
    }

    #[test]
    fn a_packet_comes_out_as_it_went_in() {
        let bytes = packet(17, &[0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4]);
        let d = datagram(bytes.clone().into(), None).unwrap();
        assert_eq!((d.src.ip(), d.ecn), ([10, 1, 0, 1].into(), Ecn::Ect0));
        let header = IpHeader::of(&d, 1, 64).unwrap();
        let expected = [bytes[..10].to_vec(), header[10..12].to_vec(), bytes[12..20].to_vec()];
        assert_eq!(header[..], expected.concat());
        let bytes = packet_v6(17, &[0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4]);
        let d = datagram(bytes.clone().into(), None).unwrap();
        assert_eq!((d.dst.ip().to_string().as_str(), d.ecn), ("fd00:2::1", Ecn::Ect0));
        assert_eq!((d.ip_len(), d.payload.len()), (52, 4));
        assert_eq!(IpHeader::of(&d, 1, 64).unwrap()[..], bytes[..40]);
    }

    #[test]
    fn what_is_no_whole_ip_packet_is_refused() {
        let refuses = |good: &[u8], at: usize, value: u8| {
            assert!(datagram(good.to_vec().into(), None).is_some());
            let mut bytes = good.to_vec();
            bytes[at] = value;
            datagram(bytes.into(), None).is_none()
        };
        let v4 = packet(6, &[0; 20]);
        assert!(refuses(&v4, 0, 0x50), "version 5");
        assert!(refuses(&v4, 0, 0x46), "options");
        assert!(refuses(&v4, 6, 0x20), "more fragments");
        assert!(refuses(&v4, 7, 1), "a later fragment");
        assert!(refuses(&v4, 3, 41) && refuses(&v4, 3, 19), "a wrong length");
        let v6 = packet_v6(6, &[0; 20]);
        assert!(refuses(&v6, 6, 44), "a fragment");
        assert!(refuses(&v6, 6, 0), "hop-by-hop options");
        assert!(refuses(&v6, 5, 21), "a wrong length");
        assert!(datagram(Bytes::from_static(&[0x45; 19]), None).is_none());
        assert!(datagram(Bytes::from_static(&[0x60; 39]), None).is_none());
    }
}
