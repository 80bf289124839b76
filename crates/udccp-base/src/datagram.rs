//! The datagram that machines exchange, and payloads that are only counted.

use core::net::SocketAddr;

use bytes::Bytes;

use crate::header::HeaderBytes;
use crate::time::Instant;

/// The two ECN bits of the IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable.
    #[default]
    NotEct = 0,
    /// ECN-capable, codepoint ECT(1).
    Ect1 = 1,
    /// ECN-capable, codepoint ECT(0).
    Ect0 = 2,
    /// Congestion experienced.
    Ce = 3,
}

impl Ecn {
    /// The codepoint in the two low bits of a traffic class octet.
    pub const fn from_bits(tos: u8) -> Self {
        match tos & 3 {
            0 => Self::NotEct,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark the packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Application data: bytes, or a number of zero bytes of which only the number is stored. A
/// simulation carries gigabytes of the second kind at the cost of a counter, and all checksums are
/// correct (zeros add nothing to a ones' complement sum).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Real bytes, shared and never copied by a machine.
    Bytes(Bytes),
    /// This many zero bytes.
    Zeros(u32),
}

impl Payload {
    /// No data.
    pub const EMPTY: Self = Self::Zeros(0);

    /// Length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        match self {
            Self::Bytes(b) => b.len(),
            Self::Zeros(n) => *n as usize,
        }
    }

    /// Whether there is no data.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The payload as real bytes (allocates for zeros).
    pub fn to_bytes(&self) -> Bytes {
        match self {
            Self::Bytes(b) => b.clone(),
            Self::Zeros(n) => Bytes::from(vec![0; *n as usize]),
        }
    }
}

impl From<Bytes> for Payload {
    fn from(b: Bytes) -> Self {
        Self::Bytes(b)
    }
}

/// A message from or to an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The data; message boundaries are kept end to end.
    pub payload: Payload,
    /// Time after which the message is useless: it is then dropped instead of sent, and reported.
    /// `None`: never.
    pub deadline: Option<Instant>,
    /// Messages of higher priority leave first; those of equal priority keep their order. 0 is the
    /// lowest.
    pub priority: u32,
    /// Requests a report, with this number, of what happens to the message.
    pub token: Option<u64>,
}

impl Message {
    /// A message without deadline and token, of the lowest priority.
    pub fn new(payload: impl Into<Payload>) -> Self {
        Self { payload: payload.into(), deadline: None, priority: 0, token: None }
    }
}

/// A transport packet with the data of its IP (and UDP) headers.
///
/// The whole transport header is in `header`. The packet's data is what follows it in `header`, and
/// then `payload`. A packet that arrives is usually all in `header` (a slice of a receive buffer);
/// one that departs has its data in `payload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// Source address; the port is that of the UDP encapsulation, 0 over raw IP.
    pub src: SocketAddr,
    /// Destination address; the port is that of the UDP encapsulation, 0 over raw IP.
    pub dst: SocketAddr,
    /// IP protocol number of the transport packet: 33 DCCP, 6 TCP, 17 UDP.
    pub protocol: u8,
    /// ECN codepoint.
    pub ecn: Ecn,
    /// The transport header, possibly followed by data.
    pub header: HeaderBytes,
    /// Data, or the rest of it.
    pub payload: Payload,
}

impl Datagram {
    /// Time to live with which packets leave a simulated host.
    pub const TTL: u8 = 64;
    /// IP protocol number of DCCP.
    pub const DCCP: u8 = 33;
    /// IP protocol number of TCP.
    pub const TCP: u8 = 6;
    /// IP protocol number of UDP.
    pub const UDP: u8 = 17;

    /// Length of the transport packet in bytes (header, options, data), without IP and UDP headers.
    #[inline]
    pub fn transport_len(&self) -> usize {
        self.header.len() + self.payload.len()
    }

    /// Length on the wire in bytes: IPv4 (20) or IPv6 (40) header, 8 for UDP if encapsulated, and
    /// the transport packet.
    #[inline]
    pub fn ip_len(&self) -> usize {
        let ip = if self.src.is_ipv4() { 20 } else { 40 };
        let udp = if self.dst.port() == 0 { 0 } else { 8 };
        ip + udp + self.transport_len()
    }
}
