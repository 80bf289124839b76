//! Endpoints: one UDP or raw socket that carries any number of connections.

use std::ffi::{c_char, c_int};

use libc::ssize_t;
use udccp::{Address, Process, ServiceCode, blocking};

use crate::address::{bind, numeric};
use crate::error::{count, or_return, status};
use crate::listener::{Listener, services};
use crate::options::Options;
use crate::pointer::{self, Owned, Place};
use crate::socket::Socket;
use crate::text;

/// A UDP or raw socket that carries any number of connections: clients that share one port, or a
/// server that also connects to others. Most programs need none: `udccp_connect` and `udccp_listen`
/// create their own.
pub struct Endpoint(blocking::Endpoint, Process);

impl Owned for Endpoint {
    fn process(&self) -> Process {
        self.1
    }
}

impl Endpoint {
    pub(crate) fn new(endpoint: blocking::Endpoint) -> Self {
        Self(endpoint, Process::current())
    }
}

/// Binds a numeric address, for example `0.0.0.0:5004` or `[::]:0` (which serves IPv4 too; port 0
/// picks a free one), or one that ends in `/raw`. `options` may be NULL.
///
/// Errors: `-EADDRINUSE`, `-EADDRNOTAVAIL`, `-EACCES`, `-EPERM` (raw IP), `-EINVAL`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_bind(
    endpoint: *mut *mut Endpoint,
    address: *const c_char,
    options: *const Options,
) -> c_int {
    status(|| {
        let place = Place::for_handle(endpoint)?;
        let (bound, _) = bind(pointer::text(address)?, &Options::of(options))?;
        place.give(Endpoint::new(bound));
        Ok(())
    })
}

/// As `udccp_connect_start`, from this endpoint.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_connect_start(
    endpoint: *mut Endpoint,
    socket: *mut *mut Socket,
    address: *const c_char,
    service: u32,
    options: *const Options,
) -> c_int {
    status(|| {
        let endpoint = pointer::handle(endpoint)?;
        let place = Place::for_handle(socket)?;
        let peer = numeric(pointer::text(address)?)?;
        let (service, options) = (ServiceCode(service), Options::of(options).connection);
        let connecting = endpoint.0.start_connect(peer, service, &options)?;
        place.give(Socket::connecting(connecting, peer, service));
        Ok(())
    })
}

/// Serves `n` service codes on DCCP port `port` of this endpoint. 0 stands for the number of its
/// UDP port or, over raw IP, for a free one. `options` may be NULL.
///
/// Errors: `-EADDRINUSE`: the port already serves one of them. `-EINVAL`: there is no service code,
/// or one is 0xFFFFFFFF.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_listen(
    endpoint: *mut Endpoint,
    listener: *mut *mut Listener,
    port: u16,
    first_service: *const u32,
    n: usize,
    options: *const Options,
) -> c_int {
    status(|| {
        let endpoint = pointer::handle(endpoint)?;
        let place = Place::for_handle(listener)?;
        let options = Options::of(options).connection;
        let listener = endpoint.0.listen(port, services(first_service, n)?, &options)?;
        place.give(Listener::new(listener));
        Ok(())
    })
}

/// Writes the bound address, with the UDP port, as `udccp_socket_peer` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_local(
    endpoint: *const Endpoint,
    buffer: *mut c_char,
    size: usize,
) -> ssize_t {
    count(|| {
        let at = Address::from(pointer::handle(endpoint)?.0.local_addr());
        text::write(&at.to_string(), buffer, size)
    })
}

/// Waits until every connection of this endpoint has ended.
///
/// Errors: `-EAGAIN`: not in time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_wait_idle(
    endpoint: *mut Endpoint,
    timeout_ms: c_int,
) -> c_int {
    status(|| Ok(pointer::handle(endpoint)?.0.wait_idle(pointer::timeout(timeout_ms))?))
}

/// Frees an endpoint. Its listeners and sockets stay open. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_endpoint_free(endpoint: *mut Endpoint) {
    or_return((), || {
        drop(pointer::take_back(endpoint));
        Ok(())
    });
}

/// Closes every open connection of this process in order, as `exit()` does, and waits for them to
/// end, for at most the longest linger time. Call it before an end of the process that runs no
/// `atexit` functions; on Windows, before every end, because functions of a DLL run too late there.
///
/// Connections with `udccp_options_set_close_at_exit` off are left alone.
#[unsafe(no_mangle)]
pub extern "C" fn udccp_close_all() {
    or_return((), || {
        udccp::close_all();
        Ok(())
    });
}
