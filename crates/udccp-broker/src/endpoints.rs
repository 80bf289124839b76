//! The UDP and raw sockets on which listeners receive, shared between listeners.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with, sockopt};
use tokio::time::timeout;
use udccp::{AnswerForHost, Endpoint, EndpointOptions};

use crate::settings::Transport;
use crate::{address, errno};

const ANY_V4: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ANY_V6: IpAddr = IpAddr::V6(Ipv6Addr::UNSPECIFIED);

/// Where a listener's packets arrive.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct EndpointKey {
    ip: IpAddr,
    udp_port: u16,
    is_raw: bool,
    /// The network interface that it is bound to, if any.
    device: Option<String>,
    /// Whether it serves one DCCP port only, and closes with it. The shared UDP port stays open as
    /// long as the broker runs.
    is_of_one_port: bool,
}

#[derive(Debug)]
struct OpenEndpoint {
    endpoint: Endpoint,
    /// The UDP socket, to change its options; `None` over raw IP.
    socket: Option<UdpSocket>,
}

/// What a listener requests.
#[derive(Clone, Debug)]
pub(crate) struct ListenRequest {
    pub(crate) transport: Transport,
    /// The bound address. IPv4-mapped addresses are converted to IPv4.
    pub(crate) local: SocketAddr,
    /// Whether the wildcard address covers only IPv6.
    pub(crate) is_v6_only: bool,
    pub(crate) device: Option<String>,
}

impl ListenRequest {
    fn is_for_all(&self) -> bool {
        self.local.ip().is_unspecified()
    }

    /// Whether it serves an IP version.
    pub(crate) fn serves(&self, is_v4: bool) -> bool {
        address::serves(self.local, self.is_v6_only, is_v4)
    }

    fn key(&self, ip: IpAddr) -> EndpointKey {
        EndpointKey {
            ip,
            udp_port: match self.transport {
                Transport::Udp(port) => port,
                Transport::SamePort => self.local.port(),
                Transport::Raw => 0,
            },
            is_raw: self.transport == Transport::Raw,
            device: self.device.clone(),
            is_of_one_port: self.transport == Transport::SamePort,
        }
    }

    /// Whether some of its packets arrive at another endpoint than that for all addresses.
    fn shares(&self, key: &EndpointKey) -> bool {
        let ours = self.key(key.ip);
        self.is_for_all()
            && *key == ours
            && !key.ip.is_unspecified()
            && self.serves(key.ip.is_ipv4())
    }
}

/// All open endpoints.
#[derive(Debug, Default)]
pub(crate) struct Endpoints {
    open: HashMap<EndpointKey, OpenEndpoint>,
}

impl Endpoints {
    /// The endpoints at which a listener's packets arrive. If a socket for all addresses is open,
    /// it serves each of them; over UDP, it serves both IPv4 and IPv6.
    pub(crate) fn of(&mut self, wanted: &ListenRequest) -> Result<Vec<Endpoint>, Errno> {
        if wanted.transport == Transport::Raw {
            return self.raw(wanted);
        }
        let (own, all) = (wanted.key(wanted.local.ip()), wanted.key(ANY_V6));
        if !wanted.is_for_all() {
            // A packet goes to the socket that is bound to its address, if there is one.
            let there = self.open.get(&own).or_else(|| self.open.get(&all));
            let there = there.map(|open| open.endpoint.clone());
            return Ok(vec![there.map_or_else(|| self.open_udp(own), Ok)?]);
        }
        let every = match self.open.get(&all) {
            Some(open) => open.endpoint.clone(),
            None => self.open_udp(all)?,
        };
        let beside = self.open.iter().filter(|(key, _)| wanted.shares(key));
        let mut endpoints: Vec<Endpoint> = beside.map(|(_, open)| open.endpoint.clone()).collect();
        endpoints.push(every);
        Ok(endpoints)
    }

    /// Over raw IP, a socket for all addresses of an IP version serves each of them, since every
    /// raw socket gets all packets.
    fn raw(&mut self, wanted: &ListenRequest) -> Result<Vec<Endpoint>, Errno> {
        let mut endpoints = Vec::new();
        for ip in [ANY_V4, ANY_V6] {
            if !wanted.serves(ip.is_ipv4()) {
                continue;
            }
            match self.open_raw(wanted.key(ip)) {
                Ok(endpoint) => endpoints.push(endpoint),
                // The machine has only one IP version.
                Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) if wanted.is_for_all() => {}
                Err(e) => return Err(e),
            }
        }
        if endpoints.is_empty() { Err(Errno::ADDRNOTAVAIL) } else { Ok(endpoints) }
    }

    fn open_raw(&mut self, key: EndpointKey) -> Result<Endpoint, Errno> {
        if let Some(open) = self.open.get(&key) {
            return Ok(open.endpoint.clone());
        }
        // Programs expect their host to refuse connections to unserved ports, as a kernel with DCCP
        // does.
        let options = options(&key).raw_ip(true).answer_for_host(AnswerForHost::WhileOpen);
        let endpoint = Endpoint::bind_with((key.ip, 0).into(), &options).map_err(refused)?;
        self.open.insert(key, OpenEndpoint { endpoint: endpoint.clone(), socket: None });
        Ok(endpoint)
    }

    /// Answers for this host at `ip`: refuses connections to unserved ports, which no kernel does
    /// over raw IP.
    pub(crate) fn answer_for_host(&mut self, ip: IpAddr) -> Result<(), Errno> {
        let is_ours = UdpSocket::bind((ip, 0)).is_ok();
        let any = if ip.is_ipv4() { ANY_V4 } else { ANY_V6 };
        let key =
            EndpointKey { ip: any, udp_port: 0, is_raw: true, device: None, is_of_one_port: false };
        if is_ours { self.open_raw(key).map(drop) } else { Ok(()) }
    }

    fn open_udp(&mut self, key: EndpointKey) -> Result<Endpoint, Errno> {
        let socket = match self.bind(key.ip, key.udp_port) {
            // The machine has no IPv6.
            Err(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL) if key.ip == ANY_V6 => {
                self.bind(ANY_V4, key.udp_port)?
            }
            other => other?,
        };
        let kept = socket.try_clone().map_err(|e| of_io(&e))?;
        let endpoint = Endpoint::from_socket(socket, &options(&key)).map_err(refused)?;
        self.open.insert(key, OpenEndpoint { endpoint: endpoint.clone(), socket: Some(kept) });
        Ok(endpoint)
    }

    /// Binds a UDP socket next to the sockets already open on that port. The kernel gives each
    /// packet to the socket with the most specific address.
    fn bind(&self, ip: IpAddr, udp_port: u16) -> Result<UdpSocket, Errno> {
        let family = if ip.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        if ip.is_ipv6() {
            sockopt::set_ipv6_v6only(&socket, !ip.is_unspecified())?;
        }
        let beside = self.open.iter().filter(|(key, _)| !key.is_raw && key.udp_port == udp_port);
        let beside: Vec<&UdpSocket> = beside.filter_map(|(_, open)| open.socket.as_ref()).collect();
        let share = |is_shared: bool| -> Result<(), Errno> {
            let all = beside.iter().map(|other| sockopt::set_socket_reuseport(other, is_shared));
            all.chain([sockopt::set_socket_reuseport(&socket, is_shared)]).collect()
        };
        if !beside.is_empty() {
            // Only during the bind, so that no other process can share the port.
            share(true)?;
        }
        let bound = bind(&socket, &SocketAddr::new(ip, udp_port));
        if !beside.is_empty() {
            share(false)?;
        }
        bound.map(|()| UdpSocket::from(socket))
    }

    /// The endpoints that belong to one DCCP port.
    fn of_one_port(&self) -> Vec<(EndpointKey, Endpoint)> {
        let open = self.open.iter().filter(|(key, _)| key.is_of_one_port);
        open.map(|(key, open)| (key.clone(), open.endpoint.clone())).collect()
    }
}

fn options(key: &EndpointKey) -> EndpointOptions {
    let options = EndpointOptions::new();
    match &key.device {
        Some(device) => options.device(device),
        None => options,
    }
}

fn refused(e: udccp::Error) -> Errno {
    errno::of(&e).unwrap_or(Errno::IO)
}

fn of_io(e: &std::io::Error) -> Errno {
    Errno::from_io_error(e).unwrap_or(Errno::IO)
}

/// Closes UDP ports that no listener and no connection uses. `is_used` tells whether a listener
/// uses an address.
pub(crate) async fn close_idle(
    endpoints: &std::sync::Mutex<Endpoints>,
    is_used: impl Fn(SocketAddr) -> bool,
) {
    let of_one_port = endpoints.lock().expect("never poisoned").of_one_port();
    for (key, endpoint) in of_one_port {
        let is_idle = timeout(Duration::ZERO, endpoint.wait_idle()).await.is_ok();
        // Nothing runs between this check and the removal: the broker has one thread.
        if is_idle && !is_used(endpoint.local_addr()) {
            endpoints.lock().expect("never poisoned").open.remove(&key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(local: &str, is_v6_only: bool) -> ListenRequest {
        let (transport, local) = (Transport::Udp(0), local.parse().unwrap());
        ListenRequest { transport, local, is_v6_only, device: None }
    }

    #[test]
    fn wildcard_addresses_cover_one_ip_version_or_both() {
        let versions = |local, only| [true, false].map(|v4| wanted(local, only).serves(v4));
        assert_eq!(versions("0.0.0.0:1", false), [true, false]);
        assert_eq!(versions("[::]:1", false), [true, true]);
        assert_eq!(versions("[::]:1", true), [false, true]);
        assert_eq!(versions("[::1]:1", false), [false, true]);
    }

    #[tokio::test]
    async fn wildcard_listener_reuses_existing_sockets() {
        let mut endpoints = Endpoints::default();
        let free = UdpSocket::bind("[::]:0").unwrap().local_addr().unwrap().port();
        let at = |local: &str, is_v6_only| ListenRequest {
            transport: Transport::Udp(free),
            ..wanted(local, is_v6_only)
        };
        let count = |endpoints: &mut Endpoints, wanted: ListenRequest| {
            endpoints.of(&wanted).map(|all| all.len())
        };
        assert_eq!(count(&mut endpoints, at("127.0.0.1:1", false)), Ok(1));
        assert_eq!(count(&mut endpoints, at("127.0.0.2:1", false)), Ok(1));
        assert_eq!(count(&mut endpoints, at("[::1]:1", false)), Ok(1));
        assert_eq!(count(&mut endpoints, at("0.0.0.0:2", false)), Ok(3));
        assert_eq!(count(&mut endpoints, at("[::]:3", true)), Ok(2));
        assert_eq!(count(&mut endpoints, at("[::]:4", false)), Ok(4));
        // From here on, each address has its own socket.
        assert_eq!(count(&mut endpoints, at("127.0.0.3:1", false)), Ok(1));
        assert_eq!(endpoints.open.len(), 4);
        let other = socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
        let (other, at) = (other.unwrap(), SocketAddr::from(([127, 0, 0, 4], free)));
        sockopt::set_socket_reuseport(&other, true).unwrap();
        assert_eq!(bind(&other, &at), Err(Errno::ADDRINUSE), "nobody else shares the port");
    }
}
