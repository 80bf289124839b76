//! Reads and writes everything around a transport packet: IP and UDP headers, the Internet
//! checksum, and capture files.
//!
//! [`ip`] and [`udp`] convert headers to bytes and back; [`checksum`] computes their checksums.
//! `pcap` (feature `std`) reads and writes capture files. Nothing in this crate depends on DCCP or
//! TCP.

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

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
