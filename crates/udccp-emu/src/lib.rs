//! Real-time network emulator: the simulator's network between real hosts.
//!
//! A host is an anonymous network namespace with a TUN device. Packets that its programs send enter
//! the network of the scenario, which has the same links, queues and recorders as `udccp sim`;
//! packets that leave the network go to the kernel of the other host. The network is the
//! simulator's engine, run in step with `CLOCK_MONOTONIC` ([`udccp_sim::Chain::run_paced`]).
//!
//! Alternatively, this machine's kernel provides the path ([`Path::Netem`]).
//!
//! Nothing has a name outside of this process: namespaces belong to its threads, devices to its
//! open files, and programs on hosts die with it. However it ends, the kernel removes everything.
//!
//! Linux only; on other systems the crate is empty.

#![cfg(target_os = "linux")]
#![deny(unsafe_code)]

mod backend;
mod capacity;
mod clock;
mod emulate;
mod error;
mod host;
mod host_namespace;
mod input;
mod kernel;
mod options;
mod pacer;
mod packet;
mod privileges;
mod steal_time;
#[expect(unsafe_code, reason = "two system calls that no library wraps")]
mod sys;
mod testnet;
mod timing;
mod tun;

pub use backend::Emulator;
pub use clock::Clock;
pub use emulate::emulate;
pub use error::EmuError;
pub use options::{EmuOptions, Emulation, ID, NETEM_ID, Path};
pub use privileges::{Privileges, acquire, acquire_namespaces};
pub use testnet::{MAX_HOSTS, PORT, Testnet};
pub use timing::{DEADLINE, LATE_PERCENT, RATE_ERROR_PERCENT, Timing};
pub use udccp_sim::IpVersion;
pub use udccp_testbed::Error as TestbedError;
