//! File descriptors, which Windows does not have. The functions say so once more, for the header.

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

/// A descriptor for `poll`, `epoll`, `select` and event loops, ready whenever a call would not
/// wait. Level-triggered, and the same for the whole life of the socket. Wait on it, and do nothing
/// else with it: it is not to be read, written or closed, and `udccp_socket_free` ends it.
///
/// | `poll` says | means |
/// |---|---|
/// | `POLLIN` | `udccp_recv` would give a message, the end or an error |
/// | `POLLOUT` | the handshake is done, and `udccp_send` would take a message or give an error |
/// | `POLLRDHUP` | nothing more will arrive |
/// | `POLLHUP` | the connection has ended, or the handshake failed |
/// | `POLLERR` | it ended with an error |
///
/// A connection that was closed here, and whose peer does not confirm that in its time, shows the
/// end with an error.
///
/// Costs two descriptors of the process, from the first call on. Errors: `-EMFILE`; that of the
/// handshake, where it had failed before the first call.
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

/// Takes a UDP socket that a service manager handed over, or with options of your own: bound and
/// not connected. The descriptor is duplicated; close yours when you like. The library reads
/// everything that arrives there.
///
/// Errors: `-EBADF`: not a descriptor. `-EINVAL`: not a bound UDP socket.
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
    // SAFETY: not negative, and the system says below whether it is one of this process.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map_err(|_| Failure::bad_descriptor())
}
