//! Runs one end of one flow of a scenario on a real host: kernel TCP with any of the kernel's
//! congestion controls, UDP, the DCCP of a Linux kernel, or the sockets of crate `udccp`.
//!
//! An agent is a process inside the network namespace (or the guest) that serves as its host. It
//! exchanges lines of JSON with its orchestrator:
//!
//! | line | sender | meaning |
//! |---|---|---|
//! | [`AgentSpec`] | orchestrator | what to run |
//! | [`AgentEvent::Ready`] | agent | its sockets are bound |
//! | [`Order::Go`] | orchestrator | the scenario's time zero, on `CLOCK_MONOTONIC` |
//! | [`AgentEvent::Report`] | agent | measurements, at the end of the run; the agent then exits |
//! | [`AgentEvent::Error`] | agent | instead of the above: the error and its exit code |
//!
//! If standard input ends before the report is sent, the orchestrator has died, and the agent exits
//! at once. [`AgentProcess`] is the orchestrator's side of this protocol, [`serve`] the agent's.
//!
//! Applications are the [`Source`](udccp_sim::Source)s of the simulator, drawing from the same
//! seeds. A message of a live source carries its creation time, from which the receiver computes
//! its delay: both ends read the same clock.

#![deny(unsafe_code)]

mod clock;
mod device;
mod error;
mod flow_end;
mod host;
mod join;
mod kernel;
mod report;
mod serve;
mod socket;
mod spec;
mod sys;

/// Identifies the code of agents, sockets and backends: a hash over their sources.
pub const CODE: &str = env!("UDCCP_BACKENDS_HASH");

pub use clock::monotonic_ns;
pub use error::AgentError;
pub use host::{AgentProcess, HostError};
pub use join::{both_ends, from_ends};
pub use kernel::{
    available_congestion, check_congestion, has_dccp, kernel_congestion, unsupported_tcp_options,
};
pub use report::{
    AgentEvent, AgentReport, AgentSample, ConnectionReport, OfferedReport, Order, TimesReport,
};
pub use serve::serve;
pub use spec::{
    AgentProtocol, AgentSpec, DccpImplementation, DccpStack, DccpTransport, OurTransport, Role,
    SCHEMA, start_of,
};
