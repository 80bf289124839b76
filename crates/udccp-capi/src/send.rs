//! Sends messages.

use std::ffi::{c_int, c_void};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use libc::ssize_t;
use udccp::blocking::{Connection, wait};
use udccp::{Error, Outgoing, TrySendError};

use crate::error::{Failure, count, status};
use crate::pointer;
use crate::receive::UDCCP_MAX_MESSAGE;
use crate::socket::Socket;

/// A message to send, with a lifetime, a token and a priority. Each is unused if it is 0, so that
/// `{ .data = d, .len = n }` is a plain message.
#[repr(C)]
pub struct Message {
    /// The data, which is copied.
    pub data: *const c_void,
    /// Its length in bytes.
    pub len: usize,
    /// The message is dropped, and counted, if it has not left after this time in microseconds; 0:
    /// never.
    pub lifetime_us: u64,
    /// If not 0, a `udccp_event` with this number says what happened to the message.
    pub token: u64,
    /// Messages of higher priority leave first; those of equal priority keep their order. 0 is the
    /// lowest.
    pub priority: u32,
    /// Must be 0; for later versions.
    pub reserved: u32,
}

impl Message {
    fn outgoing(&self) -> Result<Outgoing, Failure> {
        if self.reserved != 0 {
            return Err(Failure::invalid(
                "the member reserved of a message is not 0",
                "set the whole message to 0 before you fill it in",
            ));
        }
        let mut outgoing = Outgoing::new(copied(self.data, self.len)?).priority(self.priority);
        if self.lifetime_us > 0 {
            outgoing = outgoing.lifetime(Duration::from_micros(self.lifetime_us));
        }
        Ok(if self.token == 0 { outgoing } else { outgoing.token(self.token) })
    }
}

/// Copies a message. A length above the maximum fails before anything is read: it is often an error
/// number, for example -1 as an unsigned 32-bit number.
pub(crate) fn copied(data: *const c_void, len: usize) -> Result<Bytes, Failure> {
    if len > UDCCP_MAX_MESSAGE && len <= isize::MAX as usize {
        return Err(Error::MessageTooLarge { len, max: UDCCP_MAX_MESSAGE }.into());
    }
    Ok(Bytes::copy_from_slice(pointer::slice(data.cast::<u8>(), len)?))
}

fn send(socket: *mut Socket, message: Outgoing, timeout_ms: c_int) -> Result<(), Failure> {
    let timeout = pointer::timeout(timeout_ms);
    let connection = pointer::handle(socket)?.connection(timeout)?;
    match connection.try_send(message) {
        Ok(()) => Ok(()),
        Err(TrySendError::Full(_)) if timeout_ms == 0 => Err(Failure::AGAIN),
        Err(TrySendError::Full(message)) => {
            let mut slot = Some(message);
            Ok(wait(timeout, |cx| connection.poll_send(cx, &mut slot))?)
        }
        Err(TrySendError::Failed(e)) => Err(e.into()),
    }
}

/// Sends one message of `len` bytes, waiting while the send queue is full. It arrives whole or not
/// at all. An empty message is allowed.
///
/// Errors: `-EAGAIN`: not sent in time. `-EMSGSIZE`: larger than `udccp_socket_max_message_size`.
/// `-EPIPE`: the connection is closed. `-ECONNRESET`, `-ETIMEDOUT` and others: it has failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_send(
    socket: *mut Socket,
    data: *const c_void,
    len: usize,
    timeout_ms: c_int,
) -> c_int {
    status(|| {
        pointer::handle(socket)?;
        send(socket, Outgoing::new(copied(data, len)?), timeout_ms)
    })
}

/// As `udccp_send`, with a lifetime, a priority and a token.
///
/// Errors: as `udccp_send`; `-EINVAL`: `reserved` is not 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_send_message(
    socket: *mut Socket,
    message: *const Message,
    timeout_ms: c_int,
) -> c_int {
    status(|| {
        pointer::handle(socket)?;
        send(socket, pointer::object(message)?.outgoing()?, timeout_ms)
    })
}

/// Sends `n` messages in order, waiting while the send queue is full, with as few system calls as
/// possible. Returns how many were queued: `n`, or fewer if the time was over or a message failed,
/// but at least one.
///
/// Errors: if none was queued, as `udccp_send_message`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_send_batch(
    socket: *mut Socket,
    first: *const Message,
    n: usize,
    timeout_ms: c_int,
) -> ssize_t {
    count(|| {
        let socket = pointer::handle(socket)?;
        let messages = pointer::slice(first, n)?;
        let messages = valid_prefix(messages)?;
        let timeout = pointer::timeout(timeout_ms);
        send_batch(socket.connection(timeout)?, messages, timeout)
    })
}

/// The messages before the first invalid one; an error if the first is invalid.
fn valid_prefix(messages: &[Message]) -> Result<Vec<Outgoing>, Failure> {
    let mut right = Vec::with_capacity(messages.len());
    for message in messages {
        match message.outgoing() {
            Ok(outgoing) => right.push(outgoing),
            Err(e) if right.is_empty() => return Err(e),
            Err(_) => break,
        }
    }
    Ok(right)
}

fn send_batch(
    connection: &Connection,
    messages: Vec<Outgoing>,
    timeout: Option<Duration>,
) -> Result<usize, Failure> {
    let total = messages.len();
    let mut rest = messages.into_iter();
    let mut slot = None;
    let sent = wait(timeout, |cx| connection.poll_send_batch(cx, &mut slot, &mut rest));
    // These errors concern a message that has been taken from the list.
    let is_refused =
        matches!(sent, Err(Error::MessageTooLarge { .. } | Error::Closed | Error::Lost(_)));
    let queued = total - rest.len() - usize::from(slot.is_some()) - usize::from(is_refused);
    match sent {
        Err(e) if queued == 0 => Err(e.into()),
        _ => Ok(queued),
    }
}

/// Waits until everything sent so far has been handed to the network or dropped.
///
/// Errors: `-EAGAIN`: not in time. Others: the connection ended first.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_flush(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    until(socket, timeout_ms, Connection::poll_flushed)
}

/// Waits until the fate of everything sent so far is known: the peer has reported it received, or
/// it counts as lost. The statistics have the numbers.
///
/// Errors: as `udccp_flush`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_wait_acknowledged(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    until(socket, timeout_ms, Connection::poll_acknowledged)
}

/// Closes the connection: sends what is queued, within the linger time, then tells the peer, and
/// waits until the peer has confirmed. The peer has another linger time for that, at least 14
/// round-trip times; after it the call fails, and the close goes on in the background. From this
/// call on nothing can be sent; what has arrived can still be read. With a timeout of 0 it starts
/// the close and does not wait.
///
/// Errors: `-EAGAIN`: not complete in time; the close goes on. Call again, or free the socket.
/// `-ETIMEDOUT`: not everything queued was sent in time, or the peer did not confirm. `-ECONNRESET`
/// and others: the connection had failed before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_close(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    status(|| {
        let socket = pointer::handle(socket)?;
        if socket.cancel() {
            return Ok(());
        }
        let connection = socket.connection(Some(Duration::ZERO))?;
        Ok(wait(pointer::timeout(timeout_ms), |cx| connection.poll_close(cx))?)
    })
}

/// Waits until the connection has ended, whichever side ends it. Returns 0 if it was closed in
/// order.
///
/// Errors: `-EAGAIN`: it is still open. `-ECONNRESET` and others: it failed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_wait_closed(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    until(socket, timeout_ms, Connection::poll_closed)
}

/// Ends the connection at once with a Reset of code Aborted. Queued messages are dropped. During a
/// handshake, cancels it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_abort(socket: *mut Socket) -> c_int {
    status(|| {
        let socket = pointer::handle(socket)?;
        if !socket.cancel() {
            socket.connection(Some(Duration::ZERO))?.abort();
        }
        Ok(())
    })
}

fn until(
    socket: *mut Socket,
    timeout_ms: c_int,
    poll: impl Fn(&Connection, &mut std::task::Context<'_>) -> Poll<Result<(), Error>>,
) -> c_int {
    status(|| {
        let timeout = pointer::timeout(timeout_ms);
        let connection = pointer::handle(socket)?.connection(timeout)?;
        Ok(wait(timeout, |cx| poll(connection, cx))?)
    })
}
