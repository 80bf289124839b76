//! A network address and port translator for DCCP, as RFC 5597 asks for, without clock or I/O.
//!
//! A [`Nat`] takes datagrams on either [`Side`] and says what leaves on which. It translates native
//! DCCP (addresses, ports, header checksum) and DCCP inside UDP (where the ports are UDP's), keeps
//! one mapping for each endpoint behind it whatever that talks to, filters what comes from outside,
//! and forgets what was idle for too long.
//!
//! [`Behind`] is a host behind a NAT as one [`Transport`](udccp_base::Transport): what the
//! simulator sees is the NAT's address. A `Behind` within a `Behind` is a host behind two of them.
//!
//! ```
//! use udccp_nat::{Nat, NatConfig};
//!
//! let nat = Nat::new(NatConfig::new("192.0.2.1".parse().unwrap()));
//! assert_eq!(nat.mappings(), 0);
//! ```

#![forbid(unsafe_code)]

mod behind;
mod config;
mod icmp;
mod nat;
mod packet;
mod table;

pub use behind::Behind;
pub use config::{Filtering, NatConfig};
pub use nat::{Nat, NatStats, Side};
