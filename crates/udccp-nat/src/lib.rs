//! A network address and port translator for DCCP according to RFC 5597, without clock or I/O.
//!
//! A [`Nat`] takes datagrams that arrive on either [`Side`] and returns those that leave. It
//! translates native DCCP (addresses, ports, header checksum) and DCCP inside UDP (with UDP's
//! ports), keeps one mapping for each internal endpoint whatever its peers, filters incoming
//! packets, and expires idle mappings.
//!
//! [`HostBehindNat`] combines a host and a NAT into one [`Transport`](udccp_base::Transport); the
//! simulator sees only the NAT's address. A `HostBehindNat` within another is a host behind two
//! NATs.
//!
//! ```
//! use udccp_nat::{Nat, NatConfig};
//!
//! let nat = Nat::new(NatConfig::new("192.0.2.1".parse().unwrap()));
//! assert_eq!(nat.mappings(), 0);
//! ```

#![forbid(unsafe_code)]

mod config;
mod host;
mod icmp;
mod nat;
mod packet;
mod table;

pub use config::{Filtering, NatConfig};
pub use host::HostBehindNat;
pub use nat::{Nat, NatStats, Side};
