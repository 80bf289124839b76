//! The Quick-Start option of IP (RFC 4782 section 3.1).

use crate::units::DataRate;

/// The purpose of a Quick-Start option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuickStartFunction {
    /// Asks the routers for a rate.
    Request = 0,
    /// Reports the rate that the routers approved.
    Report = 8,
}

/// The Quick-Start option of a packet's IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickStart {
    /// Request or report.
    pub function: QuickStartFunction,
    /// Rate Request or Rate Report, 0 to 15; see [`QuickStart::rate_of`].
    pub rate: u8,
    /// QS TTL of a request: each router that takes part decrements it.
    pub ttl: u8,
    /// QS Nonce, 30 bits.
    pub nonce: u32,
}

/// Bits per second of rate 1, halved.
const UNIT_BPS: u64 = 40_000;

impl QuickStart {
    /// Option type over IPv4.
    pub const TYPE: u8 = 25;
    /// Length of the option in bytes.
    pub const LEN: usize = 8;

    /// The rate that a number stands for: 40 kbit/s times 2^n, or zero for 0.
    pub const fn rate_of(n: u8) -> DataRate {
        let n = if n > 15 { 15 } else { n };
        DataRate::from_bits_per_sec(if n == 0 { 0 } else { UNIT_BPS << n })
    }

    /// The smallest number with a rate of at least `wanted`; 15 if there is none.
    pub fn number_above(wanted: DataRate) -> u8 {
        (0..15).find(|&n| Self::rate_of(n).bits_per_sec() >= wanted.bits_per_sec()).unwrap_or(15)
    }

    /// The largest number with a rate of at most `limit`.
    pub fn number_below(limit: DataRate) -> u8 {
        (0..=15)
            .rev()
            .find(|&n| Self::rate_of(n).bits_per_sec() <= limit.bits_per_sec())
            .unwrap_or(0)
    }

    /// Lowers the rate of a request, and changes the part of the nonce that would prove a higher
    /// rate (RFC 4782 section 3.4). The highest two bits belong to the step from 15 to 14.
    pub fn lower_to(&mut self, rate: u8) {
        while self.rate > rate {
            self.nonce ^= 0b01 << (2 * (u32::from(self.rate) - 1));
            self.rate -= 1;
        }
    }

    /// The part of a nonce that proves this rate: the bits of the steps from it down to 0.
    pub const fn nonce_for_rate(nonce: u32, rate: u8) -> u32 {
        nonce & (((1_u64 << (2 * rate as u32)) - 1) as u32)
    }

    /// The option's bytes over IPv4.
    pub const fn to_bytes(self) -> [u8; Self::LEN] {
        let [a, b, c, d] = (self.nonce << 2).to_be_bytes();
        let what = (self.function as u8) << 4 | (self.rate & 15);
        let ttl = if matches!(self.function, QuickStartFunction::Request) { self.ttl } else { 0 };
        [Self::TYPE, Self::LEN as u8, what, ttl, a, b, c, d]
    }

    /// Parses the option; `None` if the bytes are another option.
    pub const fn parse(bytes: [u8; Self::LEN]) -> Option<Self> {
        let [kind, len, what, ttl, a, b, c, d] = bytes;
        let function = match what >> 4 {
            0 => QuickStartFunction::Request,
            8 => QuickStartFunction::Report,
            _ => return None,
        };
        if kind != Self::TYPE || len != Self::LEN as u8 {
            return None;
        }
        let nonce = u32::from_be_bytes([a, b, c, d]) >> 2;
        Some(Self { function, rate: what & 15, ttl, nonce })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_double_from_80_kbit_to_1_3_gbit() {
        assert_eq!(QuickStart::rate_of(0).bits_per_sec(), 0);
        assert_eq!(QuickStart::rate_of(1).bits_per_sec(), 80_000);
        assert_eq!(QuickStart::rate_of(15).bits_per_sec(), 1_310_720_000);
        assert_eq!(QuickStart::number_above(DataRate::from_bits_per_sec(80_001)), 2);
        assert_eq!(QuickStart::number_below(DataRate::from_bits_per_sec(79_999)), 0);
        assert_eq!(QuickStart::number_above(DataRate::from_bits_per_sec(u64::MAX)), 15);
        assert_eq!(QuickStart::number_below(DataRate::from_bits_per_sec(u64::MAX)), 15);
    }

    #[test]
    fn the_option_is_8_bytes_and_a_lowered_rate_shows_in_the_nonce() {
        let function = QuickStartFunction::Request;
        let nonce = 0x2aaa_5555;
        let mut option = QuickStart { function, rate: 9, ttl: 200, nonce };
        assert_eq!(option.to_bytes()[..4], [25, 8, 9, 200]);
        assert_eq!(QuickStart::parse(option.to_bytes()), Some(option));
        option.lower_to(7);
        assert_eq!(option.rate, 7);
        assert_eq!(
            QuickStart::nonce_for_rate(option.nonce, 7),
            QuickStart::nonce_for_rate(nonce, 7)
        );
        for rate in 8..=15 {
            assert_ne!(
                QuickStart::nonce_for_rate(option.nonce, rate),
                QuickStart::nonce_for_rate(nonce, rate)
            );
        }
        assert_eq!(QuickStart::parse([24, 8, 9, 0, 0, 0, 0, 0]), None);
        assert_eq!(QuickStart::parse([25, 8, 0x19, 0, 0, 0, 0, 0]), None);
    }
}
