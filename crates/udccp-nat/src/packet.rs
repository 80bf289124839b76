//! Reads and rewrites the addresses and ports of a datagram, and updates its checksums.

use core::net::{IpAddr, SocketAddr};

use udccp_base::{Datagram, HeaderBytes};
use udccp_wire::PacketType;

/// The ports that a NAT translates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Ports {
    /// Those of DCCP.
    Dccp,
    /// Those of the UDP around it.
    Udp,
}

/// One end of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Destination,
}

/// The fields of a datagram that a NAT uses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ParsedPacket {
    pub(crate) ports: Ports,
    /// Source address and port.
    pub(crate) src: SocketAddr,
    /// Destination address and port.
    pub(crate) dst: SocketAddr,
    /// The packet type; `None` if the number is reserved.
    pub(crate) ty: Option<PacketType>,
}

/// Shortest DCCP header.
const MIN_HEADER: usize = 12;

//= 5596-2.2.1-4
/// Reads a datagram; `None` if it is not DCCP. Sequence numbers, options and data are ignored.
pub(crate) fn read(d: &Datagram) -> Option<ParsedPacket> {
    if d.protocol != Datagram::DCCP || d.header.len() < MIN_HEADER {
        return None;
    }
    let port = |at: usize| u16::from_be_bytes([d.header[at], d.header[at + 1]]);
    let ty = PacketType::peek(&d.header);
    let is_udp = d.src.port() != 0 && d.dst.port() != 0;
    let (ports, src, dst) = match is_udp {
        true => (Ports::Udp, d.src, d.dst),
        false => {
            let at = |ip, port| SocketAddr::new(ip, port);
            (Ports::Dccp, at(d.src.ip(), port(0)), at(d.dst.ip(), port(2)))
        }
    };
    Some(ParsedPacket { ports, src, dst, ty })
}

//= 5595-3.2-2
//= 5597-8.1-1
//= 5597-8.1-2
//= 5597-8.2-1
/// Replaces the address and port of one end. A valid DCCP checksum stays valid; its coverage and
/// the Service Code do not change.
pub(crate) fn rewrite(mut d: Datagram, seen: &ParsedPacket, end: End, to: SocketAddr) -> Datagram {
    let from = if end == End::Source { seen.src } else { seen.dst };
    let outer = if end == End::Source { &mut d.src } else { &mut d.dst };
    match seen.ports {
        // The driver computes the UDP checksum; DCCP's is not checked inside UDP (RFC 6773 section
        // 3.3).
        Ports::Udp => *outer = to,
        Ports::Dccp => {
            outer.set_ip(to.ip());
            let mut bytes = d.header.to_vec();
            rewrite_header(&mut bytes, end, from, to);
            d.header = HeaderBytes::short(&bytes).unwrap_or_else(|| bytes.into());
        }
    }
    d
}

/// Changes a port and updates the checksum, as far as the header is present.
pub(crate) fn rewrite_header(header: &mut [u8], end: End, from: SocketAddr, to: SocketAddr) {
    let at = if end == End::Source { 0 } else { 2 };
    header[at..at + 2].copy_from_slice(&to.port().to_be_bytes());
    if let Some(field) = header.get_mut(6..8) {
        let old = u16::from_be_bytes([field[0], field[1]]);
        field.copy_from_slice(&updated(old, from, to).to_be_bytes());
    }
}

/// The checksum after a change of address and port (RFC 1624, equation 3).
fn updated(checksum: u16, from: SocketAddr, to: SocketAddr) -> u16 {
    let mut sum = u32::from(!checksum);
    each_word(from, |word| sum += u32::from(!word));
    each_word(to, |word| sum += u32::from(word));
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

fn each_word(at: SocketAddr, mut take: impl FnMut(u16)) {
    match at.ip() {
        IpAddr::V4(ip) => {
            for pair in ip.octets().as_chunks::<2>().0 {
                take(u16::from_be_bytes(*pair));
            }
        }
        IpAddr::V6(ip) => ip.segments().into_iter().for_each(&mut take),
    }
    take(at.port());
}
