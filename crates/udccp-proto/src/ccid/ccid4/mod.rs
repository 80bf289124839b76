//! CCID 4, TCP-Friendly Rate Control for small packets (RFC 5622, with TFRC-SP as in RFC 4828).
//!
//! It is CCID 3 with four changes: the throughput equation takes segments of 1460 bytes, whatever
//! the packets hold; the headers are paid for out of the rate; packets leave 10 ms apart at least;
//! and a loss interval of at most two round-trip times counts each of its losses, which Dropped
//! Packets reports. The halves are those of [`crate::ccid::ccid3`], configured so.

mod config;
#[cfg(test)]
mod tests;

pub use config::Ccid4Config;

use crate::ccid::ccid3::{Ccid3Receiver, Ccid3Sender, SegmentSizeRule};

/// The CCID's number.
pub const NUMBER: u8 = 4;

/// A sender of packets of up to `packet_size_bytes` of data.
pub fn sender(config: &Ccid4Config, packet_size_bytes: u32) -> Ccid3Sender {
    let small = config.small_packets(packet_size_bytes);
    let mut tfrc = config.tfrc.clone();
    tfrc.segment_size = SegmentSizeRule::Mean;
    Ccid3Sender::with(NUMBER, &tfrc, packet_size_bytes, Some(small))
}

/// A receiver that has seen nothing, on a path whose packets hold up to `packet_size_bytes`.
pub fn receiver(config: &Ccid4Config, packet_size_bytes: u32) -> Ccid3Receiver {
    let small = config.small_packets(packet_size_bytes);
    Ccid3Receiver::with(NUMBER, &config.tfrc, Some(small))
}
