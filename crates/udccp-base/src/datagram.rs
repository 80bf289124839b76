//! The datagram that machines exchange, and payloads that need not exist.

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

    /// Whether a queue may mark instead of drop.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotEct)
    }
}

/// Application data: real bytes, or a number of zero bytes kept only as their number. A
/// simulation carries gigabytes of the second kind for the price of a counter, and all checksums
/// stay right (zeros add nothing to a ones' complement sum).
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

/// A message on its way from or to an application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The data; message boundaries are kept end to end.
    pub payload: Payload,
    /// Too old to be useful after this instant: dropped before sending, and reported.
    pub deadline: Option<Instant>,
    /// Larger goes first; equal priorities keep their order.
    pub priority: u32,
    /// Asks for what becomes of the message, under this number of the application's.
    pub token: Option<u64>,
}

impl Message {
    /// A message with no deadline and the lowest priority.
    pub fn new(payload: impl Into<Payload>) -> Self {
        Self { payload: payload.into(), deadline: None, priority: 0, token: None }
    }
}

/// A transport packet with what its IP (and UDP) envelope says.
///
/// The transport header lies wholly in `header`. What follows the header within `header`, and then
/// `payload`, is the packet's data: an arriving packet is usually all in `header` (one slice of
/// a receive buffer), a departing one has its data in `payload`.
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
    /// Data (or the rest of it).
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

    /// Length of the transport packet in bytes (header, options, data; no IP or UDP envelope).
    #[inline]
    pub fn transport_len(&self) -> usize {
        self.header.len() + self.payload.len()
    }

    /// Length on the wire in bytes: IPv4 (20) or IPv6 (40) header, 8 of UDP where encapsulated,
    /// and the transport packet.
    #[inline]
    pub fn ip_len(&self) -> usize {
        let ip = if self.src.is_ipv4() { 20 } else { 40 };
        let udp = if self.dst.port() == 0 { 0 } else { 8 };
        ip + udp + self.transport_len()
    }
}
