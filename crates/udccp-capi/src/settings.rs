//! Settings of connections that are open.

use std::ffi::c_int;
use std::time::Duration;

use udccp::blocking::Connection;

use crate::error::{Failure, status};
use crate::options::{limits, millis, policy};
use crate::pointer::{self, Place};
use crate::socket::Socket;

fn set(socket: *const Socket, with: impl FnOnce(&Connection) -> Result<(), Failure>) -> c_int {
    status(|| with(pointer::handle(socket)?.connection(Some(Duration::ZERO))?))
}

/// How long a close may take to deliver what is queued, in milliseconds. 0: a close resets the
/// connection at once. A close in progress keeps its time.
///
/// Error of all settings of a socket: `-EAGAIN`: its handshake is in progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_set_linger_ms(socket: *mut Socket, ms: u32) -> c_int {
    set(socket, |connection| {
        connection.set_linger(millis(ms));
        Ok(())
    })
}

/// Limits of the send queue. Messages that already wait stay, even beyond them.
///
/// Errors: `-EINVAL`: a limit is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_set_send_queue(
    socket: *mut Socket,
    bytes: usize,
    messages: usize,
) -> c_int {
    set(socket, |connection| {
        let (bytes, messages) = limits(bytes, messages)?;
        connection.set_send_queue(bytes, messages);
        Ok(())
    })
}

/// What happens when the send queue is full: `UDCCP_QUEUE_REFUSE` or `UDCCP_QUEUE_DROP_LOWEST`.
///
/// Errors: `-EINVAL`: neither.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_set_queue_policy(
    socket: *mut Socket,
    number: c_int,
) -> c_int {
    set(socket, |connection| {
        connection.set_queue_policy(policy(number)?);
        Ok(())
    })
}

/// Whether this server holds TIMEWAIT itself when it closes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_set_server_timewait(
    socket: *mut Socket,
    holds: bool,
) -> c_int {
    set(socket, |connection| {
        connection.set_server_timewait(holds);
        Ok(())
    })
}

/// Asks the peer not to send faster than now, until it is called with false (Slow Receiver, RFC
/// 4340 section 11.6). A receive queue that fills up does so by itself.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_set_slow_receiver(
    socket: *mut Socket,
    is_slow: bool,
) -> c_int {
    set(socket, |connection| {
        connection.set_slow_receiver(is_slow);
        Ok(())
    })
}

/// Checksum coverage as negotiated: that of the data we send, and the smallest that we accept; 0
/// covers everything. Either pointer may be NULL.
///
/// Errors: `-EAGAIN`: the handshake is in progress.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_coverage(
    socket: *const Socket,
    send: *mut u8,
    least: *mut u8,
) -> c_int {
    set(socket, |connection| {
        let (sent, accepted) = connection.coverage().unwrap_or_default();
        for (place, value) in [(send, sent), (least, accepted)] {
            if let Ok(place) = Place::new(place) {
                place.put(value);
            }
        }
        Ok(())
    })
}
