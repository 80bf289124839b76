//! DCCP endpoint and connection as a pure state machine (RFC 4340, RFC 4341).
//!
//! An [`Endpoint`] holds all connections and listeners of one host. It reads no clock and opens no
//! socket: a driver passes it datagrams and the time, and sends what it returns.
//!
//! ```text
//! loop {
//!     while let Some(d) = endpoint.poll_transmit(now) { socket.send(d) }
//!     while let Some(e) = endpoint.poll_event() { application.tell(e) }
//!     wait for a datagram, a command, or endpoint.poll_timeout();
//!     endpoint.handle_datagram(now, d) | handle_timeout(now) | send, recv, close...
//! }
//! ```
//!
//! Acknowledgements are decided when the endpoint is drained. A driver that passes in several
//! datagrams before it drains the endpoint gets one acknowledgement for all of them.

#![forbid(unsafe_code)]

pub mod ackvec;
pub mod ccid;
mod config;
mod connection;
mod count;
mod endpoint;
mod error;
mod event;
pub mod features;
mod ids;
mod shared_config;
mod state;
mod stats;
mod tuple;

pub use ackvec::DropCode;
pub use config::{
    ConnectOptions, ConnectionConfig, EndpointConfig, InitCookies, InviteOptions, ListenConfig,
    MAX_SEQUENCE_WINDOW, MIN_SEQUENCE_WINDOW, PmtuProbing, QueuePolicy, QuickStartConfig,
};
pub use connection::Delivery;
pub use endpoint::{Endpoint, ListenerState, PathReport, Train};
pub use error::{CloseReason, ConfigError, ConnectError, ListenError, RecvError, SendError};
pub use event::{DropReason, Event, EventKind, MessageFate};
pub use ids::{ConnectionId, ListenerId};
pub use shared_config::SharedConfig;
pub use state::State;
pub use stats::{ConnectionCounters, ConnectionStats, DropCounters, EndpointStats};
pub use tuple::FourTuple;
