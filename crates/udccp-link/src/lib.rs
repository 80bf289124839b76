//! Network links as small composable elements: rate, delay, queues, loss.
//!
//! An element takes packets in ([`Link::handle_packet`]) and returns them later
//! ([`Link::poll_departure`]), or drops them and says why ([`DropReason`]). It has one pending
//! event, however many packets it holds. Elements are generic over the packets: the simulator sends
//! handles of 16 bytes through them, a real-time emulator whole packets. With [`Datagram`]s, an
//! element is a [`Machine`] like any other (see [`LinkMachine`]).
//!
//! [`Datagram`]: udccp_base::Datagram
//! [`Machine`]: udccp_base::Machine

#![forbid(unsafe_code)]

mod chain;
mod change;
mod config;
mod delay;
mod filter;
mod gather;
mod histogram;
mod limit;
mod line;
mod link;
mod loss;
mod machine;
mod opportunities;
mod packet;
mod queue;
mod rate_delay;
mod scheduled;
mod serializer;
mod stats;
mod transmitter;

pub use chain::Chain;
pub use change::Change;
pub use config::{LinkConfig, QueueConfig};
pub use delay::{Delay, DelayConfig, Reorder, Variation};
pub use filter::{Corrupt, Duplicate, Filter, Mtu, Rule, Verdict};
pub use gather::Gather;
pub use histogram::DelayHistogram;
pub use limit::{Backlog, QueueLimit};
pub use link::{Drops, Link};
pub use loss::{GilbertElliott, Loss, LossConfig};
pub use machine::LinkMachine;
pub use opportunities::{Opportunities, TraceDriven};
pub use packet::Packet;
pub use queue::{
    Adaptive, CoDel, CoDelConfig, DropHead, DropTail, FqCoDel, FqCoDelConfig, Pie, PieConfig,
    Queue, Red, RedConfig, RedUnit, Waiting,
};
pub use rate_delay::{RateDelay, RateDelayConfig, Times};
pub use scheduled::Scheduled;
pub use stats::{Counter, DropReason, LinkStats, Tally};
pub use transmitter::Transmitter;
