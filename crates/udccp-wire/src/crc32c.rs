//! CRC-32c, the Castagnoli polynomial, of the Data Checksum option (RFC 4340 section 9.3).

use udccp_packet::chunks::chunks_and_tail;

/// The polynomial with its bits reflected.
const POLY: u32 = 0x82f6_3b78;

/// Eight bytes are processed per step, each with its own table.
static TABLES: [[u32; 256]; 8] = tables();

/// `x^(8 * 2^k)` modulo the polynomial. Multiplying by it appends `2^k` zero bytes.
static ZERO_POWERS: [u32; 64] = zero_powers();

/// A CRC in progress. Data is added in pieces; zero bytes are added by their count.
#[derive(Clone, Copy, Debug)]
pub struct Crc32c(u32);

impl Default for Crc32c {
    fn default() -> Self {
        Self::new()
    }
}

impl Crc32c {
    /// The CRC of no bytes, which is zero.
    pub const fn new() -> Self {
        Self(u32::MAX)
    }

    /// Appends bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        let (groups, tail) = chunks_and_tail(bytes);
        for [a, b, c, d, e, f, g, h] in groups {
            let [a, b, c, d] = (u32::from_le_bytes([a, b, c, d]) ^ self.0).to_le_bytes();
            let at = |table: usize, byte: u8| TABLES[table][usize::from(byte)];
            self.0 = at(7, a) ^ at(6, b) ^ at(5, c) ^ at(4, d);
            self.0 ^= at(3, e) ^ at(2, f) ^ at(1, g) ^ at(0, h);
        }
        for &byte in tail {
            self.0 = TABLES[0][usize::from(self.0 as u8 ^ byte)] ^ self.0 >> 8;
        }
    }

    /// Appends `n` zero bytes in time proportional to the logarithm of `n`.
    pub fn update_zeros(&mut self, n: usize) {
        let mut left = n as u64;
        while left != 0 {
            self.0 = multiply(self.0, ZERO_POWERS[left.trailing_zeros() as usize]);
            left &= left - 1;
        }
    }

    /// The CRC of everything appended.
    pub const fn finish(self) -> u32 {
        !self.0
    }
}

/// The CRC-32c of these bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    let mut crc = Crc32c::new();
    crc.update(bytes);
    crc.finish()
}

/// Multiplies by `x` modulo the polynomial; the coefficient of `x^0` is the top bit.
const fn times_x(a: u32) -> u32 {
    a >> 1 ^ if a & 1 == 1 { POLY } else { 0 }
}

/// The product of two polynomials modulo the polynomial.
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        if a >> bit & 1 == 1 {
            product ^= b;
        }
        b = times_x(b);
    }
    product
}

const fn tables() -> [[u32; 256]; 8] {
    let mut t = [[0; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = times_x(crc);
            bit += 1;
        }
        t[0][i] = crc;
        i += 1;
    }
    let mut k = 1;
    while k < 8 {
        let mut i = 0;
        while i < 256 {
            let before: u32 = t[k - 1][i];
            t[k][i] = before >> 8 ^ t[0][(before & 0xff) as usize];
            i += 1;
        }
        k += 1;
    }
    t
}

const fn zero_powers() -> [u32; 64] {
    let mut powers = [0; 64];
    let mut x8: u32 = 1 << 31;
    let mut i = 0;
    while i < 8 {
        x8 = times_x(x8);
        i += 1;
    }
    let mut k = 0;
    while k < 64 {
        powers[k] = x8;
        x8 = multiply(x8, x8);
        k += 1;
    }
    powers
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn crc32c_of_known_vectors() {
        assert_eq!(crc32c(b""), 0);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // The iSCSI vectors of RFC 3720 appendix B.4.
        assert_eq!(crc32c(&[0; 32]).to_le_bytes(), [0xaa, 0x36, 0x91, 0x8a]);
        assert_eq!(crc32c(&[0xff; 32]).to_le_bytes(), [0x43, 0xab, 0xa8, 0x62]);
        let up: Vec<u8> = (0..32).collect();
        assert_eq!(crc32c(&up).to_le_bytes(), [0x4e, 0x79, 0xdd, 0x46]);
        let down: Vec<u8> = (0..32).rev().collect();
        assert_eq!(crc32c(&down).to_le_bytes(), [0x5c, 0xdb, 0x3f, 0x11]);
    }

    #[test]
    fn zeros_by_number_equal_zeros_as_bytes() {
        for n in [0, 1, 2, 3, 7, 8, 100, 1400, 65_535] {
            let mut short = Crc32c::new();
            short.update(b"head");
            let mut long = short;
            short.update_zeros(n);
            long.update(&Vec::from_iter(core::iter::repeat_n(0, n)));
            assert_eq!(short.finish(), long.finish(), "{n} zeros");
        }
    }
}
