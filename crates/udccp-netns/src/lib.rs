//! Creates hosts from Linux network namespaces by netlink, without names and without external
//! programs: namespaces, cables, addresses, routes, and queue counters.
//!
//! No namespace outlives this program: it ends with its last thread, process, device or open file.

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
