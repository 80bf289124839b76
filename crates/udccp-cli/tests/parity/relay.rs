//! A path between two sockets: the laboratory's links in real time, and a record of the packets.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;
use socket2::{Domain, Protocol, Socket, Type};
use udccp_base::{Datagram, Ecn, Instant, Payload, Seed};
use udccp_link::{Link, LinkConfig};

use super::ObservedPacket;

/// The client, the relay's addresses toward the client and toward the server, and the server. Over
/// raw IP, the relay changes only the addresses. The DCCP checksum stays valid because source and
/// destination have the same sum on both sides.
pub(crate) const CLIENT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
pub(crate) const FRONT: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
const BACK: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 8);
pub(crate) const SERVER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);

/// The IPv4 header without options that raw sockets return with each packet.
const IPV4_HEADER_BYTES: usize = 20;

/// One side of the relay.
struct Side {
    /// Raw sockets are used as UDP sockets, since the calls are the same.
    socket: UdpSocket,
    peer: Option<SocketAddr>,
    is_raw: bool,
}

/// A running relay.
pub(crate) struct Relay {
    /// The address for the client: a UDP address, or port 0 over raw IP.
    pub(crate) front: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

/// The packets that the relay saw.
pub(crate) struct Report {
    /// Packets received.
    pub(crate) passed: Vec<ObservedPacket>,
    /// Packets forwarded.
    pub(crate) delivered: Vec<ObservedPacket>,
    /// The largest delay of a packet beyond its due time.
    pub(crate) worst_delay: Duration,
}

impl Relay {
    /// Connects clients with the server at a UDP address.
    pub(crate) fn udp(link: &LinkConfig, server: SocketAddr) -> Self {
        let side = |peer| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            Side { socket, peer, is_raw: false }
        };
        Self::start(link, [side(None), side(Some(server))])
    }

    /// Connects `CLIENT` with `SERVER` over raw IP.
    pub(crate) fn raw(link: &LinkConfig) -> Self {
        let side = |at: Ipv4Addr, peer: Ipv4Addr| {
            let dccp = Protocol::from(i32::from(Datagram::DCCP));
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(dccp)).unwrap();
            socket.bind(&SocketAddr::from((at, 0)).into()).unwrap();
            Side { socket: socket.into(), peer: Some((peer, 0).into()), is_raw: true }
        };
        Self::start(link, [side(FRONT, CLIENT), side(BACK, SERVER)])
    }

    #[expect(clippy::disallowed_methods, reason = "a relay works by the clock")]
    fn start(link: &LinkConfig, sides: [Side; 2]) -> Self {
        let mut front = sides[0].socket.local_addr().unwrap();
        if sides[0].is_raw {
            front.set_port(0);
        }
        let links = ["there", "back"].map(|name| link.build(Seed(1), name));
        let stop = Arc::new(AtomicBool::new(false));
        let found = Arc::clone(&stop);
        let thread = std::thread::spawn(move || relay(sides, links, &found));
        Self { front, stop, thread }
    }

    /// Stops the relay.
    pub(crate) fn finish(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "a relay works by the clock")]
fn relay(
    mut sides: [Side; 2],
    mut links: [Box<dyn Link<Datagram>>; 2],
    stop: &AtomicBool,
) -> Report {
    let began = std::time::Instant::now();
    let clock = || Instant::from_nanos(began.elapsed().as_nanos() as u64);
    sides.iter().for_each(|side| side.socket.set_nonblocking(true).unwrap());
    let mut report =
        Report { passed: Vec::new(), delivered: Vec::new(), worst_delay: Duration::ZERO };
    let mut drops = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let due = links.iter().filter_map(|link| link.poll_timeout()).min();
        let until = due.map_or(Duration::from_millis(20), |at| {
            let left = at.saturating_since(clock());
            Duration::from_nanos(left.as_nanos()).min(Duration::from_millis(20))
        });
        wait(&sides, until);
        for (from, is_client) in [(0, true), (1, false)] {
            while let Some(bytes) = sides[from].read() {
                let now = clock();
                report.passed.extend(ObservedPacket::read(now, is_client, &bytes));
                links[from].handle_packet(now, datagram(bytes), &mut drops);
            }
            loop {
                let (now, due) = (clock(), links[from].poll_timeout());
                let Some(packet) = links[from].poll_departure(now, &mut drops) else { break };
                let late = due.map_or(0, |due| now.saturating_since(due).as_nanos());
                report.worst_delay = report.worst_delay.max(Duration::from_nanos(late));
                report.delivered.extend(ObservedPacket::read(now, is_client, &packet.header));
                sides[1 - from].write(&packet.header);
            }
        }
    }
    report
}

fn wait(sides: &[Side; 2], at_most: Duration) {
    let mut fds = [0, 1].map(|i: usize| PollFd::new(sides[i].socket.as_fd(), PollFlags::POLLIN));
    let _ = ppoll(&mut fds, Some(TimeSpec::from_duration(at_most)), None);
}

/// The packet as the simulator's links see it: IPv4 without UDP.
fn datagram(bytes: Vec<u8>) -> Datagram {
    let at = SocketAddr::new(IpAddr::V4(CLIENT), 0);
    let (ecn, payload) = (Ecn::NotEct, Payload::EMPTY);
    Datagram { src: at, dst: at, protocol: Datagram::DCCP, ecn, header: bytes.into(), payload }
}

impl Side {
    fn read(&mut self) -> Option<Vec<u8>> {
        let mut buffer = vec![0; 2048];
        let (len, from) = self.socket.recv_from(&mut buffer).ok()?;
        self.peer.get_or_insert(from);
        let skip = if self.is_raw { IPV4_HEADER_BYTES } else { 0 };
        buffer.truncate(len);
        Some(buffer.split_off(skip.min(len)))
    }

    fn write(&self, packet: &[u8]) {
        if let Some(peer) = self.peer {
            let _ = self.socket.send_to(packet, peer);
        }
    }
}
