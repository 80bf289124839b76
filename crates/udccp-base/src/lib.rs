//! The base of all other crates: time in integer nanoseconds, units as types, named random streams
//! from one seed, the datagram that machines exchange, and the interface that drives them.
//!
//! Nothing here, or in any crate below the drivers, reads a clock, opens a socket or draws an
//! unseeded random number: time and randomness are arguments.

#![forbid(unsafe_code)]

mod datagram;
mod header;
mod machine;
mod maybe;
mod quantity;
mod quick_start;
mod ring;
mod seed;
mod time;
mod transport;
mod units;

pub use datagram::{Datagram, Ecn, Message, Payload};
pub use header::HeaderBytes;
pub use machine::{Machine, Sent};
pub use maybe::{MaybeDuration, MaybeInstant, MaybeNumber};
pub use quantity::QuantityError;
pub use quick_start::{QuickStart, QuickStartFunction};
pub use ring::Ring;
pub use seed::{Rng, Seed};
pub use time::{Duration, Instant};
pub use transport::{AppPort, Probe, SendOutcome, Transport};
pub use units::{DataRate, DataSize};

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
