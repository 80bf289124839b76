//! One record of the Loss Intervals option.

use udccp_packet::chunks::chunks;

/// One loss interval of CCID 3 (RFC 4342 section 8.6.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LossInterval {
    /// Packets in the lossless part, 24 bits.
    pub lossless_length: u32,
    /// Parity of the data packets' nonces over the lossless part.
    pub nonce_echo: bool,
    /// Packets in the lossy part, 23 bits.
    pub loss_length: u32,
    /// Data packets in the interval, 24 bits.
    pub data_length: u32,
}

impl LossInterval {
    /// Length in bytes.
    pub const LEN: usize = 9;

    /// Decodes an interval.
    pub const fn from_bytes(b: [u8; Self::LEN]) -> Self {
        Self {
            lossless_length: u32::from_be_bytes([0, b[0], b[1], b[2]]),
            nonce_echo: b[3] & 0x80 != 0,
            loss_length: u32::from_be_bytes([0, b[3] & 0x7f, b[4], b[5]]),
            data_length: u32::from_be_bytes([0, b[6], b[7], b[8]]),
        }
    }

    /// Encodes the interval. A length that is too large for its field becomes the field's largest
    /// value.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let [_, a, b, c] = self.lossless_length.min(0xff_ffff).to_be_bytes();
        let [_, d, e, f] = self.loss_length.min(0x7f_ffff).to_be_bytes();
        let [_, g, h, i] = self.data_length.min(0xff_ffff).to_be_bytes();
        [a, b, c, d | (u8::from(self.nonce_echo) << 7), e, f, g, h, i]
    }

    /// The intervals in the bytes of [`crate::OptionRef::LossIntervals`], newest first.
    pub fn iter(intervals: &[u8]) -> impl ExactSizeIterator<Item = Self> + '_ {
        chunks(intervals).map(Self::from_bytes)
    }
}
