//! One end of one flow of a scenario, played on a real host: kernel TCP with any congestion control
//! that the kernel has, UDP, the DCCP of a Linux kernel, or the sockets of crate `udccp`.
//!
//! An agent is a process inside the network namespace (or the guest) that is its host. Its
//! orchestrator speaks with it in JSON lines:
//!
//! | line | from | says |
//! |---|---|---|
//! | [`AgentSpec`] | orchestrator | what to play |
//! | [`AgentEvent::Ready`] | agent | its sockets are bound |
//! | [`Order::Go`] | orchestrator | time zero of the scenario, on `CLOCK_MONOTONIC` |
//! | [`AgentEvent::Report`] | agent | what it saw, at the end of the run; it then ends by itself |
//! | [`AgentEvent::Error`] | agent | instead of the above: the error, and its exit code |
//!
//! The end of its standard input before the report means that the orchestrator has died: the agent
//! ends at once. [`AgentProcess`] is the orchestrator's side of this, [`serve`] the agent's.
//!
//! Applications are the [`Source`](udccp_sim::Source)s of the simulator, drawing from the same
//! seeds. A message of a live source carries when it was made, so that the receiver knows how long
//! it took; both ends read one clock.

#![deny(unsafe_code)]

mod clock;
mod device;
mod error;
mod host;
mod join;
mod kernel;
mod play;
mod report;
mod serve;
mod socket;
mod spec;
mod sys;

/// Which code plays on real networks: a hash over the sources of agents, sockets and backends.
pub const CODE: &str = env!("UDCCP_BACKENDS_HASH");

pub use clock::monotonic_ns;
pub use error::AgentError;
pub use host::{AgentProcess, HostError};
pub use join::{both_ends, from_ends};
pub use kernel::{available_congestion, check_congestion, has_dccp, kernel_congestion, tcp_gaps};
pub use report::{
    AgentEvent, AgentReport, AgentSample, ConnectionReport, OfferedReport, Order, TimesReport,
};
pub use serve::serve;
pub use spec::{
    AgentProtocol, AgentSpec, DccpStack, DccpTransport, OurTransport, PlayDccp, Role, SCHEMA,
    start_of,
};
