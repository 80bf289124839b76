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
    /// What became of a message with a token. Each has one such event, before `Closed`; there is
    /// none once the application has released the connection.
    MessageFate {
        /// The token of the message.
        token: u64,
        /// What became of it.
        fate: MessageFate,
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
    /// The peer has not confirmed the end within the time to linger, or that of three Closes where
    /// it is longer. Closes go on, and [`Self::Closed`] says how it ends.
    CloseUnconfirmed,
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

/// What became of a message, as far as its sender can know.
///
/// An Ack Vector (CCID 2, and others where it was agreed on) reports each packet. Without one, CCID
/// 3 and 4 report loss intervals (RFC 4342 section 8.6): packets outside the lossy parts arrived;
/// the first packet of a lossy part was lost, where no router can have marked it; of the others in
/// a lossy part nothing is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageFate {
    /// The peer's host received it.
    Acknowledged,
    /// The peer's host received it, but its application did not have it as it should (Data Dropped,
    /// RFC 4340 section 11.7).
    PeerDropped(DropCode),
    /// Congestion control took it for lost: three later packets were reported and it was not (RFC
    /// 4341 section 5), or nothing was reported until the transmit or nofeedback timer ran out. It
    /// may have arrived all the same, late or with its report lost.
    Lost,
    /// It never left.
    Dropped(DropReason),
    /// It left, and nothing reported it, or the report does not tell single packets apart, or the
    /// connection ended first.
    Unknown,
}
