//! Defines what an endpoint reports to its driver.

use crate::ackvec::DropCode;
use crate::error::CloseReason;
use crate::ids::{ConnectionId, ListenerId};

/// Something happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection.
    pub id: ConnectionId,
    /// What happened.
    pub kind: EventKind,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The handshake of a `connect` is done; data flows both ways.
    Connected,
    /// A client's handshake is done; `accept` on this listener gives the connection.
    Incoming(ListenerId),
    /// The receive queue was empty and now is not. Read until it is empty again.
    Readable,
    /// After a `SendError::Full`: the send queue has fallen to half its limit.
    Writable,
    /// A message that was accepted will not be delivered.
    MessageDropped {
        /// Why.
        reason: DropReason,
        /// Its payload length in bytes.
        bytes: u32,
    },
    /// The peer's application reads no more (Drop Code 1, RFC 4340 section 11.7.2): nothing more
    /// can be sent.
    PeerShutdownRead,
    /// The peer received data, but its application did not have it as it should (Data Dropped, RFC
    /// 4340 section 11.7).
    PeerDropped {
        /// Why. A code without a meaning yet comes as `Reserved(4)`.
        code: DropCode,
        /// Data packets.
        packets: u64,
    },
    /// The peer can hardly keep up (Slow Receiver, RFC 4340 section 11.6). Told again only after a
    /// round-trip time without it.
    PeerSlow,
    /// The largest payload that fits in one packet is another now (RFC 4340 section 14).
    MaxMessageSize {
        /// In bytes.
        bytes: usize,
    },
    /// The connection ended for the application: nothing more can be sent, and `recv` gives
    /// what is still queued and then the same reason.
    Closed(CloseReason),
}

/// Why an accepted message was dropped before it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// Its deadline passed.
    Expired,
    /// A message of higher priority took its place (`QueuePolicy::DropLowest`).
    Displaced,
    /// The connection ended first (reset, abort, or the linger time of `close` was over).
    ConnectionEnded,
    /// The peer's application reads no more.
    PeerShutdownRead,
    /// The path's packet size shrank under it.
    TooLarge,
}
