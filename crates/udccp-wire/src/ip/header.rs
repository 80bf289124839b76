//! IP headers to write into capture files.

use core::net::{Ipv4Addr, Ipv6Addr};

use crate::checksum::Sum;

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

impl Ipv4Header {
    /// Length in bytes.
    pub const LEN: usize = 20;

    /// The header's bytes with their checksum.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let total = u16::try_from(Self::LEN + self.payload_len).unwrap_or(u16::MAX);
        let mut b = [0; Self::LEN];
        b[0] = 0x45;
        b[1] = self.ecn & 3;
        b[2..4].copy_from_slice(&total.to_be_bytes());
        b[4..6].copy_from_slice(&self.identification.to_be_bytes());
        b[6] = 0x40; // Don't Fragment
        b[8] = self.ttl;
        b[9] = self.protocol;
        b[12..16].copy_from_slice(&self.src.octets());
        b[16..20].copy_from_slice(&self.dst.octets());
        let mut sum = Sum::new();
        sum.add(&b);
        b[10..12].copy_from_slice(&sum.checksum().to_be_bytes());
        b
    }
}

impl Ipv6Header {
    /// Length in bytes.
    pub const LEN: usize = 40;

    /// The header's bytes.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let payload = u16::try_from(self.payload_len).unwrap_or(u16::MAX);
        let mut b = [0; Self::LEN];
        b[0] = 0x60;
        b[1] = (self.ecn & 3) << 4;
        b[4..6].copy_from_slice(&payload.to_be_bytes());
        b[6] = self.next_header;
        b[7] = self.hop_limit;
        b[8..24].copy_from_slice(&self.src.octets());
        b[24..40].copy_from_slice(&self.dst.octets());
        b
    }
}
