//! A SACK TCP model with pluggable congestion control, and UDP, as pure state machines.
//!
//! The model sends real TCP headers and carries its data as byte counts
//! ([`udccp_base::Payload::Zeros`]): what it writes is a valid capture, what it costs is a
//! counter. Loss recovery is RFC 6675 on a scoreboard of intervals whose cost does not grow with
//! the window; timers are RFC 6298, options RFC 7323, growth and cut are `udccp_cc`'s.

#![forbid(unsafe_code)]

mod config;
mod connection;
mod ends;
mod ranges;
mod recv;
mod send;
mod seq;
mod udp;
pub mod wire;

pub use config::{AckCounting, DelayedAck, RttSampling, TcpConfig, WindowReduction};
pub use connection::{CloseReason, State, TcpStats};
pub use ends::{TcpReceiver, TcpSender};
pub use recv::RecvStats;
pub use send::SendStats;
pub use udp::{UdpSender, UdpSink};
