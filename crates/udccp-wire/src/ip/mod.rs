//! The envelope of a captured packet: link header, IP header, perhaps UDP. For tools and tests;
//! never on the way of a running connection.

mod header;
mod parse;

pub use header::{Ipv4Header, Ipv6Header};

use core::fmt;

use crate::checksum::PseudoHeader;
use crate::error::WireError;
use crate::udp::{UdpError, UdpHeader};
use crate::view::PacketView;

/// How frames of a capture file begin, by libpcap's LINKTYPE numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// 0: four bytes of address family, of the capturing machine's byte order.
    Null,
    /// 1: Ethernet, with any number of VLAN tags.
    Ethernet,
    /// 101 (also 12, 14, 228, 229): nothing before the IP header.
    RawIp,
    /// 113: Linux "any" device.
    LinuxSll,
    /// 276: Linux "any" device, second version.
    LinuxSll2,
}

/// A DCCP packet with what its envelope says.
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

/// What is known of the checksum of a captured packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChecksumState {
    /// It is right.
    Valid,
    /// It is wrong.
    Invalid,
    /// Not all that it covers was captured, or the network device was yet to fill it in.
    Unknown,
}

/// Why a frame holds no DCCP packet that can be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnvelopeError {
    /// The frame ends within a link or IP header.
    Truncated,
    /// The frame is not IP; the number is its EtherType (0 where there is none).
    NotIp(u16),
    /// The IP header contradicts itself.
    BadIpHeader,
    /// A fragment; these are not put together.
    Fragment,
    /// Another transport protocol, or UDP between other ports.
    NotDccp {
        /// IP protocol number.
        protocol: u8,
    },
    /// UDP around DCCP, but to be dropped.
    Udp(UdpError),
}

impl LinkType {
    /// The link type with this LINKTYPE number, if it is known here.
    pub const fn from_number(number: u32) -> Option<Self> {
        Some(match number {
            0 => Self::Null,
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::RawIp,
            113 => Self::LinuxSll,
            276 => Self::LinuxSll2,
            _ => return None,
        })
    }
}

impl<'a> Envelope<'a> {
    /// Opens the envelope around a captured frame. UDP is taken for DCCP-UDP where one of its
    /// ports is among `udp_ports`, usually [`crate::udp::DEFAULT_PORT`] alone.
    pub fn parse(
        link: LinkType,
        frame: &'a [u8],
        udp_ports: &[u16],
    ) -> Result<Self, EnvelopeError> {
        parse::envelope(link, frame, udp_ports)
    }

    /// The DCCP packet inside.
    pub fn packet(&self) -> Result<PacketView<'a>, WireError> {
        PacketView::new(self.dccp, self.dccp_len)
    }

    /// What the checksum says: the UDP checksum where there is UDP, the header checksum elsewhere.
    pub fn checksum(&self, packet: &PacketView<'_>) -> ChecksumState {
        let whole = self.dccp.len() == self.dccp_len;
        let valid = match self.udp {
            _ if !whole && (self.udp.is_some() || !self.covered_is_here(packet)) => {
                return ChecksumState::Unknown;
            }
            Some(udp) if udp.verify(&self.pseudo, self.dccp).is_ok() => true,
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

impl fmt::Display for EnvelopeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated => f.write_str("frame ends within its headers"),
            Self::NotIp(0) => f.write_str("not an IP packet"),
            Self::NotIp(ethertype) => write!(f, "EtherType {ethertype:#06x} is not IP"),
            Self::BadIpHeader => f.write_str("IP header contradicts itself"),
            Self::Fragment => f.write_str("fragment of an IP packet"),
            Self::NotDccp { protocol } => write!(f, "IP protocol {protocol} is not DCCP"),
            Self::Udp(e) => fmt::Display::fmt(&e, f),
        }
    }
}

impl core::error::Error for EnvelopeError {}
