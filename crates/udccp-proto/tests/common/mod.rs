//! Two endpoints and a small deterministic network between them.

#![allow(dead_code, unreachable_pub, unused_imports, reason = "every test file uses its own part")]

pub mod capture;
pub mod net;
pub mod packet;
pub mod pair;
pub mod path;
pub mod scenes;
pub mod trains;
pub mod world;
pub mod wrap;

pub use net::{Impairments, Net};
pub use pair::{CLIENT, Pair, SERVER, connect_options, listen_config, service};
