//! Asks the system how packets to a peer leave, and remembers the answer for a while: most
//! connections go to a host that has others.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Mutex, MutexGuard, PoisonError};

use socket2::SockRef;
use udccp_base::{Duration, Instant};

use super::{Io, bind_device, canonical, set_mark};
use crate::address::any_port;

/// How long an answer is used: routes change without notice.
const USED_FOR: Duration = Duration::from_secs(1);
/// Peers remembered at once.
const MAX_PEERS: usize = 1024;
/// Any UDP port serves to ask for a route: nothing is sent.
const DISCARD: u16 = 9;

/// How packets to an address leave.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Route {
    /// The address that they leave from: the bound one, or, bound to a wildcard, the one that
    /// routing picks. The endpoint needs the true address.
    pub(crate) source: SocketAddr,
    /// The largest IP packet, as far as the system knows.
    pub(crate) mtu: Option<u16>,
}

/// Answers of the routing table by the peer's address; its port is 0 here.
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
    /// How packets to `remote` leave, by the routing table, or by what it answered not long ago.
    pub(crate) fn route_to(&self, now: Instant, remote: SocketAddr) -> io::Result<Route> {
        let peer = without_port(remote);
        if let Some(route) = self.routes.find(now, peer) {
            return Ok(route);
        }
        let route = self.ask_route_to(remote)?;
        self.routes.keep(now, peer, route);
        Ok(route)
    }

    /// The network reported something about packets to `remote`: the way there may be another one.
    pub(crate) fn forget_route_to(&self, remote: SocketAddr) {
        self.routes.lock().remove(&without_port(remote));
    }

    /// As if the routing table had just said this of the way to `remote`.
    #[cfg(all(test, target_os = "linux"))]
    pub(crate) fn pretend_mtu(&self, now: Instant, remote: SocketAddr, mtu: u16) {
        let route = Route { source: self.local, mtu: Some(mtu) };
        self.routes.keep(now, without_port(remote), route);
    }

    /// Asks the routing table.
    fn ask_route_to(&self, remote: SocketAddr) -> io::Result<Route> {
        // With its scope: an address of a link cannot be bound without.
        let bound = without_port(canonical(self.local));
        let from = if self.local.ip().is_unspecified() { any_port(remote) } else { bound };
        // Connecting a UDP socket sends nothing; it asks the routing table.
        let probe = UdpSocket::bind(from)?;
        set_mark(&SockRef::from(&probe), self.mark)?;
        bind_device(&SockRef::from(&probe), self.device.as_deref())?;
        // Port 0, which raw IP has, is no port to connect to.
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

/// The MTU towards the peer of a connected socket: that of the interface, or less where the
/// system has learnt of a narrower path.
fn mtu_of(socket: &UdpSocket, remote: SocketAddr) -> Option<u16> {
    #[cfg(target_os = "linux")]
    {
        use rustix::net::sockopt;
        let mtu =
            if remote.is_ipv4() { sockopt::ip_mtu(socket) } else { sockopt::ipv6_mtu(socket) };
        // The loopback interface has 65536, which is more than an IP packet can be.
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
    fn an_answer_is_used_for_all_ports_of_an_address_until_time_or_a_report_ends_it() {
        let io = bound();
        // An answer that the system would never give shows whether it is asked.
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
    fn a_host_with_many_peers_remembers_some() {
        let io = bound();
        let route = Route { source: io.local_addr(), mtu: None };
        for n in 0..5000_u16 {
            let [high, low] = n.to_be_bytes();
            io.routes.keep(at(0), SocketAddr::from(([127, 1, high, low], 0)), route);
            assert!(io.routes.lock().len() <= MAX_PEERS);
        }
    }
}
