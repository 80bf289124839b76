//! Events that an endpoint reports to its driver.

use std::collections::VecDeque;

use crate::ackvec::DropCode;
use crate::error::CloseReason;
use crate::ids::{ConnectionId, ListenerId};

/// An event of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The connection.
    pub id: ConnectionId,
    /// What happened.
    pub kind: EventKind,
}

/// Events for the driver, oldest first; `None` if it wants none. In a box, since of many endpoints
/// most have a driver that wants none.
pub(crate) type Events = Option<Box<VecDeque<Event>>>;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// The handshake of a `connect` is complete. Data can flow both ways.
    Connected,
    /// The handshake of a client is complete. `accept` on this listener returns the connection.
    Incoming(ListenerId),
    /// The receive queue was empty and is no longer. Read until it is empty again.
    Readable,
    /// After a `SendError::Full`: the send queue has fallen to half its limit.
    Writable,
    /// A message that was queued was dropped and will not be delivered.
    MessageDropped {
        /// Why.
        reason: DropReason,
        /// Its payload length in bytes.
        bytes: u32,
    },
    /// What happened to a message with a token. There is one such event for each, before `Closed`,
    /// but none after the application has released the connection.
    MessageFate {
        /// The token of the message.
        token: u64,
        /// The fate of the message.
        fate: MessageFate,
    },
    /// The peer's application has stopped reading (Drop Code 1, RFC 4340 section 11.7.2). Nothing
    /// more can be sent.
    PeerShutdownRead,
    /// The peer received data but did not deliver it to its application, or delivered it damaged
    /// (Data Dropped, RFC 4340 section 11.7).
    PeerDropped {
        /// Why. Codes that are not defined yet are reported as `Reserved(4)`.
        code: DropCode,
        /// How many data packets.
        packets: u64,
    },
    /// The peer can hardly keep up (Slow Receiver, RFC 4340 section 11.6). Reported again only
    /// after a round-trip time without it.
    PeerSlow,
    /// The largest payload that fits in one packet has changed (RFC 4340 section 14).
    MaxMessageSize {
        /// The new size in bytes.
        bytes: usize,
    },
    /// The peer has not confirmed a close within the linger time, or the time of three Closes if
    /// that is longer. Closes are still sent, and [`Self::Closed`] reports how it ends.
    CloseUnconfirmed,
    /// The connection has ended. Nothing more can be sent; `recv` returns what is still queued and
    /// then this reason.
    Closed(CloseReason),
}

/// Why a queued message was dropped before it was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DropReason {
    /// Its deadline passed.
    Expired,
    /// A message of higher priority took its place (`QueuePolicy::DropLowest`).
    Displaced,
    /// The connection ended first (reset, abort, or the linger time of `close` was over).
    ConnectionEnded,
    /// The peer's application has stopped reading.
    PeerShutdownRead,
    /// The path's packets became too small for it.
    TooLarge,
}

/// The fate of a message, as far as its sender can know it.
///
/// An Ack Vector (CCID 2, and others if it was negotiated) reports each packet. Without one, CCIDs
/// 3 and 4 report loss intervals (RFC 4342 section 8.6): packets outside their lossy parts arrived;
/// the first packet of a lossy part was lost, unless a router may have marked it; nothing is known
/// of the other packets in a lossy part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageFate {
    /// The peer's host received it.
    Acknowledged,
    /// The peer's host received it but did not deliver it to its application, or delivered it
    /// damaged (Data Dropped, RFC 4340 section 11.7).
    PeerDropped(DropCode),
    /// It counts as lost: three later packets were reported but it was not (RFC 4341 section 5), or
    /// the transmit or nofeedback timer expired without a report. It may have arrived nevertheless,
    /// late or with its report lost.
    Lost,
    /// It was never sent.
    Dropped(DropReason),
    /// It was sent, but nothing reported it, or the report does not distinguish single packets, or
    /// the connection ended first.
    Unknown,
}
