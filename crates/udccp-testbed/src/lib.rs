//! A scenario in a Linux kernel: hosts and routers are network namespaces, links are `tbf`, `netem`
//! and the kernel's own queues, and agents ([`udccp_agent`]) play the flows.
//!
//! ```text
//! scenario -> Plan -> namespaces, wires, queues, taps, agents -> packets and looks -> RunResult
//! ```
//!
//! Which kernel that is, is not said here: that of a guest in virtual time, or this machine's own.
//! Namespaces have no names. They live in files that this process has open, and in its agents, so
//! that nothing of them is left when it ends.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod error;
mod event;
mod needs;
mod observations;
mod plan;
mod replay;
mod runner;

pub use error::Error;
pub use needs::lacks;
pub use observations::{Observations, short_of_buffers};
pub use plan::{Built, DccpStack, Plan, PlanOptions, SCHEMA, plan};
pub use replay::result;
pub use runner::{RunContext, leave, play};
