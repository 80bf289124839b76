//! Reads and writes UDP headers (RFC 768).

use crate::checksum::PseudoHeader;

/// IP protocol number of UDP.
pub const IP_PROTOCOL: u8 = 17;

/// Length of a UDP header in bytes.
pub const HEADER_LEN: usize = 8;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UdpHeader {
    /// Source port.
    pub src_port: u16,
    /// Destination port.
    pub dst_port: u16,
    /// Length of header and payload in bytes.
    pub length: u16,
    /// Checksum; 0 if the sender computed none.
    pub checksum: u16,
}

impl UdpHeader {
    /// Reads the header at the start of `bytes`, and returns it with everything after it. `None` if
    /// there are fewer than eight bytes. Checks nothing.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (&[a, b, c, d, e, f, g, h], rest) = bytes.split_first_chunk()?;
        let header = Self {
            src_port: u16::from_be_bytes([a, b]),
            dst_port: u16::from_be_bytes([c, d]),
            length: u16::from_be_bytes([e, f]),
            checksum: u16::from_be_bytes([g, h]),
        };
        Some((header, rest))
    }

    /// Length of the payload in bytes according to the header.
    #[inline]
    pub const fn payload_len(&self) -> usize {
        (self.length as usize).saturating_sub(HEADER_LEN)
    }

    /// Whether the checksum is correct for the complete payload: `parts` followed by `zeros` zero
    /// bytes. False for a checksum of 0, which means that there is none.
    #[inline]
    pub fn is_valid(&self, pseudo: &PseudoHeader, parts: &[&[u8]], zeros: usize) -> bool {
        let mut sum = pseudo.sum(IP_PROTOCOL, usize::from(self.length));
        sum.add(&self.to_bytes());
        let mut len = zeros;
        for part in parts {
            sum.add(part);
            len += part.len();
        }
        len == self.payload_len() && sum.is_valid()
    }

    /// Whether the field contains only the sum of the pseudo-header. Packets captured on the
    /// sending machine look like this if the network device fills in the rest.
    pub fn is_left_to_device(&self, pseudo: &PseudoHeader) -> bool {
        let sum = pseudo.sum(IP_PROTOCOL, usize::from(self.length));
        self.checksum == !sum.checksum()
    }

    /// The header with checksum for a payload of `parts` followed by `zeros` zero bytes; `None` if
    /// the payload is too long for UDP.
    #[inline]
    pub fn around(
        ports: (u16, u16),
        pseudo: &PseudoHeader,
        parts: &[&[u8]],
        zeros: usize,
    ) -> Option<Self> {
        let len = HEADER_LEN + zeros + parts.iter().map(|part| part.len()).sum::<usize>();
        let length = u16::try_from(len).ok()?;
        let header = Self { src_port: ports.0, dst_port: ports.1, length, checksum: 0 };
        let mut sum = pseudo.sum(IP_PROTOCOL, len);
        sum.add(&header.to_bytes());
        for part in parts {
            sum.add(part);
        }
        // Zero would mean that there is no checksum. All ones has the same value in the sum.
        let checksum = match sum.checksum() {
            0 => 0xffff,
            n => n,
        };
        Some(Self { checksum, ..header })
    }

    /// The header's bytes.
    #[inline]
    pub const fn to_bytes(self) -> [u8; HEADER_LEN] {
        let [a, b] = self.src_port.to_be_bytes();
        let [c, d] = self.dst_port.to_be_bytes();
        let [e, f] = self.length.to_be_bytes();
        let [g, h] = self.checksum.to_be_bytes();
        [a, b, c, d, e, f, g, h]
    }
}
