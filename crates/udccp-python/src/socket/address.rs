//! Splits addresses for Python: IP address, DCCP port, UDP port (0 over raw IP), IPv6 scope.

use std::net::{IpAddr, SocketAddr, SocketAddrV6};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use udccp::Address;

/// IP address, DCCP port, UDP port, scope.
pub(super) type Parts = (String, u16, u16, u32);

/// Splits an address.
pub(super) fn parts(address: Address) -> Parts {
    let scope = match address.udp {
        SocketAddr::V6(v6) => v6.scope_id(),
        SocketAddr::V4(_) => 0,
    };
    (address.ip().to_string(), address.port, address.udp.port(), scope)
}

/// A socket address of an IP address and a port.
pub(super) fn socket_address(ip: &str, port: u16, scope: u32) -> PyResult<SocketAddr> {
    match ip.parse() {
        Ok(IpAddr::V6(ip)) => Ok(SocketAddrV6::new(ip, port, 0, scope).into()),
        Ok(ip) => Ok(SocketAddr::new(ip, port)),
        Err(_) => Err(PyValueError::new_err(format!("{ip} is not an IP address"))),
    }
}

/// The address with these parts.
pub(super) fn address((ip, port, udp_port, scope): &Parts) -> PyResult<Address> {
    Ok(Address { udp: socket_address(ip, *udp_port, *scope)?, port: *port })
}
