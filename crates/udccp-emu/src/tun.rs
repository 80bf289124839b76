//! TUN devices, through which packets leave and enter the kernel.

use std::fs::{self, OpenOptions};
use std::io::{self, IoSlice, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

use netlink_packet_route::link::LinkAttribute;

use crate::sys;
use udccp_netns::{LOOPBACK, Tables, TcpMetrics};

/// The device from which TUN devices are created.
pub(crate) const DEVICE: &str = "/dev/net/tun";

/// The name of a host's only interface.
pub(crate) const NAME: &str = "udccp0";

/// Packets that may wait for the emulator before the kernel drops: more than a second at 1 Gbit/s.
const QUEUE: u32 = 100_000;

/// All hosts are in one of these networks; see [`udccp_sim::PairAddresses`].
const NETWORKS: [(IpAddr, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), 8),
    (IpAddr::V6(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, 0)), 8),
];

/// The network card of a host.
#[derive(Clone, Debug)]
pub(crate) struct Card {
    pub(crate) address: IpAddr,
    /// Largest IP packet.
    pub(crate) mtu: u32,
    /// TCP's parameters for the route to all others.
    pub(crate) metrics: TcpMetrics,
    /// Settings of the namespace, by their path below `/proc/sys/net`.
    pub(crate) settings: Vec<(String, String)>,
}

/// An open TUN device. Each call reads or writes one whole packet; reading never blocks.
#[derive(Debug)]
pub(crate) struct Tun {
    file: fs::File,
}

impl Tun {
    /// Creates a device in the calling thread's namespace and gives it its address. Packets are as
    /// on a wire: the kernel splits them to the MTU and fills in all checksums.
    pub(crate) fn open(card: &Card) -> io::Result<Self> {
        let nonblocking = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
        let file =
            OpenOptions::new().read(true).write(true).custom_flags(nonblocking).open(DEVICE)?;
        sys::attach_tun(file.as_fd(), NAME)?;
        for (path, value) in &card.settings {
            match fs::write(format!("/proc/sys/net/{path}"), value) {
                // A kernel without IPv6 need not disable it.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                done => done?,
            }
        }
        let index = nix::net::if_::if_nametoindex(NAME)?;
        let tables = Tables::open()?;
        tables.link_up(LOOPBACK, Vec::new())?;
        let link = vec![LinkAttribute::Mtu(card.mtu), LinkAttribute::TxQueueLen(QUEUE)];
        tables.link_up(index, link)?;
        tables.add_address(index, card.address)?;
        let of_host = |(network, _): &&(IpAddr, u8)| network.is_ipv4() == card.address.is_ipv4();
        let network = NETWORKS.iter().find(of_host).copied().ok_or(io::ErrorKind::Unsupported)?;
        tables.add_route(network, index, card.metrics)?;
        Ok(Self { file })
    }

    /// A file in place of a device, for tests.
    #[cfg(test)]
    pub(crate) fn of_file(file: fs::File) -> Self {
        Self { file }
    }

    /// Reads one packet, or returns `None` if none is waiting.
    #[inline]
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match rustix::io::read(&self.file, buffer) {
            Ok(len) => Ok(Some(len)),
            Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Writes one packet that consists of these parts.
    #[inline]
    pub(crate) fn write(&self, parts: [&[u8]; 3]) -> io::Result<()> {
        (&self.file).write_vectored(&parts.map(IoSlice::new)).map(|_| ())
    }

    /// Packets that the kernel dropped before the emulator read them, from the device's line in
    /// `/proc/net/dev`.
    pub(crate) fn dropped(table: &str) -> io::Result<u64> {
        let line = table.lines().find_map(|l| l.trim().strip_prefix(NAME)?.strip_prefix(':'));
        // Received: bytes, packets, errs, drop, fifo, frame, compressed, multicast; then sent.
        let dropped = line.and_then(|l| l.split_whitespace().nth(11)?.parse().ok());
        dropped.ok_or_else(|| io::Error::other(format!("{NAME} is not in /proc/net/dev")))
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
