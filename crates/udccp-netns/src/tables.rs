//! Sets up links, addresses and routes of a namespace by rtnetlink.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use netlink_packet_core::{
    NLM_F_ACK, NLM_F_CREATE, NLM_F_EXCL, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload,
};
use netlink_packet_route::address::{AddressAttribute, AddressHeaderFlags, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoKind, InfoVeth, LinkAttribute, LinkFlags, LinkInfo, LinkMessage,
};
use netlink_packet_route::neighbour::{NeighbourAttribute, NeighbourMessage, NeighbourState};
use netlink_packet_route::route::{
    RouteAttribute, RouteHeader, RouteMessage, RouteMetric, RouteProtocol, RouteScope, RouteType,
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

/// One end of a cable between two namespaces, as an interface that has yet to be made.
#[derive(Clone, Copy, Debug, Default)]
pub struct CableEnd<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Where it belongs; `None` is the namespace of the [`Tables`].
    pub namespace: Option<BorrowedFd<'a>>,
    /// Its hardware address; `None` lets the kernel draw one.
    pub hardware: Option<[u8; 6]>,
    /// Largest IP packet in bytes; `None` is 1500.
    pub mtu: Option<u32>,
    /// Segments that one packet of the stack may stand for; `None` is the kernel's choice.
    pub gso_max_segments: Option<u32>,
}

impl CableEnd<'_> {
    fn attributes(&self) -> Vec<LinkAttribute> {
        let mut all = vec![LinkAttribute::IfName(self.name.to_owned())];
        all.extend(self.namespace.map(|space| LinkAttribute::NetNsFd(space.as_raw_fd())));
        all.extend(self.hardware.map(|address| LinkAttribute::Address(address.to_vec())));
        all.extend(self.mtu.map(LinkAttribute::Mtu));
        all.extend(self.gso_max_segments.map(LinkAttribute::GsoMaxSegs));
        all
    }
}

/// What the kernel's TCP is told with a route; `None` leaves it to the kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpMetrics {
    /// First congestion window in packets.
    pub initial_window: Option<u32>,
    /// Largest congestion window in packets.
    pub max_window: Option<u32>,
    /// Least retransmission timeout in milliseconds.
    pub least_rto_ms: Option<u32>,
    /// Acknowledge each segment at once.
    pub quick_ack: bool,
}

impl TcpMetrics {
    fn attributes(self) -> Vec<RouteMetric> {
        /// RTAX_CWND and RTAX_RTO_MIN: TCP obeys these only where they are locked.
        const LOCKS: [u32; 2] = [1 << 7, 1 << 13];
        let locks = [self.max_window, self.least_rto_ms];
        let locks = locks.iter().zip(LOCKS).filter(|(value, _)| value.is_some());
        let lock = locks.fold(0, |all, (_, lock)| all | lock);
        let mut all: Vec<RouteMetric> = Vec::new();
        all.extend((lock != 0).then_some(RouteMetric::Lock(lock)));
        all.extend(self.max_window.map(RouteMetric::Cwnd));
        all.extend(self.initial_window.map(RouteMetric::InitCwnd));
        all.extend(self.least_rto_ms.map(RouteMetric::RtoMin));
        all.extend(self.quick_ack.then_some(RouteMetric::QuickAck(1)));
        all
    }
}

/// The number of an interface in the namespace of the calling thread.
///
/// # Errors
/// No interface has that name.
pub fn interface(name: &str) -> io::Result<u32> {
    Ok(nix::net::if_::if_nametoindex(name)?)
}

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

    /// Sets the largest IP packet of an interface, in bytes.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn set_mtu(&self, index: u32, bytes: u32) -> io::Result<()> {
        self.link_up(index, vec![LinkAttribute::Mtu(bytes)])
    }

    /// Makes a cable (a veth pair) with these ends.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_cable(&self, one: &CableEnd<'_>, other: &CableEnd<'_>) -> io::Result<()> {
        let mut far = LinkMessage::default();
        far.attributes = other.attributes();
        let info =
            [LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far)))];
        self.add_link(one, info.to_vec())
    }

    /// Makes an intermediate functional block: a device whose queue shapes what arrives.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_ifb(&self, device: &CableEnd<'_>) -> io::Result<()> {
        self.add_link(device, vec![LinkInfo::Kind(InfoKind::Ifb)])
    }

    fn add_link(&self, device: &CableEnd<'_>, info: Vec<LinkInfo>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = device.attributes();
        message.attributes.push(LinkAttribute::LinkInfo(info));
        self.ask(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Switches an interface on that asks nobody for hardware addresses.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn link_up_without_arp(&self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up | LinkFlags::Noarp;
        message.header.change_mask = message.header.flags;
        self.ask(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Gives an interface an address that is alone in its network. Nobody is asked whether it is
    /// taken: an IPv6 address could not be used for a second otherwise (RFC 4862 section 5.4).
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        self.add_address_in(index, address, if address.is_ipv4() { 32 } else { 128 })
    }

    /// Gives an interface an address in a network with a prefix of so many bits, to which it is the
    /// way; as [`Self::add_address`] otherwise.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_address_in(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family_of(address);
        message.header.prefix_len = prefix;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = index;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.ask(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Says for good which hardware address a neighbour has, so that nobody asks for it.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, hardware: [u8; 6]) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family_of(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(hardware.to_vec()),
        ];
        self.ask(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends all of a network out of an interface, with metrics for TCP.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_route(
        &self,
        (network, prefix): (IpAddr, u8),
        index: u32,
        metrics: TcpMetrics,
    ) -> io::Result<()> {
        let mut attributes =
            vec![RouteAttribute::Destination(network.into()), RouteAttribute::Oif(index)];
        if metrics != TcpMetrics::default() {
            attributes.push(RouteAttribute::Metrics(metrics.attributes()));
        }
        self.new_route((family_of(network), prefix), RouteScope::Link, attributes)
    }

    /// Sends all that has no other way to a router.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub fn add_gateway(&self, router: IpAddr) -> io::Result<()> {
        let attributes = vec![RouteAttribute::Gateway(router.into())];
        self.new_route((family_of(router), 0), RouteScope::Universe, attributes)
    }

    fn new_route(
        &self,
        (address_family, destination_prefix_length): (AddressFamily, u8),
        scope: RouteScope,
        attributes: Vec<RouteAttribute>,
    ) -> io::Result<()> {
        let mut message = RouteMessage::default();
        message.header = RouteHeader {
            address_family,
            destination_prefix_length,
            table: RouteHeader::RT_TABLE_MAIN,
            protocol: RouteProtocol::Static,
            scope,
            kind: RouteType::Unicast,
            ..RouteHeader::default()
        };
        message.attributes = attributes;
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

const fn family_of(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}
