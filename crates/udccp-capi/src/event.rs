//! Events of connections.

use std::ffi::c_int;

use udccp::{ConnectionEvent, DropCode, DropReason, MessageFate};

use crate::error::{Failure, status};
use crate::pointer::{self, Place};
use crate::socket::Socket;

/// A message that was accepted will not be delivered; `amount` has its bytes.
pub const UDCCP_EVENT_MESSAGE_DROPPED: c_int = 1;
/// What became of the message with this `token`. Each message with a token that was queued has
/// exactly one such event, which is kept until it is read.
pub const UDCCP_EVENT_MESSAGE_FATE: c_int = 2;
/// The peer received data, and its application did not have it as it should; `amount` has the
/// messages, and `reason` the Drop Code (RFC 4340 section 11.7).
pub const UDCCP_EVENT_PEER_DROPPED: c_int = 3;
/// The peer can hardly keep up: do not send more than now.
pub const UDCCP_EVENT_PEER_SLOW: c_int = 4;
/// The largest message that fits in one packet has changed; `amount` has its bytes.
pub const UDCCP_EVENT_MAX_MESSAGE_SIZE: c_int = 5;
/// The peer's application reads no more: nothing more can be sent.
pub const UDCCP_EVENT_PEER_SHUTDOWN_READ: c_int = 6;

/// The peer's host received it.
pub const UDCCP_FATE_ACKNOWLEDGED: c_int = 1;
/// The peer's host received it, and its application did not have it as it should; `amount` has the
/// Drop Code.
pub const UDCCP_FATE_PEER_DROPPED: c_int = 2;
/// Congestion control took it for lost. It may have arrived all the same.
pub const UDCCP_FATE_LOST: c_int = 3;
/// It never left; `amount` has one of `UDCCP_DROP_EXPIRED` to `UDCCP_DROP_TOO_LARGE`.
pub const UDCCP_FATE_DROPPED: c_int = 4;
/// It left, and nothing reported it.
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

/// Something that happened to a connection. All but the fate of single messages is in the
/// statistics, too, as a count.
#[repr(C)]
pub struct Event {
    /// One of `UDCCP_EVENT_...`. Later versions may add some: skip those that you do not know.
    pub kind: c_int,
    /// `UDCCP_EVENT_MESSAGE_FATE`: one of `UDCCP_FATE_...`. `UDCCP_EVENT_MESSAGE_DROPPED`: one of
    /// `UDCCP_DROP_...`. `UDCCP_EVENT_PEER_DROPPED`: the Drop Code. Else 0.
    pub reason: c_int,
    /// `UDCCP_EVENT_MESSAGE_FATE`: the message.
    pub token: u64,
    /// As the kind says; else 0.
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

fn translated(event: ConnectionEvent) -> Option<Event> {
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

/// The next event, waiting for it. The latest 64 are kept for who asks late, and the fates of
/// messages until they are read.
///
/// Errors: `-EAGAIN`: none within the time. `UDCCP_EOF`: the connection has ended, and all were
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
            if let Some(event) = translated(next) {
                place.put(event);
                return Ok(());
            }
        }
    })
}
