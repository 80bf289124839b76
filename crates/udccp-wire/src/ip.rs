//! Parses the envelope of a captured packet: link header, IP header, and UDP header if there is
//! one. For tools and tests; running connections do not use it.

use core::fmt;

pub use udccp_packet::ip::LinkType;
use udccp_packet::ip::{IpError, IpPacket};
use udccp_packet::udp::UdpHeader;

use crate::checksum::PseudoHeader;
use crate::error::WireError;
use crate::udp::{self, UdpError};
use crate::view::PacketView;

/// A DCCP packet with the fields of its envelope.
#[derive(Clone, Copy, Debug)]
pub struct Envelope<'a> {
    /// The IP addresses.
    pub pseudo: PseudoHeader,
    /// ECN codepoint, 0 to 3: Not-ECT, ECT(1), ECT(0), CE.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Length of the IP packet in bytes.
    pub ip_len: usize,
    /// The UDP header, if DCCP is inside UDP.
    pub udp: Option<UdpHeader>,
    /// The bytes of the DCCP packet that were captured.
    pub dccp: &'a [u8],
    /// Length of the DCCP packet in bytes.
    pub dccp_len: usize,
}

/// The state of the checksum of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumState {
    /// It is right.
    Valid,
    /// It is wrong.
    Invalid,
    /// Not all of the covered bytes were captured, or the network device had not filled it in yet.
    Unknown,
}

/// Why a frame holds no DCCP packet that can be parsed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The frame ends within a link or IP header.
    Truncated,
    /// The frame is not IP; the number is its EtherType (0 where there is none).
    NotIp(u16),
    /// The IP header contradicts itself.
    BadIpHeader,
    /// A fragment; fragments are not reassembled.
    Fragment,
    /// Another transport protocol, or UDP between other ports.
    NotDccp {
        /// IP protocol number.
        protocol: u8,
    },
    /// UDP around DCCP, but invalid, so a receiver drops it.
    Udp(UdpError),
}

impl<'a> Envelope<'a> {
    /// Parses the envelope of a captured frame. UDP is taken for DCCP-UDP if one of its ports is
    /// among `udp_ports`, usually [`crate::udp::DEFAULT_PORT`] alone.
    pub fn parse(
        link: LinkType,
        frame: &'a [u8],
        udp_ports: &[u16],
    ) -> Result<Self, EnvelopeError> {
        let packet = IpPacket::parse(link.ip_packet(frame)?)?;
        if packet.is_fragment {
            return Err(EnvelopeError::Fragment);
        }
        let (udp, dccp, dccp_len) = match packet.protocol {
            crate::IP_PROTOCOL => (None, packet.payload, packet.payload_len()),
            udp::IP_PROTOCOL => {
                let (header, payload) = decapsulate(&packet, udp_ports)?;
                (Some(header), payload, header.payload_len())
            }
            protocol => return Err(EnvelopeError::NotDccp { protocol }),
        };
        let IpPacket { pseudo, ecn, ttl, len: ip_len, .. } = packet;
        Ok(Self { pseudo, ecn, ttl, ip_len, udp, dccp, dccp_len })
    }

    /// The DCCP packet inside.
    pub fn packet(&self) -> Result<PacketView<'a>, WireError> {
        PacketView::new(self.dccp, self.dccp_len)
    }

    /// The state of the checksum: the UDP checksum inside UDP, otherwise the header checksum.
    pub fn checksum(&self, packet: &PacketView<'_>) -> ChecksumState {
        let whole = self.dccp.len() == self.dccp_len;
        let valid = match self.udp {
            _ if !whole && (self.udp.is_some() || !self.covered_is_here(packet)) => {
                return ChecksumState::Unknown;
            }
            Some(udp) if udp::verify(&udp, &self.pseudo, self.dccp).is_ok() => true,
            Some(udp) if udp.is_left_to_device(&self.pseudo) => return ChecksumState::Unknown,
            Some(_) => false,
            None => packet.verify_checksum(&self.pseudo, &[], 0),
        };
        if valid { ChecksumState::Valid } else { ChecksumState::Invalid }
    }

    fn covered_is_here(&self, packet: &PacketView<'_>) -> bool {
        let covered = crate::view::covered_len(packet.cscov(), packet.data_len());
        packet.payload_in_header().len() >= covered
    }
}

/// The header and payload of a UDP datagram that carries DCCP. The ports are read even if the
/// header is truncated.
fn decapsulate<'a>(
    packet: &IpPacket<'a>,
    udp_ports: &[u16],
) -> Result<(UdpHeader, &'a [u8]), EnvelopeError> {
    let Some(&[a, b, c, d]) = packet.payload.first_chunk() else {
        return Err(EnvelopeError::Truncated);
    };
    let ports = [[a, b], [c, d]].map(u16::from_be_bytes);
    if !ports.iter().any(|port| udp_ports.contains(port)) {
        return Err(EnvelopeError::NotDccp { protocol: packet.protocol });
    }
    udp::parse(packet.payload, packet.payload_len()).map_err(EnvelopeError::Udp)
}

impl From<IpError> for EnvelopeError {
    fn from(error: IpError) -> Self {
        match error {
            IpError::Truncated => Self::Truncated,
            IpError::NotIp(ethertype) => Self::NotIp(ethertype),
            IpError::BadHeader => Self::BadIpHeader,
        }
    }
}

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated => IpError::Truncated.fmt(f),
            Self::NotIp(ethertype) => IpError::NotIp(ethertype).fmt(f),
            Self::BadIpHeader => IpError::BadHeader.fmt(f),
            Self::Fragment => f.write_str("fragment of an IP packet"),
            Self::NotDccp { protocol } => write!(f, "IP protocol {protocol} is not DCCP"),
            Self::Udp(e) => fmt::Display::fmt(&e, f),
        }
    }
}

impl core::error::Error for EnvelopeError {}
