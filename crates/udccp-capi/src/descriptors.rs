//! File descriptors, which Windows does not have. Each function repeats the condition, because the
//! header needs it.

use std::ffi::c_int;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

use udccp::blocking;

use crate::endpoint::Endpoint;
use crate::error::{Failure, number, status};
use crate::listener::Listener;
use crate::options::Options;
use crate::pointer::{self, Place};
use crate::socket::Socket;

/// A descriptor for `poll`, `epoll`, `select` and event loops, which is ready whenever a call would
/// not wait. It is level-triggered, and stays the same for the whole life of the socket. Only wait
/// on it: do not read, write or close it. `udccp_socket_free` closes it.
///
/// | `poll` says | means |
/// |---|---|
/// | `POLLIN` | `udccp_recv` would return a message, the end or an error |
/// | `POLLOUT` | the handshake is complete, and `udccp_send` would take a message or fail |
/// | `POLLRDHUP` | nothing more will arrive |
/// | `POLLHUP` | the connection has ended, or the handshake has failed |
/// | `POLLERR` | it ended with an error |
///
/// If the connection was closed here and the peer does not confirm in time, the descriptor shows
/// the end with an error.
///
/// It uses two descriptors of the process, from the first call on. Errors: `-EMFILE`; that of the
/// handshake, if it failed before the first call.
#[cfg(not(windows))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_socket_fd(socket: *mut Socket) -> c_int {
    number(|| Ok(pointer::handle(socket)?.readiness()?.as_raw_fd()))
}

/// A descriptor that is readable whenever `udccp_accept` would not wait; see `udccp_socket_fd`.
#[cfg(not(windows))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_listener_fd(listener: *mut Listener) -> c_int {
    number(|| Ok(pointer::handle(listener)?.readiness()?.as_raw_fd()))
}

/// Uses a UDP socket that is bound and not connected, from a service manager or with options of
/// your own. The descriptor is duplicated, so yours can be closed at any time. The library reads
/// everything that arrives on the socket.
///
/// Errors: `-EBADF`: not a descriptor. `-EINVAL`: not a bound, unconnected UDP socket.
#[cfg(not(windows))]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_from_fd(
    endpoint: *mut *mut Endpoint,
    fd: c_int,
    options: *const Options,
) -> c_int {
    status(|| {
        let place = Place::for_handle(endpoint)?;
        let socket = UdpSocket::from(duplicate(fd)?);
        let below = Options::of(options).endpoint;
        let made = blocking::Endpoint::from_socket(socket, &below)?;
        place.give(Endpoint::new(made));
        Ok(())
    })
}

fn duplicate(fd: RawFd) -> Result<OwnedFd, Failure> {
    if fd < 0 {
        return Err(Failure::bad_descriptor());
    }
    // SAFETY: not negative; the system checks below that the descriptor is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(|_| Failure::bad_descriptor())
}
