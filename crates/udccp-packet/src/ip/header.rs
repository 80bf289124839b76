//! Writes IP headers.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use core::ops::Deref;

use etherparse::{IpDscp, IpEcn, IpFragOffset, IpNumber, Ipv4Options, Ipv6FlowLabel};

/// An IPv4 header without options, of a packet that is never fragmented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Header {
    /// Source address.
    pub src: Ipv4Addr,
    /// Destination address.
    pub dst: Ipv4Addr,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// ECN codepoint, 0 to 3.
    pub ecn: u8,
    /// Time to live.
    pub ttl: u8,
    /// Identification.
    pub identification: u16,
    /// Bytes after the header; above 65515 the Total Length field stays at its largest value.
    pub payload_len: usize,
}

/// An IPv6 header without extension headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv6Header {
    /// Source address.
    pub src: Ipv6Addr,
    /// Destination address.
    pub dst: Ipv6Addr,
    /// Protocol number of the payload.
    pub next_header: u8,
    /// ECN codepoint, 0 to 3.
    pub ecn: u8,
    /// Hop limit.
    pub hop_limit: u8,
    /// Bytes after the header; above 65535 the Payload Length field stays at its largest value.
    pub payload_len: usize,
}

/// The bytes of an IP header, of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpHeader {
    /// IPv4 without options.
    V4([u8; Ipv4Header::LEN]),
    /// IPv6 without extension headers.
    V6([u8; Ipv6Header::LEN]),
}

const fn ecn(bits: u8) -> IpEcn {
    match bits & 3 {
        0 => IpEcn::ZERO,
        1 => IpEcn::ONE,
        2 => IpEcn::TWO,
        _ => IpEcn::THREE,
    }
}

impl Ipv4Header {
    /// Length in bytes.
    pub const LEN: usize = 20;

    /// The header's bytes with their checksum.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut header = etherparse::Ipv4Header {
            dscp: IpDscp::ZERO,
            ecn: ecn(self.ecn),
            total_len: u16::try_from(Self::LEN + self.payload_len).unwrap_or(u16::MAX),
            identification: self.identification,
            dont_fragment: true,
            more_fragments: false,
            fragment_offset: IpFragOffset::ZERO,
            time_to_live: self.ttl,
            protocol: IpNumber(self.protocol),
            header_checksum: 0,
            source: self.src.octets(),
            destination: self.dst.octets(),
            options: Ipv4Options::new(),
        };
        header.header_checksum = header.calc_header_checksum();
        let mut bytes = [0; Self::LEN];
        bytes.copy_from_slice(&header.to_bytes());
        bytes
    }
}

impl Ipv6Header {
    /// Length in bytes.
    pub const LEN: usize = 40;

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let header = etherparse::Ipv6Header {
            traffic_class: self.ecn & 3,
            flow_label: Ipv6FlowLabel::ZERO,
            payload_length: u16::try_from(self.payload_len).unwrap_or(u16::MAX),
            next_header: IpNumber(self.next_header),
            hop_limit: self.hop_limit,
            source: self.src.octets(),
            destination: self.dst.octets(),
        };
        header.to_bytes()
    }
}

impl IpHeader {
    /// The header for these addresses; `None` if they are not of one family. IPv6 has no
    /// identification.
    pub fn new(addresses: (IpAddr, IpAddr), fields: HeaderFields) -> Option<Self> {
        let HeaderFields { protocol, ecn, ttl, identification, payload_len } = fields;
        Some(match addresses {
            (IpAddr::V4(src), IpAddr::V4(dst)) => {
                let header =
                    Ipv4Header { src, dst, protocol, ecn, ttl, identification, payload_len };
                Self::V4(header.to_bytes())
            }
            (IpAddr::V6(src), IpAddr::V6(dst)) => {
                let (next_header, hop_limit) = (protocol, ttl);
                let header = Ipv6Header { src, dst, next_header, ecn, hop_limit, payload_len };
                Self::V6(header.to_bytes())
            }
            _ => return None,
        })
    }
}

/// The fields of [`IpHeader`] that both versions have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderFields {
    /// Protocol number of the payload.
    pub protocol: u8,
    /// ECN codepoint, 0 to 3.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Identification; IPv4 only.
    pub identification: u16,
    /// Bytes after the header.
    pub payload_len: usize,
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
