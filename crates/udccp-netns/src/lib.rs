//! Makes hosts out of Linux network namespaces, without names and without programs: namespaces,
//! their cables, addresses and routes, and the counters of their queues, by netlink.
//!
//! Nothing of a namespace outlives this program: it ends with the last thread, process, device or
//! open file of it.

#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod host;
mod namespace;
mod queues;
mod routed;
mod tables;

pub use host::Host;
pub use namespace::Namespace;
pub use queues::{Discipline, QueueReader};
pub use routed::RoutedPair;
pub use tables::{CableEnd, LOOPBACK, Tables, TcpMetrics, interface};
