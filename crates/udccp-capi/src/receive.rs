//! Receives messages.

use std::ffi::{c_int, c_void};
use std::time::Duration;

use bytes::Bytes;
use libc::ssize_t;
use udccp::blocking::Connection;
use udccp::{Error, Received, TryRecvError};

use crate::error::{Failure, count, status};
use crate::pointer;
use crate::socket::Socket;

/// Size of a buffer that holds any message, in bytes.
pub const UDCCP_MAX_MESSAGE: usize = 65535;

/// A buffer for a message, and what was written to it.
#[repr(C)]
pub struct Buffer {
    /// Where the data goes. Set by the caller.
    pub data: *mut c_void,
    /// Its size in bytes. Set by the caller.
    pub capacity: usize,
    /// Bytes that were written.
    pub len: usize,
    /// Length of the message in bytes. If it is more than `len`, the rest was discarded.
    pub message_len: usize,
    /// Its checksum shows that it was damaged on the way (`udccp_options_set_data_checksum`).
    pub is_corrupt: bool,
}

impl Buffer {
    fn fill(&mut self, data: &[u8], is_corrupt: bool) -> Result<(), Failure> {
        self.len = pointer::copy(data, self.data.cast(), self.capacity)?;
        (self.message_len, self.is_corrupt) = (data.len(), is_corrupt);
        Ok(())
    }
}

fn next(socket: *mut Socket, timeout_ms: c_int) -> Result<Received, Failure> {
    let timeout = pointer::timeout(timeout_ms);
    let connection = pointer::handle(socket)?.connection(timeout)?;
    if timeout_ms == 0 {
        return from_try_recv(connection.try_recv_with_meta());
    }
    with_timeout(connection, timeout).recv_with_meta()?.ok_or(Failure::EOF)
}

/// A handle with its own timeout, which other threads do not change.
fn with_timeout(connection: &Connection, timeout: Option<Duration>) -> Connection {
    let connection = connection.clone();
    connection.set_read_timeout(timeout);
    connection
}

fn from_try_recv<T>(result: Result<T, TryRecvError>) -> Result<T, Failure> {
    result.map_err(|e| match e {
        TryRecvError::Empty => Failure::AGAIN,
        TryRecvError::Ended(Error::Closed) => Failure::EOF,
        TryRecvError::Ended(e) => e.into(),
    })
}

/// Receives one message, waiting for it, and copies it into `buffer`. Returns the bytes written, at
/// most `capacity`; 0 is an empty message. What does not fit is discarded, as with `recv`. A buffer
/// of `UDCCP_MAX_MESSAGE` holds any message; `udccp_next_len` returns the length before, and
/// `udccp_recv_message` after the message is taken.
///
/// Errors: `UDCCP_EOF`: the connection was closed in order, and everything was read. `-EAGAIN`: no
/// message in time. `-ECONNRESET`, `-ETIMEDOUT` and others: the connection has failed, and what had
/// arrived before was read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_recv(
    socket: *mut Socket,
    buffer: *mut c_void,
    capacity: usize,
    timeout_ms: c_int,
) -> ssize_t {
    count(|| {
        pointer::handle(socket)?;
        // Checked first, because a message must not be taken without room for it.
        pointer::check_array(buffer.cast::<u8>(), capacity)?;
        pointer::copy(&next(socket, timeout_ms)?.data, buffer.cast(), capacity)
    })
}

/// As `udccp_recv`; also returns the message's length and whether it was damaged.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_recv_message(
    socket: *mut Socket,
    buffer: *mut Buffer,
    timeout_ms: c_int,
) -> c_int {
    status(|| {
        pointer::handle(socket)?;
        let [buffer] = buffers(buffer, 1)? else { return Err(Failure::NO_POINTER) };
        let received = next(socket, timeout_ms)?;
        buffer.fill(&received.data, received.is_corrupt)
    })
}

/// Receives up to `n` messages, waiting for the first. Returns their number.
///
/// Errors: as `udccp_recv`; `-EINVAL`: `n` is 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_recv_batch(
    socket: *mut Socket,
    first: *mut Buffer,
    n: usize,
    timeout_ms: c_int,
) -> ssize_t {
    count(|| {
        let socket = pointer::handle(socket)?;
        let buffers = buffers(first, n)?;
        if buffers.is_empty() {
            return Err(Failure::invalid("no buffers are given", "give one or more"));
        }
        let timeout = pointer::timeout(timeout_ms);
        let connection = with_timeout(socket.connection(timeout)?, timeout);
        let first = connection.recv_with_meta()?.ok_or(Failure::EOF)?;
        let mut received = Some(first);
        let mut filled = 0;
        for buffer in buffers {
            let next = received.take().or_else(|| connection.try_recv_with_meta().ok());
            let Some(Received { data, is_corrupt, .. }) = next else { break };
            buffer.fill(&data, is_corrupt)?;
            filled += 1;
        }
        Ok(filled)
    })
}

/// The buffers to write to, as a slice.
fn buffers<'a>(first: *mut Buffer, n: usize) -> Result<&'a mut [Buffer], Failure> {
    let buffers = pointer::slice_mut(first, n)?;
    for buffer in buffers.iter() {
        pointer::check_array(buffer.data.cast::<u8>(), buffer.capacity)?;
    }
    Ok(buffers)
}

/// As `udccp_recv`, but the message stays in the queue.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_peek(
    socket: *mut Socket,
    buffer: *mut c_void,
    capacity: usize,
    timeout_ms: c_int,
) -> ssize_t {
    count(|| {
        let socket = pointer::handle(socket)?;
        pointer::check_array(buffer.cast::<u8>(), capacity)?;
        let timeout = pointer::timeout(timeout_ms);
        let connection = socket.connection(timeout)?;
        let data: Bytes = match timeout_ms {
            0 => from_try_recv(connection.try_peek())?,
            _ => with_timeout(connection, timeout).peek()?.ok_or(Failure::EOF)?,
        };
        pointer::copy(&data, buffer.cast(), capacity)
    })
}

/// Length of the next message in bytes; 0 if it is empty.
///
/// Errors: `-EAGAIN`: there is none. `-EBADF`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_next_len(socket: *const Socket) -> ssize_t {
    count(|| {
        let connection = pointer::handle(socket)?.connection(Some(Duration::ZERO))?;
        connection.next_len().ok_or(Failure::AGAIN)
    })
}

/// Stops reading: discards what waits to be read, and `udccp_recv` returns `UDCCP_EOF`. If the peer
/// sends more, it is told that nobody reads. Sending is not affected. DCCP has no other half-closed
/// state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_shutdown_read(socket: *mut Socket) -> c_int {
    status(|| {
        pointer::handle(socket)?.connection(Some(Duration::ZERO))?.shutdown_read();
        Ok(())
    })
}
