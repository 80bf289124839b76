//! Runs a scenario in a Linux kernel: hosts and routers are network namespaces, links are `tbf`,
//! `netem` and the kernel's own queues, and agents ([`udccp_agent`]) run the flows.
//!
//! ```text
//! scenario -> Plan -> namespaces, wires, queues, taps, agents -> packets and samples -> RunResult
//! ```
//!
//! The kernel can be that of a guest in virtual time, or this machine's own. Namespaces have no
//! names: only open files of this process and its agents refer to them, so nothing remains when it
//! ends.

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
pub use needs::missing_features;
pub use observations::{Observations, short_of_buffers};
pub use plan::{Built, DccpStack, Plan, PlanOptions, SCHEMA, plan};
pub use replay::result;
pub use runner::{RunContext, enter_empty_namespace, run};
