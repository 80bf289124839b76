//! Errors of commands to an endpoint, and reasons for the end of a connection.

use core::fmt;

use udccp_base::{Duration, Message};
use udccp_wire::{ResetCode, ServiceCode};

/// Why an endpoint cannot listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListenError {
    /// Another listener already serves this service code on this address and port.
    #[error("port {port} already serves service code {service}")]
    InUse {
        /// The DCCP port.
        port: u16,
        /// The service code that is taken.
        service: ServiceCode,
    },
    /// The list of service codes is empty (RFC 4340 section 8.1.2).
    #[error("a listener needs at least one service code")]
    NoService,
    /// The invalid service code 4294967295 was given.
    #[error("service code {} is reserved as invalid", u32::MAX)]
    InvalidService,
    /// The addresses of an invitation are not unicast addresses of the same IP version.
    #[error("an invitation needs true unicast addresses of one IP version at both ends")]
    BadAddress,
    /// The connection settings contradict each other or the RFC.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Why an endpoint cannot start a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Local and remote address are of different IP versions.
    #[error("local and remote address are of different IP versions")]
    FamilyMismatch,
    /// The local or remote IP address is unspecified, or the remote one is multicast. The checksum
    /// includes both addresses (RFC 4340 section 9.1).
    #[error("a connection needs true unicast addresses at both ends")]
    BadAddress,
    /// The invalid service code 4294967295 was given.
    #[error("service code {} is reserved as invalid", u32::MAX)]
    InvalidService,
    /// There is a connection with these addresses and ports, or one in TIMEWAIT.
    #[error("a connection with these addresses and ports exists already")]
    InUse,
    /// No ephemeral port towards this peer is free.
    #[error("no ephemeral port towards this peer is free")]
    NoFreePort,
    /// The endpoint has `max_connections` connections.
    #[error("the endpoint holds as many connections as it may")]
    TooManyConnections,
    /// The data does not fit in a Request with its options.
    #[error("{len} bytes of data are too many for a Request, which takes {max}")]
    DataTooLong {
        /// Bytes given.
        len: usize,
        /// Bytes that fit.
        max: usize,
    },
    /// The connection settings contradict each other or the RFC.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// Which setting is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// A list of CCIDs is empty, or has more than 250 entries.
    #[error("the list of CCIDs must have 1 to 250 entries")]
    CcidList,
    /// The CCID is not in the registry.
    #[error("CCID {0} is not registered")]
    UnknownCcid(u8),
    /// The Sequence Window is outside 32 to 2^46 - 1 (RFC 4340 section 7.5.2).
    #[error("sequence window {0} is outside 32..=70368744177663")]
    SequenceWindow(u64),
    /// The checksum coverage is outside 0 to 15 (RFC 4340 section 9.2).
    #[error("checksum coverage {0} is outside 0..=15")]
    ChecksumCoverage(u8),
    /// The path MTU leaves no room for data.
    #[error("a path MTU of {0} bytes leaves no room for data")]
    PathMtu(u16),
    /// Quick-Start needs IP options, which UDP sockets do not send.
    #[error("Quick-Start needs IP options, which DCCP inside UDP cannot send")]
    QuickStartOverUdp,
    /// The connection would be given up before a keep-alive probe is sent.
    #[error(
        "an idle limit of {} s ends connections before a keep-alive of {} s asks the peer; set \
         idle_limit above keep_alive",
        idle_limit.as_secs_f64(),
        keep_alive.as_secs_f64()
    )]
    IdleLimit {
        /// The keep-alive time.
        keep_alive: Duration,
        /// The idle limit.
        idle_limit: Duration,
    },
    /// The keep-alive time or the idle limit is zero.
    #[error("keep_alive and idle_limit must be above zero; None stands for never")]
    NoTime,
    /// The limit of a queue is zero.
    #[error("a queue limit of zero can hold nothing")]
    EmptyQueue,
}

/// Why a message was not queued. Each case contains the message.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The send queue is full. Offer the message again after the `Writable` event.
    #[error("the send queue is full")]
    Full(Message),
    /// The message does not fit in one packet of this path.
    #[error("a message of {} bytes exceeds the maximum of {max} bytes", message.payload.len())]
    TooLarge {
        /// The largest payload that fits now, in bytes.
        max: usize,
        /// The message.
        message: Message,
    },
    /// The connection is closing or closed, or there is none with this id.
    #[error("the connection is not open")]
    NotOpen(Message),
}

impl SendError {
    /// The message that was not queued.
    pub fn into_message(self) -> Message {
        match self {
            Self::Full(message) | Self::TooLarge { message, .. } | Self::NotOpen(message) => {
                message
            }
        }
    }
}

impl fmt::Debug for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The payload would make the text unreadable.
        write!(f, "SendError({self})")
    }
}

/// Why nothing more can be received.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecvError {
    /// The connection has ended, and all data was read.
    #[error("the connection ended: {0}")]
    Closed(CloseReason),
    /// `shutdown_read` was called, so nothing more is delivered.
    #[error("the application has stopped listening")]
    ReadShutdown,
    /// There is no connection with this id.
    #[error("no such connection")]
    UnknownConnection,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// This side called `close`, and the peer confirmed.
    #[error("closed by this side")]
    LocalClose,
    /// The peer closed.
    #[error("closed by the peer")]
    PeerClose,
    /// This side called `abort`.
    #[error("aborted by this side")]
    LocalAbort,
    /// The peer sent a Reset other than Closed (RFC 4340 section 5.6 lists the codes and the
    /// meaning of the three data bytes).
    #[error("reset by the peer: {code:?}")]
    PeerReset {
        /// The peer's reason.
        code: ResetCode,
        /// The three data bytes of the Reset.
        data: [u8; 3],
    },
    /// The peer violated the protocol in a way that ends a connection; we sent this Reset.
    #[error("reset because of a protocol error of the peer: {code:?}")]
    ProtocolError {
        /// The code that was sent.
        code: ResetCode,
        /// The data bytes that were sent.
        data: [u8; 3],
    },
    /// No Request was answered.
    #[error("no answer from the peer")]
    ConnectTimeout,
    /// The handshake was answered but not completed in time.
    #[error("the handshake did not finish in time")]
    HandshakeTimeout,
    /// The peer was silent for too long: the idle limit, the keep-alive probes, or
    /// `silence_timeout`.
    #[error("the peer fell silent")]
    PeerSilent,
    /// This side called `close`, and the peer did not confirm.
    #[error("the peer did not confirm the close")]
    CloseTimeout,
    /// The network reported that the peer cannot be reached.
    #[error("the peer is unreachable")]
    Unreachable,
    /// The peer's host reported that nothing listens on the peer's port: during the handshake, or
    /// repeatedly after it.
    #[error("nothing listens on the peer's port any more")]
    PortUnreachable,
}

impl CloseReason {
    /// Whether the connection ended in order, by a close of either side.
    pub const fn is_orderly(self) -> bool {
        matches!(self, Self::LocalClose | Self::PeerClose)
    }
}
