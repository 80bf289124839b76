//! Turns real packets into the datagrams that the network carries, and back.

use bytes::{Buf, Bytes};
use udccp_base::{Datagram, Ecn, Payload};
use udccp_packet::ip::{HeaderFields, IpHeader, IpPacket, Ipv4Header, Ipv6Header};
use udccp_packet::udp::{self, UdpHeader};
use udccp_wire::PacketType;

/// Converts an IP packet to a datagram. `None` for other packets, and for those that the network
/// could not deliver unchanged: IPv4 options, IPv6 extension headers, fragments. Transport header
/// and data are the packet's bytes, with their checksum. The start of data is known for TCP, UDP,
/// and DCCP with or without UDP.
pub(crate) fn datagram(mut packet: Bytes, dccp_udp_port: Option<u16>) -> Option<Datagram> {
    let IpPacket { pseudo, protocol, ecn, is_fragment, len, header_len, .. } =
        IpPacket::parse(&packet).ok()?;
    let bare_len = if pseudo.src.is_ipv4() { Ipv4Header::LEN } else { Ipv6Header::LEN };
    if is_fragment || header_len != bare_len || len > packet.len() {
        return None;
    }
    packet.truncate(len);
    packet.advance(header_len);
    let at = transport_header(protocol, &packet, dccp_udp_port).min(packet.len());
    let payload = packet.split_off(at);
    let payload = if payload.is_empty() { Payload::EMPTY } else { Payload::Bytes(payload) };
    let (src, dst) = ((pseudo.src, 0).into(), (pseudo.dst, 0).into());
    let ecn = Ecn::from_bits(ecn);
    Some(Datagram { src, dst, protocol, ecn, header: packet.into(), payload })
}

/// The IP header of a datagram that arrives with this time to live; `None` if its addresses are of
/// different families.
pub(crate) fn ip_header(datagram: &Datagram, identification: u16, ttl: u8) -> Option<IpHeader> {
    let (protocol, ecn) = (datagram.protocol, datagram.ecn as u8);
    let payload_len = datagram.transport_len();
    let fields = HeaderFields { protocol, ecn, ttl, identification, payload_len };
    IpHeader::new((datagram.src.ip(), datagram.dst.ip()), fields)
}

/// Bytes before the data.
fn transport_header(protocol: u8, transport: &[u8], dccp_udp_port: Option<u16>) -> usize {
    let at = |i: usize| transport.get(i).copied().unwrap_or(0);
    match protocol {
        Datagram::TCP => usize::from(at(12) >> 4) * 4,
        Datagram::DCCP => dccp_header_len(transport),
        Datagram::UDP => {
            let carries_dccp = |(header, inner): (UdpHeader, _)| {
                let ports = [header.src_port, header.dst_port];
                dccp_udp_port.is_some_and(|port| ports.contains(&port)).then_some(inner)
            };
            let dccp = UdpHeader::read(transport).and_then(carries_dccp);
            udp::HEADER_LEN + dccp.map_or(0, dccp_header_len)
        }
        // Treat unknown protocols as carrying no data.
        _ => transport.len(),
    }
}

/// Bytes before the application data of a DCCP packet (RFC 4340 section 5.1); the whole length if
/// its type has no data.
fn dccp_header_len(dccp: &[u8]) -> usize {
    let offset = dccp.get(4).map_or(0, |words| usize::from(*words) * 4);
    match PacketType::peek(dccp) {
        Some(ty) if ty.carries_app_data() => offset,
        _ => dccp.len(),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An IPv4 packet from 10.1.0.1 to 10.2.0.1.
    pub(crate) fn packet(protocol: u8, transport: &[u8]) -> Vec<u8> {
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

    /// An IPv6 packet from fd00:1::1 to fd00:2::1, ECT(0).
    fn packet_v6(next_header: u8, transport: &[u8]) -> Vec<u8> {
        let mut packet = vec![0x60, 0x20, 0, 0, 0, transport.len() as u8, next_header, 64];
        for net in [1, 2] {
            packet.extend([0xfd, 0, 0, net, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        }
        packet.extend(transport);
        packet
    }

    #[test]
    fn packets_pass_the_emulator_unchanged() {
        let bytes = packet(17, &[0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4]);
        let d = datagram(bytes.clone().into(), None).unwrap();
        assert_eq!((d.src.ip(), d.ecn), ([10, 1, 0, 1].into(), Ecn::Ect0));
        let header = ip_header(&d, 1, 64).unwrap();
        let expected = [bytes[..10].to_vec(), header[10..12].to_vec(), bytes[12..20].to_vec()];
        assert_eq!(header[..], expected.concat());
        let bytes = packet_v6(17, &[0, 1, 0, 2, 0, 12, 0, 0, 1, 2, 3, 4]);
        let d = datagram(bytes.clone().into(), None).unwrap();
        assert_eq!((d.dst.ip().to_string().as_str(), d.ecn), ("fd00:2::1", Ecn::Ect0));
        assert_eq!((d.ip_len(), d.payload.len()), (52, 4));
        assert_eq!(ip_header(&d, 1, 64).unwrap()[..], bytes[..40]);
    }

    #[test]
    fn incomplete_ip_packets_are_rejected() {
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
