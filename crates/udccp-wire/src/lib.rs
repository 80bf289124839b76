//! DCCP packets as bytes: views, owned packets, options, checksums, UDP encapsulation.
//!
//! There are two types of packets. [`PacketView`] is a checked, borrowed view of received bytes. It
//! never panics, whatever the bytes are. [`Packet`] owns its parts; parsing what it emits returns
//! an equal packet. The fast path needs neither allocation nor [`Packet`]: it reads with
//! [`PacketView`] and [`Options`], and writes with [`Emitter`].
//!
//! Included are all packet types of RFC 4340 and the Listen packet of RFC 5596, every option of RFC
//! 4340, RFC 4342 and RFC 5622, and the UDP encapsulation of RFC 6773.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod crc32c;
mod emit;
mod error;
mod features;
pub mod ip;
mod option;
mod options;
mod packet;
mod reset;
mod run;
mod seq;
mod service;
mod text;
mod types;
pub mod udp;
mod usual;
mod view;

pub use emit::{Emitter, Header, HeaderFull, HeaderKind};
pub use error::{OptionError, Reaction, WireError};
pub use features::{FeatureInfo, FeatureNumber, Reconciliation};
pub use option::{LossInterval, OptionRef, RawOption, kind as option_kind};
pub use options::{Options, RawOptions};
pub use packet::{OptionValue, Packet};
pub use reset::ResetCode;
pub use run::DataRun;
pub use seq::Seqno;
pub use service::{ServiceCode, ServiceCodeError};
pub use types::PacketType;
pub use udccp_packet::checksum::{self, PseudoHeader};
pub use usual::{Checksum, DataTemplate, PlainAck, PlainData, UsualAck};
pub use view::{PacketView, RawSeq};

/// IP protocol number of DCCP (RFC 4340 section 19).
pub const IP_PROTOCOL: u8 = 33;

/// Longest possible DCCP header in bytes: the Data Offset counts 255 words of four bytes
/// (RFC 4340 section 5).
pub const MAX_HEADER_LEN: usize = 1020;

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
