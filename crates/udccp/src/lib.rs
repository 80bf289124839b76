//! DCCP sockets in userspace: congestion-controlled datagrams with message boundaries, over UDP
//! (RFC 6773) or raw IP, for programs on any kernel.
//!
//! ```no_run
//! use udccp::{Connection, Listener, ServiceCode};
//!
//! # async fn example() -> Result<(), udccp::Error> {
//! let service: ServiceCode = "SC:test".parse().expect("a valid service code");
//! let listener = Listener::bind("127.0.0.1:5004".parse().expect("an address"), service)?;
//! tokio::spawn(async move {
//!     let connection = listener.accept().await?;
//!     while let Some(message) = connection.recv().await? {
//!         connection.send(message).await?;
//!     }
//!     Ok::<_, udccp::Error>(())
//! });
//! let connection = Connection::connect(([127, 0, 0, 1], 5004), service).await?;
//! connection.send("hello").await?;
//! assert_eq!(connection.recv().await?.as_deref(), Some(&b"hello"[..]));
//! connection.close().await
//! # }
//! ```
//!
//! - [`Connection`], [`Listener`], [`Endpoint`]: async sockets on tokio.
//! - [`blocking`]: the same names without async; one thread drives any number of connections of a
//!   UDP socket.
//! - Descriptors for `poll` and `epoll` ([`Readiness`]) and poll functions, for other runtimes.
//!
//! # Features
//! - `tokio` (default): the async sockets. Without it this crate has the blocking ones, and no
//!   runtime among its dependencies.
//! - `futures`: `Stream` for connections, and `Sink` (`SendHalf::into_sink`).
//!
//! # What arrives, and what does not
//! A message arrives whole or not at all, and no message is sent twice. The sender is slowed down
//! to avoid losses where possible: on the path by congestion control, at a slow reader by the
//! receive queue (see [`Options::recv_queue`]), and at the send queue, where `send` waits.
//! [`Connection::stats`] counts what was lost nevertheless.
//!
//! # Addresses
//! By default one port number is both the UDP port and the DCCP port. An [`Address`] can give two
//! different ones, and it can name a service over raw IP, which is reached without UDP.

#![deny(unsafe_code)]

mod address;
pub mod blocking;
mod congestion;
mod connecting;
#[cfg(feature = "tokio")]
mod connection;
#[cfg(feature = "tokio")]
mod coop;
#[cfg(feature = "tokio")]
mod driver;
#[cfg(feature = "tokio")]
mod endpoint;
mod endpoint_options;
pub mod errno;
mod error;
mod event;
#[cfg(feature = "tokio")]
mod halves;
mod io;
#[cfg(feature = "tokio")]
mod listener;
mod message;
mod methods;
mod names;
mod options;
mod process;
#[cfg_attr(not(unix), path = "no_readiness.rs")]
mod readiness;
mod shared;
mod stats;
#[cfg(feature = "futures")]
mod streams;
mod stun;

pub use address::{Address, AddressError, DCCP_UDP_PORT};
pub use congestion::{Ccid2Options, Ccid3Options, Ccid4Options};
#[cfg(feature = "tokio")]
pub use connecting::Connecting;
#[cfg(feature = "tokio")]
pub use connection::Connection;
#[cfg(feature = "tokio")]
pub use endpoint::Endpoint;
pub use endpoint_options::{AnswerForHost, EndpointOptions};
pub use error::{Error, TryRecvError, TrySendError};
pub use event::ConnectionEvent;
#[cfg(feature = "tokio")]
pub use halves::{RecvHalf, SendHalf};
pub use io::{kernel_has_dccp, probe_ecn};
#[cfg(feature = "tokio")]
pub use listener::Listener;
pub use message::{Outgoing, Received, ReceivedInto};
pub use options::{Options, PmtuProbing};
pub use process::{Process, close_all};
#[cfg(unix)]
pub use readiness::{EarlyReadiness, Readiness};
pub use stats::{ConnectionStats, IoInfo, IoStats, ReceiverState, SenderState};
#[cfg(feature = "futures")]
pub use streams::MessageSink;
pub use stun::is_stun;
pub use udccp_proto::{
    CloseReason, ConfigError, ConnectError, ConnectionCounters, DropCode, DropCounters, DropReason,
    EndpointStats, InitCookies, MessageFate, QueuePolicy, State,
};
pub use udccp_wire::{ResetCode, ServiceCode, ServiceCodeError};

/// Congestion control: the types that settings of the CCIDs are made of, and the interfaces for
/// CCIDs and window algorithms ([`ccid::CustomAlgorithm`]) of your own. They are the types of the
/// protocol core, in which these run. [`ccid::Duration`] and [`ccid::Instant`] are its times; they
/// never read a clock.
pub mod ccid {
    pub use udccp_base::{DataRate, Duration, Ecn, Instant};
    pub use udccp_cc::{
        AckSample, Algorithm, BbrConfig, BicConfig, CompoundConfig, CongestionControl, CubicConfig,
        CustomAlgorithm, Cut, Delivery, GrowthAfterCut, HighSpeedConfig, HtcpConfig, HyblaConfig,
        IdlePolicy, IllinoisConfig, InitialWindow, LpConfig, Needs, RateSample, RtoConfig,
        ScalableConfig, VegasConfig, VenoConfig, WestwoodConfig, YeahConfig,
    };
    pub use udccp_proto::DropCode;
    pub use udccp_proto::ccid::*;
    pub use udccp_proto::features::Location;
    pub use udccp_wire::{FeatureNumber, OptionRef, Seqno};
}

/// Compiles the code of the guides, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/sockets.md")]
struct SocketsGuide;
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guides/raw-ip.md")]
struct RawIpGuide;

/// Compiles the code of the README, so that it stays correct.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
