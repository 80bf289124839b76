//! Checks and writes the UDP header around DCCP (RFC 6773).
//!
//! The UDP checksum replaces that of DCCP: it covers everything and is required. The Checksum field
//! of the DCCP header is sent as zero ([`crate::Emitter::finish_encapsulated`]) and ignored when
//! received. Checksum Coverage is still checked for validity, but has no effect. A driver that uses
//! a kernel's UDP socket leaves these checks to the kernel.

use core::fmt;

pub use udccp_packet::udp::{HEADER_LEN, IP_PROTOCOL, UdpHeader};

use crate::checksum::PseudoHeader;

/// The UDP port on which a DCCP-UDP server listens by default (RFC 6773 section 3.8).
pub const DEFAULT_PORT: u16 = 6511;

/// Smallest Length of a UDP datagram with DCCP: two headers.
const MIN_LENGTH: u16 = 20;

/// Why a UDP datagram is dropped (RFC 6773 section 3.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpError {
    /// Fewer bytes than a UDP header.
    Truncated {
        /// Bytes present.
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
    /// There is no checksum.
    NoChecksum,
    /// The checksum is wrong.
    Checksum,
}

/// Checks the UDP header at the beginning of `bytes`, of a datagram of `total_len` bytes, and
/// returns it with its payload (the part that is in `bytes`). [`verify`] checks the checksum.
/// Parsing the payload checks that Length has room for the whole DCCP header.
///
/// # Errors
/// Why a receiver drops the datagram.
pub fn parse(bytes: &[u8], total_len: usize) -> Result<(UdpHeader, &[u8]), UdpError> {
    let (header, payload) =
        UdpHeader::read(bytes).ok_or(UdpError::Truncated { have: bytes.len() })?;
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

//= 6773-3.3-6
/// Verifies the UDP checksum of this payload, which must be complete.
///
/// # Errors
/// The checksum is wrong.
pub fn verify(header: &UdpHeader, pseudo: &PseudoHeader, payload: &[u8]) -> Result<(), UdpError> {
    if header.is_valid(pseudo, &[payload], 0) { Ok(()) } else { Err(UdpError::Checksum) }
}

//= 6773-3.1-1
//= 6773-3.3-3
/// The UDP header for a DCCP packet that consists of `dccp_header`, `payload` and `zeros` zero
/// bytes; `None` if that is too long for UDP. Its checksum is never zero.
pub fn around(
    ports: (u16, u16),
    pseudo: &PseudoHeader,
    dccp_header: &[u8],
    payload: &[u8],
    zeros: usize,
) -> Option<UdpHeader> {
    UdpHeader::around(ports, pseudo, &[dccp_header, payload], zeros)
}

impl fmt::Display for UdpError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Truncated { have } => write!(f, "{have} bytes are too short for a UDP header"),
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
