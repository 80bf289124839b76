//! Events of connections.

use std::ffi::c_int;

use udccp::{ConnectionEvent, DropCode, DropReason, MessageFate};

use crate::error::{Failure, status};
use crate::pointer::{self, Place};
use crate::socket::Socket;

/// A message that was queued was dropped and will not be delivered; `amount` is its length in
/// bytes.
pub const UDCCP_EVENT_MESSAGE_DROPPED: c_int = 1;
/// What happened to the message with this `token`. There is exactly one such event for each message
/// with a token that was queued, and it is kept until it is read.
pub const UDCCP_EVENT_MESSAGE_FATE: c_int = 2;
/// The peer received data but did not deliver it to its application, or only damaged; `amount` is
/// the number of messages, and `reason` the Drop Code (RFC 4340 section 11.7).
pub const UDCCP_EVENT_PEER_DROPPED: c_int = 3;
/// The peer can hardly keep up: do not send faster than now.
pub const UDCCP_EVENT_PEER_SLOW: c_int = 4;
/// The size of the largest message that fits in one packet has changed; `amount` is the new one in
/// bytes.
pub const UDCCP_EVENT_MAX_MESSAGE_SIZE: c_int = 5;
/// The peer's application reads no more. Nothing more can be sent.
pub const UDCCP_EVENT_PEER_SHUTDOWN_READ: c_int = 6;

/// The peer's host received it.
pub const UDCCP_FATE_ACKNOWLEDGED: c_int = 1;
/// The peer's host received it but did not deliver it to its application, or only damaged; `amount`
/// is the Drop Code.
pub const UDCCP_FATE_PEER_DROPPED: c_int = 2;
/// It counts as lost. It may have arrived nevertheless.
pub const UDCCP_FATE_LOST: c_int = 3;
/// It was never sent; `amount` is one of `UDCCP_DROP_EXPIRED` to `UDCCP_DROP_TOO_LARGE`.
pub const UDCCP_FATE_DROPPED: c_int = 4;
/// It was sent, and no report said what happened to it, or the connection ended first.
pub const UDCCP_FATE_UNKNOWN: c_int = 5;

/// Its lifetime was over.
pub const UDCCP_DROP_EXPIRED: c_int = 1;
/// A message of higher priority took its place.
pub const UDCCP_DROP_DISPLACED: c_int = 2;
/// The connection ended first.
pub const UDCCP_DROP_ENDED: c_int = 3;
/// The peer's application reads no more.
pub const UDCCP_DROP_PEER_SHUTDOWN_READ: c_int = 4;
/// The path's packets became too small for it.
pub const UDCCP_DROP_TOO_LARGE: c_int = 5;

/// An event of a connection. All but the fates of single messages are also counted in the
/// statistics.
#[repr(C)]
pub struct Event {
    /// One of `UDCCP_EVENT_...`. Later versions may add kinds: ignore unknown ones.
    pub kind: c_int,
    /// `UDCCP_EVENT_MESSAGE_FATE`: one of `UDCCP_FATE_...`. `UDCCP_EVENT_MESSAGE_DROPPED`: one of
    /// `UDCCP_DROP_...`. `UDCCP_EVENT_PEER_DROPPED`: the Drop Code. Else 0.
    pub reason: c_int,
    /// `UDCCP_EVENT_MESSAGE_FATE`: the message's token. Else 0.
    pub token: u64,
    /// See the kinds; else 0.
    pub amount: u64,
}

const fn drop_reason(reason: DropReason) -> c_int {
    match reason {
        DropReason::Expired => UDCCP_DROP_EXPIRED,
        DropReason::Displaced => UDCCP_DROP_DISPLACED,
        DropReason::ConnectionEnded => UDCCP_DROP_ENDED,
        DropReason::PeerShutdownRead => UDCCP_DROP_PEER_SHUTDOWN_READ,
        DropReason::TooLarge => UDCCP_DROP_TOO_LARGE,
        _ => 0,
    }
}

fn fate(fate: MessageFate) -> (c_int, u64) {
    match fate {
        MessageFate::Acknowledged => (UDCCP_FATE_ACKNOWLEDGED, 0),
        MessageFate::PeerDropped(code) => (UDCCP_FATE_PEER_DROPPED, code.number().into()),
        MessageFate::Lost => (UDCCP_FATE_LOST, 0),
        MessageFate::Dropped(reason) => (UDCCP_FATE_DROPPED, drop_reason(reason) as u64),
        _ => (UDCCP_FATE_UNKNOWN, 0),
    }
}

fn to_c_event(event: ConnectionEvent) -> Option<Event> {
    let of = |kind, reason, amount| Some(Event { kind, reason, token: 0, amount });
    match event {
        ConnectionEvent::MessageDropped { reason, bytes } => {
            of(UDCCP_EVENT_MESSAGE_DROPPED, drop_reason(reason), bytes.into())
        }
        ConnectionEvent::MessageFate { token, fate: what } => {
            let (reason, amount) = fate(what);
            Some(Event { kind: UDCCP_EVENT_MESSAGE_FATE, reason, token, amount })
        }
        ConnectionEvent::PeerDropped { code, messages } => {
            of(UDCCP_EVENT_PEER_DROPPED, DropCode::number(code).into(), messages)
        }
        ConnectionEvent::PeerSlow => of(UDCCP_EVENT_PEER_SLOW, 0, 0),
        ConnectionEvent::MaxMessageSize { bytes } => {
            of(UDCCP_EVENT_MAX_MESSAGE_SIZE, 0, bytes as u64)
        }
        ConnectionEvent::PeerShutdownRead => of(UDCCP_EVENT_PEER_SHUTDOWN_READ, 0, 0),
        _ => None,
    }
}

/// Waits for the next event. Up to 64 unread events are kept, of more the newest; the fates of
/// messages are all kept until they are read.
///
/// Errors: `-EAGAIN`: none in time. `UDCCP_EOF`: the connection has ended, and all events were
/// read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_event(
    socket: *mut Socket,
    event: *mut Event,
    timeout_ms: c_int,
) -> c_int {
    status(|| {
        let socket = pointer::handle(socket)?;
        let place = Place::new(event)?;
        let timeout = pointer::timeout(timeout_ms);
        let connection = socket.connection(timeout)?;
        loop {
            let Some(next) = connection.event(timeout)? else { return Err(Failure::EOF) };
            if let Some(event) = to_c_event(next) {
                place.put(event);
                return Ok(());
            }
        }
    })
}
