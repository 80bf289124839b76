//! Simulated and deployed code are the same: runs one scenario in the simulator, over async
//! sockets, over blocking sockets and over raw IP.
//!
//! A client sends 1.5 MB over a path of 4 Mbit/s, 40 ms and a queue of 20 packets, and closes. The
//! simulator runs it in virtual time. Sockets run it in real time through the same links, in a
//! relay on the loopback interface. The test compares what an observer on the path sees: the packet
//! types in each phase of the connection, and the rate at which data arrive.

#![cfg(target_os = "linux")]
#![allow(clippy::print_stderr, reason = "a skipped check says so")]

#[path = "../../udccp/tests/namespace/mod.rs"]
mod namespace;
#[path = "parity/relay.rs"]
mod relay;

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use relay::{CLIENT, FRONT, Relay, Report, SERVER};
use udccp::blocking;
use udccp::{Address, Endpoint, EndpointOptions, Options, ServiceCode};
use udccp_base::{DataRate, Instant};
use udccp_lab::schema::Experiment;
use udccp_lab::{RunOptions, document::Override};
use udccp_link::{LinkConfig, QueueLimit};
use udccp_proto::ConnectionConfig;
use udccp_wire::ip::{Envelope, LinkType};
use udccp_wire::{PacketType, PacketView, ResetCode};

const SERVICE: ServiceCode = ServiceCode(u32::from_be_bytes(*b"PERF"));
const PORT: u16 = 5004;
const BYTES: usize = 1_500_000;
/// Size of data packets, including IP headers.
const PACKET_BYTES: u16 = 1040;

const SCENARIO: &str = r#"
schema = 1
id = "parity"
asks = "Do simulation and sockets put the same packets on the wire?"

[topology]
shape = "dumbbell"
access = { rate = "10 Gbit/s", delay = "0 ms" }
bottleneck = { rate = "4 Mbit/s", rtt = "40 ms", queue = "drop-tail", limit = "20 packets" }

[time]
duration = "10 s"
measure = { from = "0 s", to = "10 s", every = "1 s" }

[[flow]]
name = "one"
protocol = "dccp/ccid2"
packet = "1040 B"
traffic = { kind = "transfer", size = "1500 kB" }
dccp = { ecn = false }
"#;

/// A packet as seen by an observer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ObservedPacket {
    at: Instant,
    is_clients: bool,
    ty: PacketType,
    reset: Option<ResetCode>,
    data_len: usize,
}

impl ObservedPacket {
    fn read(at: Instant, is_clients: bool, dccp: &[u8]) -> Option<Self> {
        Some(Self::of(at, is_clients, &PacketView::new(dccp, dccp.len()).ok()?))
    }

    fn of(at: Instant, is_clients: bool, view: &PacketView<'_>) -> Self {
        let (ty, reset) = (view.packet_type(), view.reset_code());
        Self { at, is_clients, ty, reset, data_len: view.data_len() }
    }

    fn name(&self) -> String {
        let side = if self.is_clients { "client" } else { "server" };
        let reset = self.reset.map_or(String::new(), |code| format!(" {code:?}"));
        format!("{side} {:?}{reset}", self.ty)
    }
}

/// What is the same in every run of the scenario, whatever the timing.
#[derive(Debug, PartialEq, Eq)]
struct PacketSequence {
    /// Every packet before the first data, in order. The client may confirm the Response with its
    /// first data.
    opening: Vec<String>,
    /// Packet types from the first data to the last. The client acknowledges the server's
    /// acknowledgements on data packets, unless the window is closed at that moment.
    middle: BTreeSet<String>,
    /// Every packet after the last data, except acknowledgements that were in flight.
    closing: Vec<String>,
    /// Number of data packets sent, and their bytes.
    data: (usize, usize),
}

impl PacketSequence {
    fn of(passed: &[ObservedPacket]) -> Self {
        let is_data = |p: &ObservedPacket| p.data_len > 0;
        let first = passed.iter().position(is_data).expect("there is data");
        let last = passed.iter().rposition(is_data).expect("there is data");
        let ack = "client Ack".to_owned();
        let mut opening: Vec<String> = passed[..first].iter().map(ObservedPacket::name).collect();
        opening.retain(|name| *name != ack);
        let mut closing: Vec<String> =
            passed[last + 1..].iter().map(ObservedPacket::name).collect();
        closing.retain(|name| name != "server Ack");
        let mut middle: BTreeSet<_> =
            passed[first..=last].iter().map(ObservedPacket::name).collect();
        middle.remove(&ack);
        let data = passed.iter().filter(|p| is_data(p));
        Self {
            opening,
            middle,
            closing,
            data: (data.clone().count(), data.map(|p| p.data_len).sum()),
        }
    }
}

/// Rate of the received data between its first and last packet, in Mbit/s.
fn goodput(delivered: &[ObservedPacket]) -> f64 {
    let data: Vec<_> = delivered.iter().filter(|p| p.is_clients && p.data_len > 0).collect();
    let (first, last) = (data[0], data[data.len() - 1]);
    let bytes: usize = data[1..].iter().map(|p| p.data_len).sum();
    bytes as f64 * 8e3 / (last.at - first.at).as_nanos() as f64
}

/// The options of both sides, equal to the simulated ones. Messages have the same length over UDP
/// as over raw IP, since packets are longer by a UDP header.
fn options(is_raw: bool) -> Options {
    let path_mtu = if is_raw { PACKET_BYTES } else { PACKET_BYTES + 8 };
    let mut options = Options::new();
    *options.protocol_config_mut() =
        ConnectionConfig { path_mtu, ecn: false, ..ConnectionConfig::default() };
    options
}

/// One direction of the path. The dumbbell's return path has the same rate.
fn link() -> LinkConfig {
    LinkConfig {
        rate: Some(DataRate::from_bits_per_sec(4_000_000)),
        delay: udccp_base::Duration::from_millis(20),
        limit: QueueLimit::Packets(20),
        ..LinkConfig::default()
    }
}

/// Runs the simulator. Returns the packets seen by the sender and by the receiver.
fn simulated() -> (Vec<ObservedPacket>, Vec<ObservedPacket>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("parity.toml");
    std::fs::write(&file, SCENARIO).unwrap();
    let experiment = Experiment::load(&file).unwrap_or_else(|faults| panic!("{faults}"));
    let changes: [Override; 0] = [];
    let scenario = experiment.scenario_with(&Vec::new(), &changes).unwrap();
    let options = RunOptions { pcap: Some(folder.path()), ..RunOptions::default() };
    udccp_lab::run("parity", &scenario, 1, options).expect("a run");
    ["sender", "receiver"]
        .map(|host| captured(&folder.path().join(format!("one-{host}.pcap"))))
        .into()
}

/// Reads a classic pcap file with nanoseconds, raw IP, in native byte order.
fn captured(file: &Path) -> Vec<ObservedPacket> {
    let bytes = std::fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut passed) = (24, Vec::new());
    while at < bytes.len() {
        let time = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
        let frame = &bytes[at + 16..at + 16 + word(at + 8) as usize];
        let envelope = Envelope::parse(LinkType::RawIp, frame, &[]).unwrap();
        let view = envelope.packet().unwrap();
        let is_clients = view.dst_port() < view.src_port();
        passed.push(ObservedPacket::of(Instant::from_nanos(time), is_clients, &view));
        at += 16 + frame.len();
    }
    passed
}

/// The sizes of the messages that make up 1.5 MB.
fn pieces(max: usize) -> impl Iterator<Item = Vec<u8>> {
    (0..BYTES).step_by(max).map(move |from| vec![0; max.min(BYTES - from)])
}

fn over_blocking_sockets(client: SocketAddr, server: &blocking::Listener, relay: Address) {
    let limit = Some(Duration::from_secs(30));
    let raw = EndpointOptions::new().raw_ip(relay.is_raw());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let server = server.accept_within(limit).unwrap();
            while server.recv().unwrap().is_some() {}
        });
        let endpoint = blocking::Endpoint::bind_with(client, &raw).unwrap();
        let client = endpoint.connect(relay, SERVICE, &options(relay.is_raw()), limit).unwrap();
        pieces(client.max_message_size()).for_each(|piece| client.send(piece).unwrap());
        client.close().unwrap();
    });
}

fn over_async_sockets() -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let endpoint = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = endpoint.listen(PORT, [SERVICE], &options(false)).unwrap();
        let relay = Relay::udp(&link(), listener.local_addr());
        let peer = Address { udp: relay.front, port: PORT };
        let sending = async {
            let client = Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
            let client = client.connect(peer, SERVICE, &options(false)).await.unwrap();
            for piece in pieces(client.max_message_size()) {
                client.send(piece).await.unwrap();
            }
            client.close().await.unwrap();
        };
        let receiving = async {
            let server = listener.accept().await.unwrap();
            while server.recv().await.unwrap().is_some() {}
        };
        let both = async { tokio::join!(sending, receiving) };
        tokio::time::timeout(Duration::from_secs(30), both).await.expect("it hangs");
        relay.finish()
    })
}

fn over_blocking_udp() -> Report {
    let endpoint = blocking::Endpoint::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = endpoint.listen(PORT, [SERVICE], &options(false)).unwrap();
    let relay = Relay::udp(&link(), listener.local_addr());
    let peer = Address { udp: relay.front, port: PORT };
    over_blocking_sockets("127.0.0.1:0".parse().unwrap(), &listener, peer);
    relay.finish()
}

fn over_raw_ip() -> Report {
    // An endpoint keeps its port until its connections have ended, so each attempt uses a new port.
    static PORTS: AtomicU16 = AtomicU16::new(PORT);
    let port = PORTS.fetch_add(1, Ordering::Relaxed);
    let raw = EndpointOptions::new().raw_ip(true);
    let endpoint = blocking::Endpoint::bind_with((SERVER, 0).into(), &raw).unwrap();
    let listener = endpoint.listen(port, [SERVICE], &options(true)).unwrap();
    let relay = Relay::raw(&link());
    over_blocking_sockets((CLIENT, 0).into(), &listener, Address::raw(FRONT.into(), port));
    relay.finish()
}

/// Packets must equal the simulation's, and the rate must be within 10 % of it. If this machine is
/// three times too slow to relay with 40 ms, only the data are compared: timers may have expired.
fn compare(what: &str, run: impl Fn() -> Report) {
    let (passed, arrived) = simulated();
    let story = PacketSequence::of(&passed);
    let mut worst = Duration::ZERO;
    for _ in 0..3 {
        let report = run();
        worst = report.worst_delay;
        let found = PacketSequence::of(&report.passed);
        if worst > Duration::from_millis(10) {
            assert!(found.data >= story.data, "{what}: {:?} of {:?}", found.data, story.data);
            continue;
        }
        assert_eq!(found, story, "{what}");
        let (theirs, ours) = (goodput(&arrived), goodput(&report.delivered));
        assert!((ours / theirs - 1.0).abs() < 0.1, "{what}: {ours} Mbit/s, simulated {theirs}");
        return;
    }
    eprintln!("skipped: {what}: the relay was {worst:?} late");
}

#[test]
fn packet_sequence_is_that_of_rfc_4340() {
    let (passed, arrived) = simulated();
    let story = PacketSequence::of(&passed);
    assert_eq!(story.opening, ["client Request", "server Response"]);
    assert_eq!(story.closing, ["client Close", "server Reset Closed"]);
    let rate = goodput(&arrived);
    assert!((3.4..4.0).contains(&rate), "{rate} Mbit/s");
}

#[test]
fn async_sockets_match_the_simulation() {
    compare("async sockets", over_async_sockets);
}

#[test]
fn blocking_sockets_match_the_simulation() {
    compare("blocking sockets", over_blocking_udp);
}

#[test]
fn raw_ip_matches_the_simulation() {
    if namespace::inside("raw_ip_matches_the_simulation") {
        compare("raw IP", over_raw_ip);
    }
}
