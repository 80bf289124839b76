//! Joins a client and a server by a router.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use crate::Namespace;
use crate::tables::{CableEnd, LOOPBACK, Tables, interface};

/// The interface of client and server.
const CARD: &str = "eth0";

/// Name and hardware address of an interface; without one the kernel draws it.
type Card<'a> = (&'a str, Option<[u8; 6]>);

/// A client and a server with a router between them, over IPv4 and IPv6.
///
/// Each has the card `eth0`: the client 10.1.0.1 and fd01::1, the server 10.2.0.1 and fd02::1. The
/// router's are `left` with 10.1.0.9 and fd01::9, and `right` with 10.2.0.9 and fd02::9. They know
/// each other's hardware addresses, so that no question for one is lost where packets are.
#[derive(Debug)]
pub struct RoutedPair {
    /// The host on the left.
    pub client: Namespace,
    /// What forwards between them.
    pub router: Namespace,
    /// The host on the right.
    pub server: Namespace,
}

impl RoutedPair {
    /// A pair that can talk.
    ///
    /// # Errors
    /// No right to make namespaces, or what the kernel refuses.
    pub fn new() -> io::Result<Self> {
        let [client, router, server] = [Namespace::host()?, Namespace::host()?, Namespace::host()?];
        for (host, net, device) in [(&client, 1, "left"), (&server, 2, "right")] {
            connect(host, &router, net, device)?;
        }
        router.run(|| {
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")?;
            fs::write("/proc/sys/net/ipv6/conf/all/forwarding", "1")
        })?;
        Ok(Self { client, router, server })
    }

    /// Addresses of client and server.
    pub const fn addresses(v6: bool) -> [IpAddr; 2] {
        [address(v6, 1, 1), address(v6, 2, 1)]
    }

    /// Address of the router, at the client's side.
    pub const fn gateway(v6: bool) -> IpAddr {
        address(v6, 1, 9)
    }
}

impl Namespace {
    /// A new one with its loopback interface switched on, where IPv6 addresses are good at once.
    ///
    /// # Errors
    /// As [`Self::unshare`].
    pub fn host() -> io::Result<Self> {
        Self::with(|| {
            Tables::open()?.link_up(LOOPBACK, Vec::new())?;
            for scope in ["all", "default"] {
                match fs::write(format!("/proc/sys/net/ipv6/conf/{scope}/accept_dad"), "0") {
                    // A kernel without IPv6.
                    Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                    done => done?,
                }
            }
            Ok(())
        })
    }

    /// Joins two by a cable with interfaces of these names, which are switched on.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn join(&self, own: &str, other: &Self, others: &str) -> io::Result<()> {
        self.join_cards((own, None), other, (others, None))
    }

    /// As [`Self::join`], of interfaces with these hardware addresses.
    fn join_cards(&self, own: Card<'_>, other: &Self, others: Card<'_>) -> io::Result<()> {
        let space = other.as_fd().try_clone_to_owned()?;
        let (own, far) = ((own.0.to_owned(), own.1), (others.0.to_owned(), others.1));
        self.run(move || {
            let end = CableEnd { name: &own.0, hardware: own.1, ..CableEnd::default() };
            let (name, hardware) = (far.0.as_str(), far.1);
            let namespace = Some(space.as_fd());
            let far = CableEnd { name, namespace, hardware, ..CableEnd::default() };
            let tables = Tables::open()?;
            tables.add_cable(&end, &far)?;
            tables.link_up(interface(&own.0)?, Vec::new())
        })?;
        let others = others.0.to_owned();
        other.run(move || Tables::open()?.link_up(interface(&others)?, Vec::new()))
    }
}

/// Joins a host and a router, with addresses of this network, and the way out of it.
fn connect(host: &Namespace, router: &Namespace, net: u8, device: &'static str) -> io::Result<()> {
    let hardware = |host| Some(hardware(net, host));
    host.join_cards((CARD, hardware(1)), router, (device, hardware(9)))?;
    router.run(move || configure(&Tables::open()?, device, net, [9, 1]))?;
    host.run(move || {
        let tables = Tables::open()?;
        configure(&tables, CARD, net, [1, 9])?;
        tables.add_gateway(address(false, net, 9))?;
        tables.add_gateway(address(true, net, 9))
    })
}

/// Gives an interface its addresses, and tells it whom it is joined to.
fn configure(tables: &Tables, device: &str, net: u8, [own, other]: [u8; 2]) -> io::Result<()> {
    let index = interface(device)?;
    for (v6, prefix) in [(false, 24), (true, 64)] {
        tables.add_address_in(index, address(v6, net, own), prefix)?;
        tables.add_neighbour(index, address(v6, net, other), hardware(net, other))?;
    }
    Ok(())
}

/// A hardware address, administered locally.
const fn hardware(net: u8, host: u8) -> [u8; 6] {
    [2, 0, 0, 0, net, host]
}

const fn address(v6: bool, net: u8, host: u8) -> IpAddr {
    match v6 {
        false => IpAddr::V4(Ipv4Addr::new(10, net, 0, host)),
        true => IpAddr::V6(Ipv6Addr::new(0xfd00 + net as u16, 0, 0, 0, 0, 0, 0, host as u16)),
    }
}
