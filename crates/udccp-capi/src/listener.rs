//! Listeners.

use std::ffi::{c_char, c_int};

use udccp::{Process, ServiceCode, blocking};

use crate::address::bind;
use crate::error::{Failure, or_return, status};
use crate::options::Options;
use crate::pointer::{self, Owned, Place};
use crate::socket::Socket;

/// Serves one or more service codes on a port. Threads may share it, like a socket.
pub struct Listener(blocking::Listener, Process);

impl Listener {
    pub(crate) fn new(listener: blocking::Listener) -> Self {
        Self(listener, Process::current())
    }

    /// The descriptor that is readable if `udccp_accept` would not wait.
    #[cfg(not(windows))]
    pub(crate) fn readiness(&self) -> Result<udccp::Readiness, Failure> {
        Ok(self.0.readiness()?)
    }
}

impl Owned for Listener {
    fn process(&self) -> Process {
        self.1
    }
}

/// A list of service codes. The sockets check whether they are valid.
pub(crate) fn services(first: *const u32, n: usize) -> Result<Vec<ServiceCode>, Failure> {
    Ok(pointer::slice(first, n)?.iter().copied().map(ServiceCode).collect())
}

/// Listens for clients of `n` service codes (at least one). `address` is numeric, for example
/// `[::]:5004`, which serves IPv4 too, or `127.0.0.1:0` for a free port; "/udp-port" or "/raw" may
/// follow. `options` also apply to the connections accepted; NULL stands for the defaults.
///
/// Errors: `-EADDRINUSE`, `-EADDRNOTAVAIL`, `-EACCES`, `-EPERM` (raw IP), `-EINVAL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_listen(
    listener: *mut *mut Listener,
    address: *const c_char,
    first_service: *const u32,
    n: usize,
    options: *const Options,
) -> c_int {
    status(|| {
        let place = Place::for_handle(listener)?;
        let services = services(first_service, n)?;
        let options = Options::of(options);
        let (endpoint, port) = bind(pointer::text(address)?, &options)?;
        place.give(Listener::new(endpoint.listen(port, services, &options.connection)?));
        Ok(())
    })
}

/// Accepts the next connection whose handshake is complete, waiting for it.
///
/// Errors: `-EAGAIN`: none in time; `*socket` is then NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_accept(
    listener: *mut Listener,
    socket: *mut *mut Socket,
    timeout_ms: c_int,
) -> c_int {
    status(|| {
        let listener = pointer::handle(listener)?;
        let place = Place::for_handle(socket)?;
        let accepted = listener.0.accept_within(pointer::timeout(timeout_ms))?;
        place.give(Socket::connected(accepted));
        Ok(())
    })
}

/// The DCCP port; 0 for NULL and in a forked child.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_listener_port(listener: *const Listener) -> u16 {
    or_return(0, || Ok(pointer::handle(listener)?.0.port()))
}

/// Serves other service codes from now on. Existing connections are not affected.
///
/// Errors: `-EINVAL`, `-EADDRINUSE`; nothing has changed then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_listener_set_services(
    listener: *mut Listener,
    first_service: *const u32,
    n: usize,
) -> c_int {
    status(|| Ok(pointer::handle(listener)?.0.set_services(services(first_service, n)?)?))
}

/// Stops listening and frees the listener. Connections that were accepted stay open; those not yet
/// accepted are reset. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_listener_free(listener: *mut Listener) {
    or_return((), || {
        drop(pointer::take_back(listener));
        Ok(())
    });
}
