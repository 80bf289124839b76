//! Reads and writes IP headers, and finds them in captured frames.

mod header;
mod link;
mod packet;

pub use header::{HeaderFields, IpHeader, Ipv4Header, Ipv6Header};
pub use link::LinkType;
pub use packet::IpPacket;

use core::fmt;

/// The error for bytes that are not an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpError {
    /// They end within a link or IP header.
    Truncated,
    /// They are not IP; the number is the EtherType of the frame (0 if it has none).
    NotIp(u16),
    /// The fields of the IP header contradict each other.
    BadHeader,
}

impl fmt::Display for IpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated => f.write_str("frame ends within its headers"),
            Self::NotIp(0) => f.write_str("not an IP packet"),
            Self::NotIp(ethertype) => write!(f, "EtherType {ethertype:#06x} is not IP"),
            Self::BadHeader => f.write_str("IP header contradicts itself"),
        }
    }
}

impl core::error::Error for IpError {}
