//! Skips the link header of a captured frame.

use super::IpError;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad and the older QinQ number.
const ETHERTYPES_VLAN: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// The link header of the frames in a capture file, by libpcap's LINKTYPE numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkType {
    /// 0: four bytes with the address family, in the byte order of the capturing machine.
    Null,
    /// 1: Ethernet, with any number of VLAN tags.
    Ethernet,
    /// 101 (also 12, 14, 228, 229): none; frames start with the IP header.
    RawIp,
    /// 113: Linux "any" device.
    LinuxSll,
    /// 276: Linux "any" device, second version.
    LinuxSll2,
}

impl LinkType {
    /// The link type with this LINKTYPE number, if it is supported.
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

    /// The LINKTYPE number that is written to files.
    pub const fn number(self) -> u32 {
        match self {
            Self::Null => 0,
            Self::Ethernet => 1,
            Self::RawIp => 101,
            Self::LinuxSll => 113,
            Self::LinuxSll2 => 276,
        }
    }

    /// The IP packet in a frame, followed by any padding of the link.
    ///
    /// # Errors
    /// If the frame is too short or carries another protocol.
    pub fn ip_packet(self, frame: &[u8]) -> Result<&[u8], IpError> {
        let (ethertype, header_len) = match self {
            Self::RawIp => return Ok(frame),
            // The family number differs between systems; the IP version has the same information.
            Self::Null => return from(frame, 4),
            Self::Ethernet => ethernet(frame)?,
            Self::LinuxSll => (at16(frame, 14)?, 16),
            Self::LinuxSll2 => (at16(frame, 0)?, 20),
        };
        match ethertype {
            ETHERTYPE_IPV4 | ETHERTYPE_IPV6 => from(frame, header_len),
            other => Err(IpError::NotIp(other)),
        }
    }
}

fn ethernet(frame: &[u8]) -> Result<(u16, usize), IpError> {
    let mut type_at = 12;
    while ETHERTYPES_VLAN.contains(&at16(frame, type_at)?) {
        type_at += 4;
    }
    Ok((at16(frame, type_at)?, type_at + 2))
}

fn at16(bytes: &[u8], at: usize) -> Result<u16, IpError> {
    let word = from(bytes, at)?.first_chunk().ok_or(IpError::Truncated)?;
    Ok(u16::from_be_bytes(*word))
}

fn from(bytes: &[u8], at: usize) -> Result<&[u8], IpError> {
    bytes.get(at..).ok_or(IpError::Truncated)
}
