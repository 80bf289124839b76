//! Connects to services.

use std::ffi::{c_char, c_int};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use udccp::blocking::{Connection, Endpoint};
use udccp::{Address, ServiceCode};

use crate::address::{numeric, resolve};
use crate::error::status;
use crate::options::Options;
use crate::pointer::{self, Place};
use crate::socket::Socket;

/// The unspecified address and port of the address family of `peer`.
fn any(peer: &Address) -> SocketAddr {
    match peer.udp {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

/// Connects to a service and waits for the handshake. On failure, `*socket` is NULL and there is
/// nothing to free.
///
/// `address` is `host:port`, with a name or a numeric address as the host (`[2001:db8::1]:5004`).
/// By default one number is both the UDP port and the DCCP port inside it. `host:port/udp-port`
/// gives two different ones, and `host:port/raw` goes without UDP (needs CAP_NET_RAW). The
/// addresses of a name are tried in turn. `options` may be NULL.
///
/// Errors: `-EAGAIN`: not connected in time, and the attempt is cancelled. `-ECONNREFUSED`,
/// `-EBADRQC` (service code not served), `-EHOSTUNREACH`, `-ETIMEDOUT`, `-EOPNOTSUPP` (CCID),
/// `-ENOENT` (unknown host), `-EINVAL` (address or service code).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_connect(
    socket: *mut *mut Socket,
    address: *const c_char,
    service: u32,
    options: *const Options,
    timeout_ms: c_int,
) -> c_int {
    status(|| {
        let place = Place::for_handle(socket)?;
        let peers = resolve(pointer::text(address)?)?;
        let Options { connection, endpoint } = Options::of(options);
        let (service, timeout) = (ServiceCode(service), pointer::timeout(timeout_ms));
        let made = Connection::connect_any_with(&peers, service, &connection, &endpoint, timeout)?;
        place.give(Socket::connected(made));
        Ok(())
    })
}

/// Starts to connect without waiting. The host has to be a numeric address. The descriptor of the
/// socket (`udccp_socket_fd`) becomes writable once data can flow, and hangs up if the handshake
/// fails; `udccp_connect_finish` returns the result. Freeing the socket cancels the handshake.
///
/// Errors: `-EINVAL`, `-EHOSTUNREACH` (no route), `-EOPNOTSUPP`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_connect_start(
    socket: *mut *mut Socket,
    address: *const c_char,
    service: u32,
    options: *const Options,
) -> c_int {
    status(|| {
        let place = Place::for_handle(socket)?;
        let peer = numeric(pointer::text(address)?)?;
        let Options { connection, endpoint } = Options::of(options);
        let below = endpoint.raw_ip(peer.is_raw());
        let endpoint = Endpoint::bind_with(any(&peer), &below)?;
        let service = ServiceCode(service);
        let connecting = endpoint.start_connect(peer, service, &connection)?;
        place.give(Socket::connecting(connecting, peer, service));
        Ok(())
    })
}

/// Waits for the handshake and returns its result: 0 once data can flow. A call to it is not
/// required: `udccp_send` and others wait for the handshake first.
///
/// Errors: `-EAGAIN`: not complete in time; it continues. Otherwise as `udccp_connect`, with each
/// call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn udccp_connect_finish(socket: *mut Socket, timeout_ms: c_int) -> c_int {
    status(|| {
        let socket = pointer::handle(socket)?;
        socket.connection(pointer::timeout(timeout_ms)).map(|_| ())
    })
}
