//! Reads IP headers with their options and extension headers.

use core::net::IpAddr;

use etherparse::err::{ipv4, ipv6, ipv6_exts};
use etherparse::{
    IpNumber, Ipv4HeaderSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice, Ipv6RawExtHeaderSlice,
    ip_number,
};

use super::IpError;
use crate::checksum::PseudoHeader;

/// Extension headers in the common format that `Ipv6ExtensionsSlice` does not skip.
const OTHER_EXTENSIONS: [IpNumber; 3] = [ip_number::MOBILITY, ip_number::HIP, ip_number::SHIM6];

/// The payload of an IP packet and the fields of its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// The addresses.
    pub pseudo: PseudoHeader,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// ECN codepoint, 0 to 3: Not-ECT, ECT(1), ECT(0), CE.
    pub ecn: u8,
    /// Time to live, or hop limit.
    pub ttl: u8,
    /// Whether this is a fragment.
    pub is_fragment: bool,
    /// Length of the packet in bytes according to its header.
    pub len: usize,
    /// Length of the header in bytes, with options and extension headers.
    pub header_len: usize,
    /// The captured bytes after the header; a capture may contain only the start of a packet.
    pub payload: &'a [u8],
}

impl<'a> IpPacket<'a> {
    /// Parses the packet at the start of `bytes`. Anything after its end is padding of the link.
    ///
    /// An IPv4 Total Length of 0 means all of `bytes`: packets captured on the sending machine have
    /// 0 if the network device fills in the length.
    ///
    /// # Errors
    /// If `bytes` end within the header, or are not an IP header.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, IpError> {
        match bytes.first().ok_or(IpError::Truncated)? >> 4 {
            4 => Self::v4(bytes),
            6 => Self::v6(bytes),
            _ => Err(IpError::NotIp(0)),
        }
    }

    /// Length of the payload in bytes according to the header.
    #[inline]
    pub const fn payload_len(&self) -> usize {
        self.len - self.header_len
    }

    /// Whether the packet was captured completely.
    #[inline]
    pub const fn is_whole(&self) -> bool {
        self.payload.len() == self.payload_len()
    }

    #[inline]
    fn v4(bytes: &'a [u8]) -> Result<Self, IpError> {
        let header = Ipv4HeaderSlice::from_slice(bytes).map_err(|e| match e {
            ipv4::HeaderSliceError::Len(_) => IpError::Truncated,
            ipv4::HeaderSliceError::Content(_) => IpError::BadHeader,
        })?;
        let len = match header.total_len() {
            0 => bytes.len(),
            n => usize::from(n),
        };
        let header_len = header.slice().len();
        if len < header_len {
            return Err(IpError::BadHeader);
        }
        Ok(Self {
            pseudo: PseudoHeader::new(
                IpAddr::V4(header.source_addr()),
                IpAddr::V4(header.destination_addr()),
            ),
            protocol: header.protocol().0,
            ecn: header.ecn().value(),
            ttl: header.ttl(),
            is_fragment: header.is_fragmenting_payload(),
            len,
            header_len,
            payload: &bytes.get(..len).unwrap_or(bytes)[header_len..],
        })
    }

    fn v6(bytes: &'a [u8]) -> Result<Self, IpError> {
        let header = Ipv6HeaderSlice::from_slice(bytes).map_err(|e| match e {
            ipv6::HeaderSliceError::Len(_) => IpError::Truncated,
            ipv6::HeaderSliceError::Content(_) => IpError::BadHeader,
        })?;
        let fixed_len = header.slice().len();
        let len = fixed_len + usize::from(header.payload_length());
        let rest = &bytes.get(..len).unwrap_or(bytes)[fixed_len..];
        let extensions = Extensions::skip(header.next_header(), rest)?;
        let header_len = fixed_len + (rest.len() - extensions.payload.len());
        if header_len > len {
            return Err(IpError::BadHeader);
        }
        Ok(Self {
            pseudo: PseudoHeader::new(
                IpAddr::V6(header.source_addr()),
                IpAddr::V6(header.destination_addr()),
            ),
            protocol: extensions.protocol.0,
            ecn: header.ecn().value(),
            ttl: header.hop_limit(),
            is_fragment: extensions.is_fragment,
            len,
            header_len,
            payload: extensions.payload,
        })
    }
}

/// The result of skipping the extension headers of IPv6.
struct Extensions<'a> {
    protocol: IpNumber,
    is_fragment: bool,
    payload: &'a [u8],
}

impl<'a> Extensions<'a> {
    fn skip(first: IpNumber, rest: &'a [u8]) -> Result<Self, IpError> {
        let mut this = Self { protocol: first, is_fragment: false, payload: rest };
        loop {
            let (known, protocol, payload, error) =
                Ipv6ExtensionsSlice::from_slice_lax(this.protocol, this.payload);
            this.is_fragment |= known.is_fragmenting_payload();
            match error {
                None => {}
                // In a fragment, the bytes after the header need not be a header.
                _ if this.is_fragment => {}
                Some((ipv6_exts::HeaderSliceError::Len(_), _)) => return Err(IpError::Truncated),
                Some(_) => return Err(IpError::BadHeader),
            }
            (this.protocol, this.payload) = (protocol, payload);
            if this.is_fragment || !OTHER_EXTENSIONS.contains(&protocol) {
                return Ok(this);
            }
            let other =
                Ipv6RawExtHeaderSlice::from_slice(payload).map_err(|_| IpError::Truncated)?;
            (this.protocol, this.payload) = (other.next_header(), &payload[other.slice().len()..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::super::Ipv4Header;
    use super::*;

    fn v4() -> Vec<u8> {
        let header = Ipv4Header {
            src: [10, 1, 0, 1].into(),
            dst: [10, 2, 0, 1].into(),
            protocol: 33,
            ecn: 3,
            ttl: 9,
            identification: 0xabcd,
            payload_len: 4,
        };
        [&header.to_bytes()[..], &[1, 2, 3, 4]].concat()
    }

    /// The worked example of an IPv4 header checksum, with our fixed fields: 10.1.0.1 to 10.2.0.1,
    /// protocol 33, 24 bytes, identification 0xabcd.
    #[test]
    fn an_ipv4_header_has_the_bytes_of_rfc_791() {
        let sum: u32 = [0x4503, 24, 0xabcd, 0x4000, 0x0921, 0x0a01, 1, 0x0a02, 1].iter().sum();
        let checksum = !((sum & 0xffff) + (sum >> 16)) as u16;
        let bytes = v4();
        assert_eq!(bytes[..10], [0x45, 3, 0, 24, 0xab, 0xcd, 0x40, 0, 9, 33]);
        assert_eq!(bytes[10..12], checksum.to_be_bytes());
        assert_eq!(bytes[12..20], [10, 1, 0, 1, 10, 2, 0, 1]);
    }

    #[test]
    fn packets_round_trip() {
        let mut bytes = v4();
        bytes.extend([0; 6]);
        let packet = IpPacket::parse(&bytes).unwrap();
        assert_eq!((packet.protocol, packet.ecn, packet.ttl), (33, 3, 9));
        assert_eq!((packet.len, packet.header_len, packet.payload_len()), (24, 20, 4));
        assert_eq!((packet.payload, packet.is_whole()), (&[1, 2, 3, 4][..], true));
        let cut = IpPacket::parse(&bytes[..22]).unwrap();
        assert_eq!((cut.payload, cut.payload_len(), cut.is_whole()), (&[1, 2][..], 4, false));
    }

    #[test]
    fn inconsistent_headers_are_rejected() {
        let with = |at: usize, value: u8| {
            let mut bytes = v4();
            bytes[at] = value;
            IpPacket::parse(&bytes).map(|p| (p.len, p.is_fragment))
        };
        assert_eq!(with(0, 0x44), Err(IpError::BadHeader), "a header of 16 bytes");
        assert_eq!(with(0, 0x55), Err(IpError::NotIp(0)));
        assert_eq!(with(0, 0x47), Err(IpError::Truncated), "options beyond the end");
        assert_eq!(with(3, 19), Err(IpError::BadHeader), "shorter than its header");
        assert_eq!(with(3, 0), Ok((24, false)), "left to the device");
        assert_eq!((with(6, 0x20), with(7, 1)), (Ok((24, true)), Ok((24, true))));
        assert_eq!(IpPacket::parse(&[]), Err(IpError::Truncated));
    }
}
