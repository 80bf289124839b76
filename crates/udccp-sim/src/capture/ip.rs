//! The IP (and UDP) envelope of a datagram as bytes.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use udccp_base::{Datagram, Ecn, Payload};

/// What an envelope says that a datagram does not know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Envelope {
    /// Time to live, or hop limit.
    pub(crate) ttl: u8,
    /// IPv4 identification.
    pub(crate) id: u16,
    /// ECN codepoint as it is at the observation point.
    pub(crate) ecn: Ecn,
}

/// Writes the headers in front of the transport header to `out`, which is emptied first.
pub(crate) fn write_headers(out: &mut Vec<u8>, datagram: &Datagram, envelope: Envelope) {
    out.clear();
    let (from, to) = (datagram.src, datagram.dst);
    let udp = to.port() != 0;
    let inner = datagram.transport_len() + if udp { 8 } else { 0 };
    let protocol = if udp { Datagram::UDP } else { datagram.protocol };
    match (from.ip(), to.ip()) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => v4(out, src, dst, protocol, inner, envelope),
        (src, dst) => v6(out, v6_of(src), v6_of(dst), protocol, inner, envelope),
    }
    if udp {
        let at = out.len();
        out.extend_from_slice(&from.port().to_be_bytes());
        out.extend_from_slice(&to.port().to_be_bytes());
        out.extend_from_slice(&(inner as u16).to_be_bytes());
        out.extend_from_slice(&[0, 0]);
        let sum = udp_checksum(&out[at..], datagram, inner);
        out[at + 6..at + 8].copy_from_slice(&sum.to_be_bytes());
    }
}

fn v4(
    out: &mut Vec<u8>,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    protocol: u8,
    inner: usize,
    envelope: Envelope,
) {
    out.extend_from_slice(&[0x45, envelope.ecn as u8]);
    out.extend_from_slice(&((inner + 20) as u16).to_be_bytes());
    out.extend_from_slice(&envelope.id.to_be_bytes());
    // Do not fragment.
    out.extend_from_slice(&[0x40, 0, envelope.ttl, protocol, 0, 0]);
    out.extend_from_slice(&src.octets());
    out.extend_from_slice(&dst.octets());
    let sum = !fold(sum_of(&out[..20], 0));
    out[10..12].copy_from_slice(&sum.to_be_bytes());
}

fn v6(
    out: &mut Vec<u8>,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    protocol: u8,
    inner: usize,
    envelope: Envelope,
) {
    out.extend_from_slice(&[0x60, (envelope.ecn as u8) << 4, 0, 0]);
    out.extend_from_slice(&(inner as u16).to_be_bytes());
    out.extend_from_slice(&[protocol, envelope.ttl]);
    out.extend_from_slice(&src.octets());
    out.extend_from_slice(&dst.octets());
}

const fn v6_of(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

/// RFC 768 over the pseudo-header, the UDP header and its content; zeros cost nothing.
fn udp_checksum(udp_header: &[u8], datagram: &Datagram, udp_len: usize) -> u16 {
    let mut sum = u64::from(Datagram::UDP) + udp_len as u64;
    for address in [datagram.src.ip(), datagram.dst.ip()] {
        sum += match address {
            IpAddr::V4(ip) => sum_of(&ip.octets(), 0),
            IpAddr::V6(ip) => sum_of(&ip.octets(), 0),
        };
    }
    sum += sum_of(udp_header, 0) + sum_of(&datagram.header, 0);
    if let Payload::Bytes(bytes) = &datagram.payload {
        sum += sum_of(bytes, datagram.header.len());
    }
    match !fold(sum) {
        0 => 0xffff,
        checksum => checksum,
    }
}

/// Sum of 16-bit words of bytes that begin at `offset` (odd offsets are the low half of a word).
fn sum_of(bytes: &[u8], offset: usize) -> u64 {
    let weight = |i: usize| if (i + offset).is_multiple_of(2) { 8 } else { 0 };
    bytes.iter().enumerate().map(|(i, b)| u64::from(*b) << weight(i)).sum()
}

const fn fold(mut sum: u64) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

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
    fn an_ipv4_header_sums_to_all_ones() {
        let mut out = Vec::new();
        write_headers(&mut out, &datagram("10.1.0.1:0", "10.2.0.1:0"), ENVELOPE);
        assert_eq!(out[..10], [0x45, 3, 0, 25, 0, 7, 0x40, 0, 64, 33]);
        assert_eq!(fold(sum_of(&out, 0)), 0xffff);
        assert_eq!(out[12..], [10, 1, 0, 1, 10, 2, 0, 1]);
    }

    #[test]
    fn an_encapsulated_datagram_has_a_udp_header_with_a_right_checksum() {
        let mut out = Vec::new();
        let d = datagram("10.1.0.1:6511", "10.2.0.1:6512");
        write_headers(&mut out, &d, ENVELOPE);
        assert_eq!(out[9], Datagram::UDP);
        assert_eq!(out[20..26], [0x19, 0x6f, 0x19, 0x70, 0, 13]);
        let pseudo = sum_of(&out[12..20], 0) + 17 + 13;
        let all = pseudo + sum_of(&out[20..], 0) + sum_of(&[1, 2, 3, 4, 5], 0);
        assert_eq!(fold(all), 0xffff);
    }

    #[test]
    fn ipv6_has_no_checksum_of_its_own() {
        let mut out = Vec::new();
        write_headers(&mut out, &datagram("[fd00::1]:0", "[fd00::2]:0"), ENVELOPE);
        assert_eq!(out[..8], [0x60, 0x30, 0, 0, 0, 5, 33, 64]);
        assert_eq!(out.len(), 40);
    }
}
