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

/// A netlink socket for the links, addresses and routes of the namespace in which it was opened.
pub struct Tables {
    socket: Socket,
}

/// The loopback interface of a namespace.
pub const LOOPBACK: u32 = 1;

/// One end of a cable between two namespaces: an interface to be created.
#[derive(Clone, Copy, Debug, Default)]
pub struct CableEnd<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Its namespace; `None` is that of the [`Tables`].
    pub namespace: Option<BorrowedFd<'a>>,
    /// Its hardware address; with `None`, the kernel picks one.
    pub hardware: Option<[u8; 6]>,
    /// Largest IP packet in bytes; `None` is 1500.
    pub mtu: Option<u32>,
    /// Most segments in one large packet of the stack (GSO); with `None`, the kernel decides.
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

/// Parameters of a route for the kernel's TCP; with `None`, the kernel decides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpMetrics {
    /// Initial congestion window in packets.
    pub initial_window: Option<u32>,
    /// Largest congestion window in packets.
    pub max_window: Option<u32>,
    /// Minimum retransmission timeout in milliseconds.
    pub least_rto_ms: Option<u32>,
    /// Acknowledge each segment at once.
    pub quick_ack: bool,
}

impl TcpMetrics {
    fn attributes(self) -> Vec<RouteMetric> {
        /// RTAX_CWND and RTAX_RTO_MIN: TCP honours these only if they are locked.
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
    /// Opens a socket in the calling thread's namespace.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn open() -> io::Result<Self> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket })
    }

    /// Switches an interface on, with these settings.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn link_up(&self, index: u32, settings: Vec<LinkAttribute>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up;
        message.header.change_mask = LinkFlags::Up;
        message.attributes = settings;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Sets the MTU of an interface, in bytes.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn set_mtu(&self, index: u32, bytes: u32) -> io::Result<()> {
        self.link_up(index, vec![LinkAttribute::Mtu(bytes)])
    }

    /// Creates a cable (a veth pair) with these ends.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_cable(&self, one: &CableEnd<'_>, other: &CableEnd<'_>) -> io::Result<()> {
        let mut far = LinkMessage::default();
        far.attributes = other.attributes();
        let info =
            [LinkInfo::Kind(InfoKind::Veth), LinkInfo::Data(InfoData::Veth(InfoVeth::Peer(far)))];
        self.add_link(one, info.to_vec())
    }

    /// Creates an intermediate functional block: a device whose queue shapes received packets.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_ifb(&self, device: &CableEnd<'_>) -> io::Result<()> {
        self.add_link(device, vec![LinkInfo::Kind(InfoKind::Ifb)])
    }

    fn add_link(&self, device: &CableEnd<'_>, info: Vec<LinkInfo>) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.attributes = device.attributes();
        message.attributes.push(LinkAttribute::LinkInfo(info));
        self.request(RouteNetlinkMessage::NewLink(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Switches an interface on without ARP.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn link_up_without_arp(&self, index: u32) -> io::Result<()> {
        let mut message = LinkMessage::default();
        message.header.index = index;
        message.header.flags = LinkFlags::Up | LinkFlags::Noarp;
        message.header.change_mask = message.header.flags;
        self.request(RouteNetlinkMessage::SetLink(message), 0)
    }

    /// Adds an address with the full prefix length to an interface. There is no duplicate address
    /// detection, with which an IPv6 address could not be used for a second (RFC 4862 section 5.4).
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_address(&self, index: u32, address: IpAddr) -> io::Result<()> {
        self.add_address_in(index, address, if address.is_ipv4() { 32 } else { 128 })
    }

    /// Adds an address with a prefix length and a route to its network; otherwise like
    /// [`Self::add_address`].
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_address_in(&self, index: u32, address: IpAddr, prefix: u8) -> io::Result<()> {
        let mut message = AddressMessage::default();
        message.header.family = family_of(address);
        message.header.prefix_len = prefix;
        message.header.flags = AddressHeaderFlags::Nodad;
        message.header.index = index;
        message.attributes =
            vec![AddressAttribute::Local(address), AddressAttribute::Address(address)];
        self.request(RouteNetlinkMessage::NewAddress(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a permanent neighbour entry, so that the address is never resolved.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn add_neighbour(&self, index: u32, address: IpAddr, hardware: [u8; 6]) -> io::Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family_of(address);
        message.header.ifindex = index;
        message.header.state = NeighbourState::Permanent;
        message.attributes = vec![
            NeighbourAttribute::Destination(address.into()),
            NeighbourAttribute::LinkLayerAddress(hardware.to_vec()),
        ];
        self.request(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Adds a route to a network through an interface, with metrics for TCP.
    ///
    /// # Errors
    /// The kernel's error.
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

    /// Adds a default route through a router.
    ///
    /// # Errors
    /// The kernel's error.
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
        self.request(RouteNetlinkMessage::NewRoute(message), NLM_F_CREATE | NLM_F_EXCL)
    }

    /// Sends a request and waits for its acknowledgement.
    fn request(&self, message: RouteNetlinkMessage, flags: u16) -> io::Result<()> {
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
