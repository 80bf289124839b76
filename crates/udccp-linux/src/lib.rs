//! Runs scenarios in a real Linux kernel, in virtual time: the last one that has DCCP, as User-Mode
//! Linux.
//!
//! Each run boots a new guest. In it, every host and router of the scenario is a network namespace,
//! links are `tbf`, `netem` and the kernel's own queues, and agents ([`udccp_agent`]) run the
//! flows: the kernel's TCP and DCCP, UDP, or the sockets of crate `udccp`. Time stands still during
//! computation, so a run does not depend on how fast or busy the host is. Randomness in the guest
//! comes from the run's seed: the same seed gives the same record.
//!
//! ```text
//! host:  scenario -> Plan -> guest -> packets and answer -> udccp_sim::RunResult -> Record
//! guest: Plan -> namespaces, wires, queues, taps, agents -> packets and answer
//! ```

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod answer;
mod backend;
mod boot;
mod error;
mod guest;
mod kernel;
mod reservation;
mod run;

pub use boot::{GuestTask, boot, stop_all, sweep};
pub use error::LinuxError;
pub use guest::{in_guest, init};
pub use kernel::{Kernel, Setup, build_time, cache_folder, missing_tools, tool};
pub use run::{GuestRun, IDS, Linux, check_kernel, check_supported, id};
pub use udccp_testbed::{DccpStack, Error as TestbedError};
