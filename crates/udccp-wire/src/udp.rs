//! DCCP inside UDP (RFC 6773).
//!
//! The UDP checksum takes the place of DCCP's: it covers everything and must be there, while the
//! Checksum field of the DCCP header is sent as zero ([`crate::Emitter::finish_encapsulated`]) and
//! ignored on receipt. Checksum Coverage keeps its syntax and loses its effect. A driver over a
//! kernel's UDP socket leaves the checks here to the kernel.

use core::fmt;

use crate::checksum::PseudoHeader;

/// The UDP port on which a DCCP-UDP server listens by default (RFC 6773 section 3.8).
pub const DEFAULT_PORT: u16 = 6511;

/// IP protocol number of UDP.
pub const IP_PROTOCOL: u8 = 17;

/// Length of a UDP header in bytes.
pub const HEADER_LEN: usize = 8;

/// Smallest Length of a UDP datagram with DCCP in it: two headers.
const MIN_LENGTH: u16 = 20;

/// The UDP header around a DCCP packet. Its ports are those of the encapsulation, not of DCCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Bytes of header and payload.
    pub length: u16,
    /// Checksum; never zero around DCCP.
    pub checksum: u16,
}

/// Why a UDP datagram is dropped (RFC 6773 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpError {
    /// Fewer bytes than a UDP header.
    Truncated {
        /// Bytes there are.
        have: usize,
    },
    /// Length is too small for a UDP and a DCCP header.
    LengthTooSmall(u16),
    /// Length is larger than the datagram.
    LengthTooLarge {
        /// The Length field.
        length: u16,
        /// Bytes from the UDP header to the end of the packet.
        have: usize,
    },
    /// The sender left out the checksum.
    NoChecksum,
    /// The checksum is wrong.
    Checksum,
}

impl UdpHeader {
    /// Checks the header that begins `bytes`, of a datagram of `total_len` bytes in all, and
    /// returns it with its payload (as far as that is in `bytes`). The checksum is checked by
    /// [`UdpHeader::verify`]. That Length has room for the whole DCCP header is checked when the
    /// payload is parsed as a packet.
    pub fn parse(bytes: &[u8], total_len: usize) -> Result<(Self, &[u8]), UdpError> {
        let Some((&[a, b, c, d, e, f, g, h], payload)) = bytes.split_first_chunk() else {
            return Err(UdpError::Truncated { have: bytes.len() });
        };
        let header = Self {
            src_port: u16::from_be_bytes([a, b]),
            dst_port: u16::from_be_bytes([c, d]),
            length: u16::from_be_bytes([e, f]),
            checksum: u16::from_be_bytes([g, h]),
        };
        if header.length < MIN_LENGTH {
            return Err(UdpError::LengthTooSmall(header.length));
        }
        if usize::from(header.length) > total_len {
            return Err(UdpError::LengthTooLarge { length: header.length, have: total_len });
        }
        if header.checksum == 0 {
            return Err(UdpError::NoChecksum);
        }
        Ok((header, payload.get(..header.payload_len()).unwrap_or(payload)))
    }

    /// Length of the DCCP packet inside, in bytes.
    pub const fn payload_len(&self) -> usize {
        (self.length as usize).saturating_sub(HEADER_LEN)
    }

    /// Whether the checksum is right for this payload, which must be whole.
    //= 6773-3.3-6
    pub fn verify(&self, pseudo: &PseudoHeader, payload: &[u8]) -> Result<(), UdpError> {
        let mut sum = pseudo.sum(IP_PROTOCOL, usize::from(self.length));
        sum.add(&self.to_bytes());
        sum.add(payload);
        if payload.len() == self.payload_len() && sum.is_valid() {
            return Ok(());
        }
        Err(UdpError::Checksum)
    }

    /// Whether the field holds only the sum of the pseudo-header: a capture on the sending machine
    /// sees that where the network device fills in the rest.
    pub fn is_left_to_device(&self, pseudo: &PseudoHeader) -> bool {
        let sum = pseudo.sum(IP_PROTOCOL, usize::from(self.length));
        self.checksum == !sum.checksum()
    }

    /// The header for a DCCP packet made of `dccp_header`, `payload` and `zeros` zero bytes;
    /// `None` where that is too long for UDP.
    //= 6773-3.1-1
    //= 6773-3.3-3
    pub fn around(
        ports: (u16, u16),
        pseudo: &PseudoHeader,
        dccp_header: &[u8],
        payload: &[u8],
        zeros: usize,
    ) -> Option<Self> {
        let len = HEADER_LEN + dccp_header.len() + payload.len() + zeros;
        let length = u16::try_from(len).ok()?;
        let header = Self { src_port: ports.0, dst_port: ports.1, length, checksum: 0 };
        let mut sum = pseudo.sum(IP_PROTOCOL, len);
        sum.add(&header.to_bytes());
        sum.add(dccp_header);
        sum.add(payload);
        // Zero would say that there is no checksum; all ones means the same to the sum.
        let checksum = match sum.checksum() {
            0 => 0xffff,
            n => n,
        };
        Some(Self { checksum, ..header })
    }

    /// The header's bytes.
    pub const fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [a, b] = self.src_port.to_be_bytes();
        let [c, d] = self.dst_port.to_be_bytes();
        let [e, f] = self.length.to_be_bytes();
        let [g, h] = self.checksum.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }
}

impl fmt::Display for UdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { have } => write!(f, "{have} bytes are no UDP header"),
            Self::LengthTooSmall(n) => write!(f, "UDP length {n} has no room for DCCP"),
            Self::LengthTooLarge { length, have } => {
                write!(f, "UDP length {length} is beyond the packet's end at {have}")
            }
            Self::NoChecksum => f.write_str("DCCP over UDP without a UDP checksum"),
            Self::Checksum => f.write_str("UDP checksum is wrong"),
        }
    }
}

impl core::error::Error for UdpError {}
