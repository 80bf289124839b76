//! Reads and writes what surrounds a transport packet: IP and UDP headers, the Internet checksum,
//! and capture files.
//!
//! [`ip`] and [`udp`] turn headers into bytes and back, [`checksum`] sums up what they cover.
//! `pcap` (feature `std`) reads and writes capture files. Nothing here knows DCCP or TCP.

#![no_std]
#![forbid(unsafe_code)]

#[cfg(any(feature = "std", test))]
extern crate std;

pub mod checksum;
pub mod chunks;
pub mod ip;
#[cfg(feature = "std")]
pub mod pcap;
pub mod udp;

pub use checksum::PseudoHeader;

/// Compiles the code of the README, so that the page stays true.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
