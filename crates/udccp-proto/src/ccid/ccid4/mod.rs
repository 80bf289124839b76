//! CCID 4, TCP-Friendly Rate Control for small packets (RFC 5622, with TFRC-SP as in RFC 4828).
//!
//! CCID 4 is CCID 3 with four changes. The throughput equation uses segments of 1460 bytes,
//! whatever the packets hold. Headers count against the rate. Packets are sent at least 10 ms
//! apart. In a loss interval of at most two round-trip times, every loss counts, which the option
//! Dropped Packets reports. The halves are those of [`crate::ccid::ccid3`], configured accordingly.

mod config;
#[cfg(test)]
mod tests;

pub use config::Ccid4Config;

use crate::ccid::ccid3::{Ccid3Receiver, Ccid3Sender, SegmentSizeRule};

/// The CCID's number.
pub const NUMBER: u8 = 4;

/// Creates a sender half for packets of up to `packet_size_bytes` of data.
pub fn sender(config: &Ccid4Config, packet_size_bytes: u32) -> Ccid3Sender {
    let small = config.small_packets(packet_size_bytes);
    let mut tfrc = config.tfrc.clone();
    tfrc.segment_size = SegmentSizeRule::Mean;
    Ccid3Sender::with(NUMBER, &tfrc, packet_size_bytes, Some(small))
}

/// Creates a receiver half on a path whose packets hold up to `packet_size_bytes` of data.
pub fn receiver(config: &Ccid4Config, packet_size_bytes: u32) -> Ccid3Receiver {
    let small = config.small_packets(packet_size_bytes);
    Ccid3Receiver::with(NUMBER, &config.tfrc, Some(small))
}
