//! Network links as small composable elements: rate, delay, queues, loss.
//!
//! An element takes packets in ([`Link::handle_packet`]) and gives them back later
//! ([`Link::poll_departure`]) or never (it says why: [`DropReason`]). It has one pending event
//! however many packets it holds. Elements are generic over what they carry: the simulator sends
//! 16-byte handles through them, a real-time emulator whole packets, and with [`Datagram`]s an
//! element is a [`Machine`] like any other (see [`LinkMachine`]).
//!
//! [`Datagram`]: udccp_base::Datagram
//! [`Machine`]: udccp_base::Machine

#![forbid(unsafe_code)]

mod chain;
mod histogram;
mod limit;
mod link;
mod loss;
mod machine;
mod packet;
mod rate_delay;
mod serializer;
mod stats;

pub use chain::Chain;
pub use histogram::DelayHistogram;
pub use limit::{Backlog, QueueLimit};
pub use link::{Drops, Link};
pub use loss::RandomLoss;
pub use machine::LinkMachine;
pub use packet::Packet;
pub use rate_delay::{RateDelay, RateDelayConfig};
pub use stats::{DropReason, LinkStats, Tally};
