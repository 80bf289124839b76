//! Connects a client and a server through a router.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::AsFd;

use crate::Namespace;
use crate::tables::{CableEnd, LOOPBACK, Tables, interface};

/// The interface of client and server.
const CARD: &str = "eth0";

/// Name and hardware address of an interface; without an address, the kernel picks one.
type Card<'a> = (&'a str, Option<[u8; 6]>);

/// A client and a server with a router between them, over IPv4 and IPv6.
///
/// Client and server each have the interface `eth0`: the client with 10.1.0.1 and fd01::1, the
/// server with 10.2.0.1 and fd02::1. The router has `left` with 10.1.0.9 and fd01::9, and `right`
/// with 10.2.0.9 and fd02::9. Neighbour entries are permanent, so packet loss cannot affect address
/// resolution.
#[derive(Debug)]
pub struct RoutedPair {
    /// The host on the left.
    pub client: Namespace,
    /// The router between them.
    pub router: Namespace,
    /// The host on the right.
    pub server: Namespace,
}

impl RoutedPair {
    /// Creates a pair that is ready to use.
    ///
    /// # Errors
    /// No permission to create namespaces, or another error of the kernel.
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

    /// Address of the router on the client's side.
    pub const fn gateway(v6: bool) -> IpAddr {
        address(v6, 1, 9)
    }
}

impl Namespace {
    /// Creates a namespace with its loopback interface up, in which IPv6 addresses are usable at
    /// once.
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

    /// Connects two namespaces by a cable with interfaces of these names, and switches them on.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn join(&self, own: &str, other: &Self, others: &str) -> io::Result<()> {
        self.join_cards((own, None), other, (others, None))
    }

    /// Like [`Self::join`], with hardware addresses.
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

/// Connects a host to a router, with addresses of this network and a default route.
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

/// Gives an interface its addresses, and the neighbour entries for the other end.
fn configure(tables: &Tables, device: &str, net: u8, [own, other]: [u8; 2]) -> io::Result<()> {
    let index = interface(device)?;
    for (v6, prefix) in [(false, 24), (true, 64)] {
        tables.add_address_in(index, address(v6, net, own), prefix)?;
        tables.add_neighbour(index, address(v6, net, other), hardware(net, other))?;
    }
    Ok(())
}

/// A locally administered hardware address.
const fn hardware(net: u8, host: u8) -> [u8; 6] {
    [2, 0, 0, 0, net, host]
}

const fn address(v6: bool, net: u8, host: u8) -> IpAddr {
    match v6 {
        false => IpAddr::V4(Ipv4Addr::new(10, net, 0, host)),
        true => IpAddr::V6(Ipv6Addr::new(0xfd00 + net as u16, 0, 0, 0, 0, 0, 0, host as u16)),
    }
}
