//! A SACK TCP model with pluggable congestion control, and UDP, as pure state machines.
//!
//! The model sends real TCP headers and carries its data as byte counts
//! ([`udccp_base::Payload::Zeros`]), so its packets form a valid capture, and data costs no memory.
//!
//! | what | after |
//! |---|---|
//! | states, handshake, close, window, probes of a closed window | RFC 9293 |
//! | slow start, congestion avoidance, restart after idle | RFC 5681, with `udccp_cc`'s windows |
//! | loss recovery, limited transmit | RFC 6675, RFC 3042 |
//! | detection of lost retransmissions | as in kernels; can be turned off in [`TcpConfig`] |
//! | reduction of the window in recovery | RFC 6675, RFC 6937, or rate halving |
//! | SACK, reports of duplicates | RFC 2018, RFC 2883 |
//! | retransmission timer | RFC 6298, with the kernels' bounds |
//! | window scaling, timestamps, protection against wrapped numbers | RFC 7323 |
//! | delayed acknowledgements | RFC 9293 section 3.8.6.3, and quick ones at the start |
//! | explicit congestion notification | RFC 3168 |
//!
//! Not included: fast retransmit for peers without SACK (both ends always offer it), simultaneous
//! open, resets for segments of no connection, urgent data, keep-alive, changes of the path MTU.
//!
//! The scoreboard is four counters over a set of intervals. The cost of a segment does not grow
//! with the window (`cargo bench -p udccp-tcp`), and no segment allocates memory.

#![forbid(unsafe_code)]

mod config;
mod connection;
mod ends;
mod ranges;
mod recv;
mod send;
mod seq;
mod shared;
mod tick;
mod udp;
pub mod wire;

pub use config::{AckCounting, DelayedAck, LossDetection, RttSampling, TcpConfig, WindowReduction};
pub use connection::{CloseReason, State, TcpStats};
pub use ends::{TcpReceiver, TcpSender};
pub use recv::RecvStats;
pub use send::SendStats;
pub use shared::SharedTcpConfig;
pub use udp::{UdpSender, UdpSink};
