//! From a frame to the transport packet. Every step takes bytes and gives fewer.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{Envelope, EnvelopeError, LinkType};
use crate::checksum::PseudoHeader;
use crate::udp::{self, UdpHeader};

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the older QinQ number.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// An IP packet's payload and what the header said.
struct Transport<'a> {
    pseudo: PseudoHeader,
    ecn: u8,
    ttl: u8,
    ip_len: usize,
    protocol: u8,
    bytes: &'a [u8],
    /// Length in bytes by the header; `bytes` may be cut short.
    len: usize,
}

pub(super) fn envelope<'a>(
    link: LinkType,
    frame: &'a [u8],
    udp_ports: &[u16],
) -> Result<Envelope<'a>, EnvelopeError> {
    let packet = skip_link_header(link, frame)?;
    let t = match packet.first().ok_or(EnvelopeError::Truncated)? >> 4 {
        4 => ipv4(packet)?,
        6 => ipv6(packet)?,
        _ => return Err(EnvelopeError::NotIp(0)),
    };
    let (udp, dccp, dccp_len) = match t.protocol {
        crate::IP_PROTOCOL => (None, t.bytes, t.len),
        udp::IP_PROTOCOL => {
            let (header, payload) = decapsulate(&t, udp_ports)?;
            (Some(header), payload, header.payload_len())
        }
        protocol => return Err(EnvelopeError::NotDccp { protocol }),
    };
    let Transport { pseudo, ecn, ttl, ip_len, .. } = t;
    Ok(Envelope { pseudo, ecn, ttl, ip_len, udp, dccp, dccp_len })
}

fn decapsulate<'a>(
    t: &Transport<'a>,
    udp_ports: &[u16],
) -> Result<(UdpHeader, &'a [u8]), EnvelopeError> {
    let ports = [at16(t.bytes, 0)?, at16(t.bytes, 2)?];
    if !ports.iter().any(|port| udp_ports.contains(port)) {
        return Err(EnvelopeError::NotDccp { protocol: t.protocol });
    }
    UdpHeader::parse(t.bytes, t.len).map_err(EnvelopeError::Udp)
}

/// The IP packet in a frame.
fn skip_link_header(link: LinkType, frame: &[u8]) -> Result<&[u8], EnvelopeError> {
    let (ethertype, header_len) = match link {
        LinkType::RawIp => return Ok(frame),
        // The family number differs from system to system; the IP version says it too.
        LinkType::Null => return from(frame, 4),
        LinkType::Ethernet => ethernet(frame)?,
        LinkType::LinuxSll => (at16(frame, 14)?, 16),
        LinkType::LinuxSll2 => (at16(frame, 0)?, 20),
    };
    match ethertype {
        ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => from(frame, header_len),
        other => Err(EnvelopeError::NotIp(other)),
    }
}

fn ethernet(frame: &[u8]) -> Result<(u16, usize), EnvelopeError> {
    let mut type_at = 12;
    while ETHERTYPES_VLAN.contains(&at16(frame, type_at)?) {
        type_at += 4;
    }
    Ok((at16(frame, type_at)?, type_at + 2))
}

fn ipv4(packet: &[u8]) -> Result<Transport<'_>, EnvelopeError> {
    let &[first, tos, ..] = packet.first_chunk::<20>().ok_or(EnvelopeError::Truncated)?;
    let header_len = usize::from(first & 0xf) * 4;
    // A capture on the sender may see 0 where the network card fills in the length later.
    let ip_len = match at16(packet, 2)? {
        0 => packet.len(),
        n => usize::from(n),
    };
    if header_len < 20 || ip_len < header_len {
        return Err(EnvelopeError::BadIpHeader);
    }
    // More Fragments, or a Fragment Offset.
    if at16(packet, 6)? & 0x3fff != 0 {
        return Err(EnvelopeError::Fragment);
    }
    let address = |i: usize| chunk(packet, i).map(|a: [u8; 4]| IpAddr::V4(Ipv4Addr::from(a)));
    let captured = packet.get(..ip_len).unwrap_or(packet);
    Ok(Transport {
        pseudo: PseudoHeader::new(address(12)?, address(16)?),
        ecn: tos & 3,
        ttl: at8(packet, 8)?,
        ip_len,
        protocol: at8(packet, 9)?,
        bytes: from(captured, header_len)?,
        len: ip_len - header_len,
    })
}

fn ipv6(packet: &[u8]) -> Result<Transport<'_>, EnvelopeError> {
    let address = |i: usize| chunk(packet, i).map(|a: [u8; 16]| IpAddr::V6(Ipv6Addr::from(a)));
    let pseudo = PseudoHeader::new(address(8)?, address(24)?);
    let ip_len = 40 + usize::from(at16(packet, 4)?);
    let captured = packet.get(..ip_len).unwrap_or(packet);
    let (protocol, skipped) = skip_extensions(captured, at8(packet, 6)?)?;
    Ok(Transport {
        pseudo,
        ecn: at8(packet, 1)? >> 4 & 3,
        ttl: at8(packet, 7)?,
        ip_len,
        protocol,
        bytes: from(captured, skipped)?,
        len: ip_len.checked_sub(skipped).ok_or(EnvelopeError::BadIpHeader)?,
    })
}

/// The transport protocol and where it begins, after the IPv6 extension headers.
fn skip_extensions(packet: &[u8], first: u8) -> Result<(u8, usize), EnvelopeError> {
    let (mut next, mut at) = (first, 40);
    loop {
        let len = match next {
            // Hop-by-Hop Options, Routing, Destination Options, Mobility, HIP, Shim6.
            0 | 43 | 60 | 135 | 139 | 140 => (usize::from(at8(packet, at + 1)?) + 1) * 8,
            // Authentication Header counts words of four bytes, less two.
            51 => (usize::from(at8(packet, at + 1)?) + 2) * 4,
            // Fragment: only one that is the whole packet (RFC 6946) goes on.
            44 if at16(packet, at + 2)? & 0xfff9 != 0 => return Err(EnvelopeError::Fragment),
            44 => 8,
            protocol => return Ok((protocol, at)),
        };
        next = at8(packet, at)?;
        at += len;
    }
}

fn at8(bytes: &[u8], at: usize) -> Result<u8, EnvelopeError> {
    bytes.get(at).copied().ok_or(EnvelopeError::Truncated)
}

fn at16(bytes: &[u8], at: usize) -> Result<u16, EnvelopeError> {
    chunk(bytes, at).map(u16::from_be_bytes)
}

fn chunk<const N: usize>(bytes: &[u8], at: usize) -> Result<[u8; N], EnvelopeError> {
    from(bytes, at)?.first_chunk().copied().ok_or(EnvelopeError::Truncated)
}

fn from(bytes: &[u8], at: usize) -> Result<&[u8], EnvelopeError> {
    bytes.get(at..).ok_or(EnvelopeError::Truncated)
}
