//! Allocates DCCP ports to the sockets of a broker.

use std::collections::HashMap;
use std::net::SocketAddr;

use rustix::io::Errno;

use crate::address;

/// Port range from which `bind` and `listen` pick.
const EPHEMERAL: std::ops::RangeInclusive<u16> = 32_768..=49_151;

/// What the socket at an address does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Bound,
    Listening,
    Connected,
}

/// Which of a socket's addresses others may bind too.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sharing {
    /// SO_REUSEADDR: while no socket listens there.
    pub(crate) address: bool,
    /// SO_REUSEPORT.
    pub(crate) port: bool,
}

#[derive(Debug)]
struct Bound {
    address: SocketAddr,
    sharing: Sharing,
    is_v6_only: bool,
    used: Use,
}

impl Bound {
    fn is_for_all(&self) -> bool {
        self.address.ip().is_unspecified()
    }

    fn has_version_of(&self, other: &Self) -> bool {
        address::serves(self.address, self.is_v6_only, other.address.is_ipv4())
    }

    /// Whether a connection could match both addresses.
    fn overlaps(&self, other: &Self) -> bool {
        let has_same_ip = self.address.ip() == other.address.ip();
        let is_within = |all: &Self, one: &Self| all.is_for_all() && all.has_version_of(one);
        self.address.port() == other.address.port()
            && (has_same_ip || is_within(self, other) || is_within(other, self))
    }

    /// Whether a new socket may have its address in spite of another one, as for TCP in Linux.
    fn may_join(&self, other: &Self) -> bool {
        let is_free = other.used != Use::Listening;
        self.sharing.address && other.sharing.address && is_free
            || self.sharing.port && other.sharing.port
    }
}

/// The bound addresses, by the cookies of their sockets.
#[derive(Debug, Default)]
pub(crate) struct Ports {
    bound: HashMap<u64, Bound>,
    next: u16,
}

impl Ports {
    /// Binds a socket to an address; port 0 picks a free one. The IPv6 wildcard includes IPv4,
    /// unless `is_v6_only`. `again`: a listener had it before, whose connections do not count.
    ///
    /// # Errors
    /// EADDRINUSE, EACCES for ports below the system's limit, EADDRNOTAVAIL.
    pub(crate) fn bind(
        &mut self,
        cookie: u64,
        address: SocketAddr,
        sharing: Sharing,
        is_v6_only: bool,
        again: bool,
    ) -> Result<SocketAddr, Errno> {
        may_bind(address)?;
        let mut wanted = Bound { address, sharing, is_v6_only, used: Use::Bound };
        if address.port() == 0 {
            self.pick(&mut wanted)?;
        }
        if self.is_taken(&wanted, again) {
            return Err(Errno::ADDRINUSE);
        }
        let address = wanted.address;
        self.bound.insert(cookie, wanted);
        Ok(address)
    }

    /// A socket listens at its address.
    pub(crate) fn listen(&mut self, cookie: u64) {
        if let Some(bound) = self.bound.get_mut(&cookie) {
            bound.used = Use::Listening;
        }
    }

    /// Notes the address of a connection: nobody else binds it while the connection is open.
    pub(crate) fn connect(&mut self, cookie: u64, address: SocketAddr, sharing: Sharing) {
        let bound = Bound { address, sharing, is_v6_only: false, used: Use::Connected };
        self.bound.insert(cookie, bound);
    }

    /// Releases a socket's address.
    pub(crate) fn release(&mut self, cookie: u64) {
        self.bound.remove(&cookie);
    }

    fn is_taken(&self, wanted: &Bound, again: bool) -> bool {
        let mut others =
            self.bound.values().filter(|other| !(again && other.used == Use::Connected));
        others.any(|other| other.overlaps(wanted) && !wanted.may_join(other))
    }

    fn pick(&mut self, wanted: &mut Bound) -> Result<(), Errno> {
        let count = EPHEMERAL.end() - EPHEMERAL.start();
        for _ in 0..count {
            self.next = (self.next + 1) % count;
            wanted.address.set_port(EPHEMERAL.start() + self.next);
            if !self.bound.values().any(|other| other.overlaps(wanted)) {
                return Ok(());
            }
        }
        Err(Errno::ADDRINUSE)
    }
}

/// Checks whether a program may bind an address at all.
///
/// # Errors
/// EADDRNOTAVAIL, EACCES.
pub(crate) fn may_bind(address: SocketAddr) -> Result<(), Errno> {
    // Ask the system, which knows the addresses of this host.
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

    const ALONE: Sharing = Sharing { address: false, port: false };
    const SHARED: Sharing = Sharing { address: true, port: false };

    #[test]
    fn a_port_has_one_owner_unless_all_share() {
        let mut ports = Ports::default();
        let any: SocketAddr = "0.0.0.0:5004".parse().unwrap();
        let local: SocketAddr = "127.0.0.1:5004".parse().unwrap();
        assert_eq!(ports.bind(1, any, SHARED, false, false), Ok(any));
        assert_eq!(ports.bind(2, local, ALONE, false, false), Err(Errno::ADDRINUSE));
        assert_eq!(ports.bind(2, local, SHARED, false, false), Ok(local));
        ports.release(1);
        ports.release(2);
        assert_eq!(ports.bind(3, local, ALONE, false, false), Ok(local));
        let picked = ports.bind(4, "127.0.0.1:0".parse().unwrap(), ALONE, false, false).unwrap();
        assert_ne!(picked.port(), 0);
        let foreign = "192.0.2.1:5004".parse().unwrap();
        assert_eq!(ports.bind(5, foreign, ALONE, false, false), Err(Errno::ADDRNOTAVAIL));
    }

    #[test]
    fn a_listener_and_a_connection_keep_their_address_as_in_linux() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        let (any, local) = (address("0.0.0.0:5004"), address("127.0.0.1:5004"));
        let of_port = Sharing { address: false, port: true };
        // Each row: whether the listener, its connection and a new socket share what; the results
        // beside the listener, and beside the connection alone.
        for (old, new, beside_listener, beside_connection) in [
            (ALONE, ALONE, false, false),
            (ALONE, SHARED, false, false),
            (SHARED, ALONE, false, false),
            (SHARED, SHARED, false, true),
            (of_port, of_port, true, true),
            (SHARED, of_port, false, false),
        ] {
            let mut ports = Ports::default();
            assert_eq!(ports.bind(1, any, old, false, false), Ok(any));
            ports.listen(1);
            ports.connect(2, local, old);
            let is_free = ports.bind(3, local, new, false, false).is_ok();
            assert_eq!(is_free, beside_listener, "{old:?} {new:?}");
            ports.release(3);
            ports.release(1);
            let elsewhere = ports.bind(4, address("127.0.0.2:5004"), new, false, false);
            assert!(elsewhere.is_ok(), "{old:?} {new:?}");
            ports.release(4);
            for wanted in [any, local] {
                let is_free = ports.bind(3, wanted, new, false, false).is_ok();
                assert_eq!(is_free, beside_connection, "{old:?} {new:?} {wanted}");
                ports.release(3);
                // One who stopped listening listens again, beside his connections.
                assert_eq!(ports.bind(3, wanted, new, false, true), Ok(wanted));
                ports.release(3);
            }
        }
    }

    #[test]
    fn each_ip_version_has_ports_of_its_own_unless_one_socket_has_both() {
        // Each row: two addresses, whether each is IPv6 only, and whether they overlap.
        for (one, one_only, other, other_only, meet) in [
            ("0.0.0.0:5004", false, "[::]:5004", true, false),
            ("0.0.0.0:5004", false, "[::]:5004", false, true),
            ("127.0.0.1:5004", false, "[::]:5004", false, true),
            ("127.0.0.1:5004", false, "[::]:5004", true, false),
            ("127.0.0.1:5004", false, "[::1]:5004", false, false),
            ("0.0.0.0:5004", false, "[::1]:5004", false, false),
            ("[::]:5004", true, "[::1]:5004", false, true),
            ("127.0.0.1:5004", false, "127.0.0.2:5004", false, false),
            ("127.0.0.1:5004", false, "127.0.0.1:5005", false, false),
        ] {
            let bound = |text: &str, is_v6_only| Bound {
                address: text.parse().unwrap(),
                sharing: ALONE,
                is_v6_only,
                used: Use::Bound,
            };
            let (one, other) = (bound(one, one_only), bound(other, other_only));
            assert_eq!(one.overlaps(&other), meet, "{one:?} {other:?}");
            assert_eq!(other.overlaps(&one), meet, "{other:?} {one:?}");
        }
    }
}
