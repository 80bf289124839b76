//! Writes the packets of an observation point as a pcap file.

use core::net::{IpAddr, Ipv6Addr};
use std::io::{self, BufWriter};

use udccp_base::{Datagram, Ecn, Instant, Payload};
use udccp_packet::PseudoHeader;
use udccp_packet::ip::{HeaderFields, IpHeader, LinkType};
use udccp_packet::pcap::Writer;
use udccp_packet::udp::{self, UdpHeader};

use super::CaptureFile;

/// The fields of an IP header that a datagram does not have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// Time to live, or hop limit.
    pub(crate) ttl: u8,
    /// IPv4 identification.
    pub(crate) id: u16,
    /// ECN codepoint at the observation point.
    pub(crate) ecn: Ecn,
}

/// Writes one file, packet by packet.
pub(crate) struct PcapWriter(Writer<BufWriter<CaptureFile>>);

impl PcapWriter {
    /// Begins a file.
    pub(crate) fn new(out: CaptureFile, snaplen: u32) -> io::Result<Self> {
        let out = BufWriter::with_capacity(1 << 16, out);
        Writer::new(out, LinkType::RawIp, snaplen).map(Self)
    }

    /// Writes one packet with its envelope; a payload of zeros becomes bytes here.
    pub(crate) fn packet(
        &mut self,
        now: Instant,
        datagram: &Datagram,
        envelope: Envelope,
    ) -> io::Result<()> {
        let (payload, zeros) = match &datagram.payload {
            Payload::Bytes(bytes) => (&bytes[..], 0),
            Payload::Zeros(n) => (&[][..], *n as usize),
        };
        let udp = udp_header(datagram, payload, zeros);
        let udp: &[u8] = udp.as_ref().map_or(&[], |header| header);
        let ip = ip_header(datagram, envelope, udp.len());
        self.0.packet(now.as_nanos(), &[&ip, udp, &datagram.header, payload], zeros)
    }

    /// Writes what is still buffered.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

fn ip_header(datagram: &Datagram, envelope: Envelope, udp_len: usize) -> IpHeader {
    let fields = HeaderFields {
        protocol: if udp_len == 0 { datagram.protocol } else { Datagram::UDP },
        ecn: envelope.ecn as u8,
        ttl: envelope.ttl,
        identification: envelope.id,
        payload_len: udp_len + datagram.transport_len(),
    };
    let (src, dst) = (datagram.src.ip(), datagram.dst.ip());
    IpHeader::new((src, dst), fields).unwrap_or_else(|| {
        let both = (IpAddr::V6(v6_of(src)), IpAddr::V6(v6_of(dst)));
        IpHeader::new(both, fields).expect("both are IPv6 addresses")
    })
}

/// The UDP header of a datagram whose addresses have ports.
fn udp_header(datagram: &Datagram, payload: &[u8], zeros: usize) -> Option<[u8; udp::HEADER_LEN]> {
    let ports = (datagram.src.port(), datagram.dst.port());
    if ports.1 == 0 {
        return None;
    }
    let pseudo = PseudoHeader::new(datagram.src.ip(), datagram.dst.ip());
    let too_long =
        UdpHeader { src_port: ports.0, dst_port: ports.1, length: u16::MAX, checksum: 0 };
    let header = UdpHeader::around(ports, &pseudo, &[&datagram.header, payload], zeros);
    Some(header.unwrap_or(too_long).to_bytes())
}

const fn v6_of(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use udccp_packet::ip::IpPacket;

    use super::*;

    fn datagram(src: &str, dst: &str) -> Datagram {
        Datagram {
            src: src.parse().unwrap(),
            dst: dst.parse().unwrap(),
            protocol: Datagram::DCCP,
            ecn: Ecn::NotEct,
            header: vec![1, 2, 3].into(),
            payload: Payload::Bytes(Bytes::from_static(&[4, 5])),
        }
    }

    const ENVELOPE: Envelope = Envelope { ttl: 64, id: 7, ecn: Ecn::Ce };

    #[test]
    fn an_ipv4_header_has_the_fields_of_the_envelope() {
        let header = ip_header(&datagram("10.1.0.1:0", "10.2.0.1:0"), ENVELOPE, 0);
        assert_eq!(header[..10], [0x45, 3, 0, 25, 0, 7, 0x40, 0, 64, 33]);
        assert_eq!(header[12..], [10, 1, 0, 1, 10, 2, 0, 1]);
    }

    #[test]
    fn an_encapsulated_datagram_has_a_udp_header_with_a_right_checksum() {
        let d = datagram("10.1.0.1:6511", "10.2.0.1:6512");
        let bytes = udp_header(&d, &[4, 5], 0).unwrap();
        assert_eq!(bytes[..6], [0x19, 0x6f, 0x19, 0x70, 0, 13]);
        let (udp, _) = UdpHeader::read(&bytes).unwrap();
        let pseudo = PseudoHeader::new(d.src.ip(), d.dst.ip());
        assert!(udp.is_valid(&pseudo, &[&[1, 2, 3, 4, 5]], 0));
        assert_eq!(ip_header(&d, ENVELOPE, bytes.len())[9], Datagram::UDP);
        assert_eq!(udp_header(&datagram("10.1.0.1:0", "10.2.0.1:0"), &[], 0), None);
    }

    #[test]
    fn addresses_of_two_families_are_both_written_as_ipv6() {
        let header = ip_header(&datagram("10.1.0.1:0", "[fd00::2]:0"), ENVELOPE, 0);
        assert_eq!(header[..8], [0x60, 0x30, 0, 0, 0, 5, 33, 64]);
        let packet = IpPacket::parse(&header).unwrap();
        assert_eq!(packet.pseudo.src.to_string(), "::ffff:10.1.0.1");
    }
}
