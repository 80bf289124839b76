//! Allocates DCCP ports to the sockets of a broker.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

use rustix::io::Errno;

/// Ports that `bind` and `listen` pick.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=49_151;

#[derive(Debug)]
struct Bound {
    address: SocketAddr,
    is_shared: bool,
}

/// The bound addresses, by the cookies of their sockets.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    bound: HashMap<u64, Bound>,
    next: u16,
}

impl Ports {
    /// Gives a socket an address; port 0 picks a free one.
    ///
    /// # Errors
    /// EADDRINUSE, EACCES for ports below the system's limit, EADDRNOTAVAIL.
    pub(crate) fn bind(
        &mut self,
        cookie: u64,
        mut address: SocketAddr,
        is_shared: bool,
    ) -> Result<SocketAddr, Errno> {
        may_bind(address)?;
        if address.port() == 0 {
            address.set_port(self.pick(address.ip())?);
        }
        if self.is_taken(address, is_shared) {
            return Err(Errno::ADDRINUSE);
        }
        self.bound.insert(cookie, Bound { address, is_shared });
        Ok(address)
    }

    /// Frees what a socket has.
    pub(crate) fn release(&mut self, cookie: u64) {
        self.bound.remove(&cookie);
    }

    fn is_taken(&self, address: SocketAddr, is_shared: bool) -> bool {
        let overlaps =
            |ip: IpAddr| ip == address.ip() || ip.is_unspecified() || address.ip().is_unspecified();
        self.bound.values().any(|other| {
            other.address.port() == address.port()
                && overlaps(other.address.ip())
                && !(is_shared && other.is_shared)
        })
    }

    fn pick(&mut self, ip: IpAddr) -> Result<u16, Errno> {
        let count = EPHEMERAL.end() - EPHEMERAL.start();
        for _ in 0..count {
            self.next = (self.next + 1) % count;
            let port = EPHEMERAL.start() + self.next;
            if !self.is_taken((ip, port).into(), false) {
                return Ok(port);
            }
        }
        Err(Errno::ADDRINUSE)
    }
}

/// Whether any socket may have an address.
///
/// # Errors
/// EADDRNOTAVAIL, EACCES.
pub(crate) fn may_bind(address: SocketAddr) -> Result<(), Errno> {
    // The system knows its addresses.
    if !address.ip().is_unspecified() && std::net::UdpSocket::bind((address.ip(), 0)).is_err() {
        return Err(Errno::ADDRNOTAVAIL);
    }
    let is_free = address.port() == 0 || address.port() >= first_free_port();
    if is_free || rustix::process::geteuid().is_root() { Ok(()) } else { Err(Errno::ACCESS) }
}

fn first_free_port() -> u16 {
    let text = std::fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start");
    text.ok().and_then(|text| text.trim().parse().ok()).unwrap_or(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_has_one_owner_unless_all_share() {
        let mut ports = Ports::default();
        let any: SocketAddr = "0.0.0.0:5004".parse().unwrap();
        let local: SocketAddr = "127.0.0.1:5004".parse().unwrap();
        assert_eq!(ports.bind(1, any, true), Ok(any));
        assert_eq!(ports.bind(2, local, false), Err(Errno::ADDRINUSE));
        assert_eq!(ports.bind(2, local, true), Ok(local));
        ports.release(1);
        ports.release(2);
        assert_eq!(ports.bind(3, local, false), Ok(local));
        assert_ne!(ports.bind(4, "127.0.0.1:0".parse().unwrap(), false).unwrap().port(), 0);
        let foreign = "192.0.2.1:5004".parse().unwrap();
        assert_eq!(ports.bind(5, foreign, false), Err(Errno::ADDRNOTAVAIL));
    }
}
