//! Computes the Internet checksum (RFC 1071) with its pseudo-header (RFC 9293 section 3.1).

use core::net::IpAddr;

use crate::chunks::{chunks, chunks_and_tail};

/// The network addresses that a transport checksum covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PseudoHeader {
    /// Source address.
    pub src: IpAddr,
    /// Destination address.
    pub dst: IpAddr,
}

/// An incomplete ones' complement sum of 16-bit words.
///
/// Words are added in the machine's byte order, 32 or more bits at a time. Only the result is
/// converted to network order, which gives the same sum (RFC 1071 section 2).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    acc: u64,
    /// Whether an odd number of bytes was added, so that the next byte is the low half of a word.
    odd: bool,
}

impl PseudoHeader {
    /// The pseudo-header for a packet from `src` to `dst`.
    #[inline]
    pub const fn new(src: IpAddr, dst: IpAddr) -> Self {
        Self { src, dst }
    }

    /// The sum over the pseudo-header of a packet of `len` bytes and this IP protocol number.
    /// IPv4-mapped IPv6 addresses give the same sum as the IPv4 addresses in them.
    #[inline]
    pub fn sum(&self, protocol: u8, len: usize) -> Sum {
        let mut sum = Sum::new();
        sum.add_address(self.src);
        sum.add_address(self.dst);
        sum.acc += u64::from((len as u32).to_be()) + u64::from(u16::from(protocol).to_be());
        sum
    }
}

impl Sum {
    /// The empty sum.
    #[inline]
    pub const fn new() -> Self {
        Self { acc: 0, odd: false }
    }

    #[inline]
    fn add_address(&mut self, address: IpAddr) {
        match address {
            IpAddr::V4(a) => self.acc += u64::from(u32::from_ne_bytes(a.octets())),
            IpAddr::V6(a) => self.acc += words(&a.octets()),
        }
    }

    /// Adds the eight bytes of `word` in network order, at an even offset.
    #[inline]
    pub const fn add_u64(&mut self, word: u64) {
        self.acc += halves(word.to_be());
    }

    /// The same sum after padding to a whole word.
    #[inline]
    #[must_use]
    pub const fn at_even_place(self) -> Self {
        Self { acc: self.acc, odd: false }
    }

    /// Adds another sum that ended at an even offset.
    #[inline]
    pub const fn add_sum(&mut self, other: Self) {
        self.acc += other.acc;
    }

    /// Adds sixteen bytes at an even offset.
    #[inline]
    pub fn add_16(&mut self, bytes: &[u8; 16]) {
        for word in chunks(bytes) {
            self.acc += halves(u64::from_ne_bytes(word));
        }
    }

    /// Adds 32-bit words, given as numbers, at an even offset.
    #[inline]
    pub fn add_words(&mut self, words: &[u32]) {
        for word in words {
            self.acc += u64::from(word.to_be());
        }
    }

    /// Adds the length field to a sum whose pseudo-header was computed with length 0.
    #[inline]
    pub const fn add_length(&mut self, len: usize) {
        self.acc += (len as u32).to_be() as u64;
    }

    /// Adds bytes as if they followed those added before.
    #[inline]
    pub fn add(&mut self, bytes: &[u8]) {
        let piece = if bytes.len() < WIDE { words(bytes) } else { wide_words(bytes) };
        self.acc += if self.odd { u64::from(fold(piece).swap_bytes()) } else { piece };
        self.odd ^= bytes.len() % 2 == 1;
    }

    /// Adds `n` zero bytes, which only change the offset of what follows.
    #[inline]
    pub const fn add_zeros(&mut self, n: usize) {
        self.odd ^= n % 2 == 1;
    }

    /// The checksum field's value: the complement of the sum.
    #[inline]
    pub const fn checksum(self) -> u16 {
        u16::from_be(!fold(self.acc))
    }

    /// The sum as a number, to which other numbers can be added for [`Self::checksum_of_numbers`].
    #[inline]
    pub const fn number(self) -> u16 {
        u16::from_be(fold(self.acc))
    }

    /// The checksum field's value for a sum of words given as numbers: of 16, 32 or 64 bits each,
    /// in any order, with the carries from the 64th bit added. A header that is still in registers
    /// needs no conversion of its words.
    #[inline]
    pub const fn checksum_of_numbers(sum: u64) -> u16 {
        !fold(sum)
    }

    /// Whether the bytes added, including a correct checksum field, sum up to all ones.
    #[inline]
    pub const fn is_valid(self) -> bool {
        fold(self.acc) == 0xffff
    }
}

/// Shortest input in bytes for which the wide loop pays off.
const WIDE: usize = 64;

/// The sum is below 2^45 for inputs below 2^16 bytes, so some thousands of results can be added.
#[inline]
fn words(bytes: &[u8]) -> u64 {
    let (groups, tail) = chunks_and_tail(bytes);
    let mut acc = 0;
    for chunk in groups {
        acc += halves(u64::from_ne_bytes(chunk));
    }
    acc + tail_words(tail)
}

/// The sum of up to seven bytes, by fixed-size loads instead of a copy.
#[inline]
fn tail_words(tail: &[u8]) -> u64 {
    let (mut fours, tail) = chunks_and_tail(tail);
    let (mut twos, tail) = chunks_and_tail(tail);
    let four = fours.next().map_or(0, |b| u64::from(u32::from_ne_bytes(b)));
    let two = twos.next().map_or(0, |b| u64::from(u16::from_ne_bytes(b)));
    let one = tail.first().map_or(0, |&b| u64::from(u16::from_ne_bytes([b, 0])));
    four + two + one
}

#[inline]
const fn halves(word: u64) -> u64 {
    (word & 0xffff_ffff) + (word >> 32)
}

/// Keeps four independent sums, so no addition waits for the previous one.
#[inline(never)]
fn wide_words(bytes: &[u8]) -> u64 {
    let (blocks, tail) = chunks_and_tail::<32>(bytes);
    let mut lanes = [0_u64; 4];
    for block in blocks {
        for (lane, word) in lanes.iter_mut().zip(chunks(&block)) {
            *lane += halves(u64::from_ne_bytes(word));
        }
    }
    lanes.iter().sum::<u64>() + words(tail)
}

/// The 16-bit ones' complement sum of the four 16-bit words in `acc`. If a number is added to
/// itself with its halves exchanged, the upper half becomes the sum of both halves, with the carry.
#[inline]
const fn fold(acc: u64) -> u16 {
    let acc = (acc.wrapping_add(acc.rotate_left(32)) >> 32) as u32;
    (acc.wrapping_add(acc.rotate_left(16)) >> 16) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    /// Every number of four words has the sum of its words, and only zero has the sum zero.
    #[test]
    fn folding_adds_words_with_carries() {
        let halves = [0, 1, 2, 0x7fff, 0x8000, 0xfffe, 0xffff];
        for (a, b) in halves.iter().flat_map(|a| halves.map(|b| (*a, b))) {
            for (c, d) in halves.iter().flat_map(|c| halves.map(|d| (*c, d))) {
                let sum: u64 = a + b + c + d;
                let expected = if sum == 0 { 0 } else { (sum - 1) % 0xffff + 1 };
                assert_eq!(u64::from(fold(a << 48 | b << 32 | c << 16 | d)), expected);
            }
        }
    }

    /// The definition: adds word by word.
    fn slow(bytes: &[u8]) -> u16 {
        let mut acc = 0_u32;
        for pair in bytes.chunks(2) {
            acc += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
            acc = (acc & 0xffff) + (acc >> 16);
        }
        !(acc as u16)
    }

    #[test]
    fn the_checksum_agrees_with_its_definition() {
        let bytes: Vec<u8> = (0..1500_u32).map(|i| (i * i * 31 + i * 7 + 0xf3) as u8).collect();
        for len in (0..300).chain([1399, 1400, 1500]) {
            let mut sum = Sum::new();
            sum.add(&bytes[..len]);
            assert_eq!(sum.checksum(), slow(&bytes[..len]), "length {len}");
            for cut in [0, 1, 2, 3, 7, 8, 129] {
                let cut = cut.min(len);
                let mut pieces = Sum::new();
                pieces.add(&bytes[..cut]);
                pieces.add(&bytes[cut..len]);
                assert_eq!(pieces.checksum(), sum.checksum(), "length {len} cut at {cut}");
            }
        }
    }

    #[test]
    fn the_checksum_agrees_with_the_worked_example_of_rfc_1071() {
        let mut sum = Sum::new();
        sum.add(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
        assert_eq!(sum.checksum(), !0xddf2);
        let mut words = Sum::new();
        words.add_words(&[0x0001_f203, 0xf4f5_f6f7]);
        assert_eq!(words.checksum(), !0xddf2);
        assert_eq!((words.number(), Sum::checksum_of_numbers(0x0001_f203)), (0xddf2, !0xf204));
    }

    #[test]
    fn numbers_have_the_checksum_of_their_bytes() {
        let halves = [0, 1, 0xff, 0x100, 0x7fff_ffff, 0xffff_0000, u32::MAX];
        for (a, b) in halves.iter().flat_map(|a| halves.map(|b| (*a, b))) {
            let (mut before, mut all) = (Sum::new(), Sum::new());
            before.add(&a.to_be_bytes());
            all.add_words(&[a, b, a, u32::MAX]);
            let words = [b, a, u32::MAX].map(u64::from);
            let sum = u64::from(before.number()) + words.iter().sum::<u64>();
            assert_eq!(Sum::checksum_of_numbers(sum), all.checksum(), "{a:x} {b:x}");
        }
    }

    #[test]
    fn length_can_be_added_after_the_data() {
        let pseudo = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
        for len in [0, 20, 1500, 65_536, 70_001] {
            let mut later = pseudo.sum(6, 0);
            later.add_length(len);
            assert_eq!(later.checksum(), pseudo.sum(6, len).checksum(), "{len}");
        }
    }

    #[test]
    fn checksums_of_ones_and_of_an_odd_number_of_zeros() {
        let mut sum = Sum::new();
        sum.add(&[0xff; 1501]);
        assert_eq!(sum.checksum(), slow(&[0xff; 1501]));
        let (mut by_number, mut by_bytes) = (Sum::new(), Sum::new());
        by_number.add_zeros(5);
        by_bytes.add(&[0; 5]);
        by_number.add(&[1, 2, 3]);
        by_bytes.add(&[1, 2, 3]);
        assert_eq!(by_number.checksum(), by_bytes.checksum());
    }

    #[test]
    fn ipv4_mapped_addresses_have_the_checksum_of_ipv4() {
        let v4 = PseudoHeader::new([10, 1, 0, 1].into(), [10, 2, 0, 1].into());
        let map = |a: IpAddr| match a {
            IpAddr::V4(a) => IpAddr::V6(a.to_ipv6_mapped()),
            v6 => v6,
        };
        let v6 = PseudoHeader::new(map(v4.src), map(v4.dst));
        assert_eq!(v4.sum(33, 100).checksum(), v6.sum(33, 100).checksum());
    }
}
