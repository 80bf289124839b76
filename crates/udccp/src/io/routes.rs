//! Asks the system for the route to a peer, and keeps the answer for a while, because most
//! connections go to a host with other connections.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

use socket2::SockRef;
use udccp_base::{Duration, Instant};

use super::socket_options::{bind_device, set_mark};
use super::{Io, canonical};
use crate::address::any_port;

/// How long an answer is used. Routes change without notice.
const USED_FOR: Duration = Duration::from_secs(1);
/// Most peers in the table.
const MAX_PEERS: usize = 1024;
/// The port for route lookups, which send nothing, so any would do.
const DISCARD: u16 = 9;

/// The route of packets to an address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// The source address of packets: the bound address or, for a socket bound to a wildcard, the
    /// one that routing picks. The endpoint needs the real address.
    pub(crate) source: SocketAddr,
    /// The largest IP packet, as far as the system knows.
    pub(crate) mtu: Option<u16>,
}

/// Answers of the routing table by the peer's address, with port 0.
#[derive(Debug, Default)]
pub(super) struct Routes {
    known: Mutex<BTreeMap<SocketAddr, (Route, Instant)>>,
}

impl Routes {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<SocketAddr, (Route, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, now: Instant, peer: SocketAddr) -> Option<Route> {
        let known = self.lock();
        known.get(&peer).filter(|(_, until)| now < *until).map(|(route, _)| *route)
    }

    fn keep(&self, now: Instant, peer: SocketAddr, route: Route) {
        let mut known = self.lock();
        if known.len() >= MAX_PEERS {
            known.clear();
        }
        known.insert(peer, (route, now + USED_FOR));
    }
}

impl Io {
    /// The route to `remote`, from the routing table or from a recent answer.
    pub(crate) fn route_to(&self, now: Instant, remote: SocketAddr) -> io::Result<Route> {
        let peer = without_port(remote);
        if let Some(route) = self.routes.find(now, peer) {
            return Ok(route);
        }
        let route = self.look_up_route(remote)?;
        self.routes.keep(now, peer, route);
        Ok(route)
    }

    /// The network reported an error about packets to `remote`, so the route may have changed.
    pub(crate) fn forget_route_to(&self, remote: SocketAddr) {
        self.routes.lock().remove(&without_port(remote));
    }

    /// For tests: stores this as a fresh answer of the routing table.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn insert_mtu(&self, now: Instant, remote: SocketAddr, mtu: u16) {
        let route = Route { source: self.local, mtu: Some(mtu) };
        self.routes.keep(now, without_port(remote), route);
    }

    /// Looks up the routing table.
    fn look_up_route(&self, remote: SocketAddr) -> io::Result<Route> {
        // With its scope, without which a link-local address cannot be bound.
        let bound = without_port(canonical(self.local));
        let from = if self.local.ip().is_unspecified() { any_port(remote) } else { bound };
        // Connecting a UDP socket sends nothing, but looks up the route.
        let probe = UdpSocket::bind(from)?;
        set_mark(&SockRef::from(&probe), self.mark)?;
        bind_device(&SockRef::from(&probe), self.device.as_deref())?;
        // Port 0, which raw IP has, cannot be connected to.
        let port = if remote.port() == 0 { DISCARD } else { remote.port() };
        let mut at = remote;
        at.set_port(port);
        probe.connect(at)?;
        let source = SocketAddr::new(probe.local_addr()?.ip(), self.local.port());
        Ok(Route { source, mtu: mtu_of(&probe, remote) })
    }
}

fn without_port(mut remote: SocketAddr) -> SocketAddr {
    remote.set_port(0);
    remote
}

/// The MTU towards the peer of a connected socket: that of the interface, or less if the system
/// knows of a narrower path.
fn mtu_of(socket: &UdpSocket, remote: SocketAddr) -> Option<u16> {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let mtu =
            if remote.is_ipv4() { sockopt::ip_mtu(socket) } else { sockopt::ipv6_mtu(socket) };
        // The loopback interface has 65536, more than an IP packet can have.
        mtu.ok().map(|mtu| u16::try_from(mtu).unwrap_or(u16::MAX))
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (socket, remote);
        None
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::EndpointOptions;

    fn bound() -> Io {
        Io::bind("0.0.0.0:0".parse().unwrap(), &EndpointOptions::default()).unwrap()
    }

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_wildcard_socket_names_the_address_that_routing_picks() {
        let io = bound();
        let route = io.route_to(at(0), "127.0.0.1:9".parse().unwrap()).unwrap();
        let expected = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), io.local_addr().port());
        assert_eq!(route.source, expected);
        assert!(route.mtu.is_none_or(|mtu| mtu > 1500), "{:?}", route.mtu);
    }

    #[test]
    fn routes_are_cached_per_address_until_expiry_or_a_report() {
        let io = bound();
        // An answer that the system would never give shows whether the table was looked up.
        let odd = Route { source: "10.9.8.7:6".parse().unwrap(), mtu: Some(777) };
        let (one, other) = ("127.0.0.1:9".parse().unwrap(), "127.0.0.1:1000".parse().unwrap());
        let elsewhere = "127.0.0.2:9".parse().unwrap();
        let is_odd = |at: Instant, peer| io.route_to(at, peer).unwrap().mtu == odd.mtu;
        io.routes.keep(at(0), without_port(one), odd);
        assert!(is_odd(at(999), one) && is_odd(at(999), other));
        assert!(!is_odd(at(999), elsewhere));
        assert!(!is_odd(at(1000), one), "asked again");
        io.routes.keep(at(1000), without_port(one), odd);
        io.forget_route_to(other);
        assert!(!is_odd(at(1001), one), "asked again");
    }

    #[test]
    fn route_cache_is_bounded() {
        let io = bound();
        let route = Route { source: io.local_addr(), mtu: None };
        for n in 0..5000_u16 {
            let [high, low] = n.to_be_bytes();
            io.routes.keep(at(0), SocketAddr::from(([127, 1, high, low], 0)), route);
            assert!(io.routes.lock().len() <= MAX_PEERS);
        }
    }
}
