//! Sets up links, addresses and routes of a namespace by rtnetlink.

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol,
    RouteScope, RouteType,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};

/// A socket to the kernel's tables of the namespace in which it was made.
pub struct Tables {
    socket: Socket,
}

/// The loopback interface of a namespace.
pub const LOOPBACK: u32 = 1;

impl Tables {
    /// Of the calling thread's namespace.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Switches an interface on, with these settings.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn link_up(&self, index: u32, settings: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = settings;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives an interface an address that is alone in its network. Nobody is asked whether it is
    /// taken: an IPv6 address could not be used for a second otherwise (RFC 4862 section 5.4).
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        let mut message = AddressMessage::default();
        (message.header.family, message.header.prefix_len) = match address {
            IpAddr::V4(_) => (AddressFamily::Inet, 32),
            IpAddr::V6(_) => (AddressFamily::Inet6, 128),
        };
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = index;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends all of a network out of an interface, with metrics for TCP.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_route(
        &self,
        (network, prefix): (IpAddr, u8),
        index: u32,
        metrics: Vec<RouteMetric>,
    ) -> io::Result<()> {
        let (family, destination) = match network {
            IpAddr::V4(network) => (AddressFamily::Inet, RouteAddress::Inet(network)),
            IpAddr::V6(network) => (AddressFamily::Inet6, RouteAddress::Inet6(network)),
        };
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family: family,
            destination_prefix_length: prefix,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope: RouteScope::Link,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes =
            vec![RouteAttribute::Destination(destination), RouteAttribute::Oif(index)];
        if !metrics.is_empty() {
            message.attributes.push(RouteAttribute::Metrics(metrics));
        }
        self.ask(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// One request and its acknowledgement.
    fn ask(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
        let mut message = NetlinkMessage::from(message);
        message.header.flags = NLM_F_REQUEST | NLM_F_ACK | flags;
        message.finalize();
        let mut bytes = vec![0; message.buffer_len()];
        message.serialize(&mut bytes);
        self.socket.send(&bytes, 0)?;
        let (answer, _) = self.socket.recv_from_full()?;
        let answer = NetlinkMessage::<RouteNetlinkMessage>::deserialize(&answer);
        match answer.map_err(io::Error::other)?.payload {
            NetlinkPayload::Error(error) if error.code.is_some() => Err(error.to_io()),
            _ => Ok(()),
        }
    }
}
