//! The ones' complement checksum over pseudo-header, header and data (RFC 1071, RFC 9293 3.1).

use core::net::IpAddr;

/// A running sum. Zero bytes add nothing, which is why data that is only a count costs nothing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum(u64);

impl Sum {
    /// The part of the pseudo-header that is the same for every packet of a flow.
    pub(crate) fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8) -> Self {
        let sum = Self(u64::from(protocol));
        match (src, dst) {
            (IpAddr::V4(s), IpAddr::V4(d)) => sum.add(&s.octets()).add(&d.octets()),
            (s, d) => sum.add(&v6_octets(s)).add(&v6_octets(d)),
        }
    }

    /// Adds the length field of the pseudo-header.
    #[must_use]
    pub(crate) const fn add_length(self, len: usize) -> Self {
        // The IPv6 field has 32 bits; both halves count.
        Self(self.0 + (len as u64 >> 16) + (len as u64 & 0xffff))
    }

    /// Adds bytes that start at an even position.
    #[inline]
    #[must_use]
    pub(crate) fn add(self, bytes: &[u8]) -> Self {
        let mut sum = self.0;
        let (words, rest) = bytes.as_chunks::<4>();
        for w in words {
            sum += u64::from(u32::from_be_bytes(*w));
        }
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        Self(sum + u64::from(u32::from_be_bytes(last)))
    }

    /// Adds words that start at an even position.
    #[inline]
    #[must_use]
    pub(crate) fn add_words(self, words: &[u32]) -> Self {
        Self(words.iter().fold(self.0, |sum, w| sum + u64::from(*w)))
    }

    /// The checksum field for this sum.
    pub(crate) const fn finish(self) -> u16 {
        // Four folds bring any 64-bit sum below 2^16.
        let mut s = (self.0 >> 32) + (self.0 & 0xffff_ffff);
        s = (s >> 16) + (s & 0xffff);
        s = (s >> 16) + (s & 0xffff);
        s = (s >> 16) + (s & 0xffff);
        !(s as u16)
    }
}

const fn v6_octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(v4) => v4.to_ipv6_mapped().octets(),
        IpAddr::V6(v6) => v6.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_worked_example_of_rfc_1071() {
        let sum = Sum::default().add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.finish(), !0xddf2);
    }

    #[test]
    fn large_sums_fold_completely() {
        for bytes in [vec![0xff; 65_535], vec![0xff; 3], vec![0xfe, 0xff, 0xff]] {
            let mut slow: u32 = 0;
            for pair in bytes.chunks(2) {
                slow += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
                slow = (slow & 0xffff) + (slow >> 16);
            }
            assert_eq!(Sum::default().add(&bytes).finish(), !(slow as u16));
        }
    }
}
