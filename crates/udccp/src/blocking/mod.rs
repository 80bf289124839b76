//! The same sockets without async: calls block the thread that makes them.
//!
//! No runtime is needed. One thread, started with the first socket, drives all connections of a UDP
//! socket; calls only move messages in and out of queues. While a single thread waits for a
//! message, and no other thread waits for anything, that thread drives the socket itself.
//!
//! ```no_run
//! use udccp::ServiceCode;
//! use udccp::blocking::{Connection, Listener};
//!
//! let service: ServiceCode = "SC:test".parse().expect("a valid service code");
//! let listener = Listener::bind("127.0.0.1:5004".parse().expect("an address"), service)?;
//! let connection = Connection::connect(([127, 0, 0, 1], 5004), service)?;
//! connection.send("hello")?;
//! let server = listener.accept()?;
//! assert_eq!(server.recv()?.as_deref(), Some(&b"hello"[..]));
//! connection.close()?;
//! # Ok::<(), udccp::Error>(())
//! ```

mod alarm;
mod bell;
mod connecting;
mod connection;
mod driver;
mod endpoint;
mod park;
mod shared_driver;

pub use connecting::Connecting;
pub use connection::Connection;
pub use endpoint::{Endpoint, Listener};
pub use park::wait;
use park::wait_for;
pub(crate) use shared_driver::SharedDriver;
