//! Forged and real ICMP messages during connections over UDP and over raw IP, in a network
//! namespace of their own.
//!
//! An attacker who does not see the packets can guess ports, but not sequence numbers (RFC 4340
//! section 14.1). Such messages must not lose packets, end connections or make packets smaller. An
//! attacker who sees packets can make them smaller, but not below what every host accepts.
//!
//! `UDCCP_TEST_CASES=200 cargo test -p udccp --test forged_icmp` runs more cases, starting at
//! `UDCCP_TEST_SEED`.

#![cfg(target_os = "linux")]

mod common;
mod namespace;

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{SERVICE, number_of, numbered};
use namespace::inside;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::{sleep, timeout};
use udccp::{Address, Connection, Endpoint, EndpointOptions, Options};
use udccp_base::{Rng, Seed};
use udccp_testkit::{Fate, Relay, randomised};

const CASES: u64 = 4;
const PORT: u16 = 5004;
const PATIENCE: Duration = Duration::from_secs(30);
/// Messages of each end.
const COUNT: u32 = 300;

const IPV4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const IPV6: IpAddr = IpAddr::V6(Ipv6Addr::LOCALHOST);

/// The room for a message, after DCCP's header and options, in a packet that every host accepts
/// (RFC 791, RFC 8200) over raw IP. UDP's header takes 8 bytes more.
fn least_message(host: IpAddr) -> usize {
    let packet = if host.is_ipv4() { 576 - 20 } else { 1280 - 40 };
    packet - 8 - 16 - 24
}

/// Headers of DCCP packets, after a UDP header unless over raw IP.
type Seen = Arc<Mutex<VecDeque<Vec<u8>>>>;

fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).map_or(0, |b| *b)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Types and codes of messages about packets that did not arrive. The last two mean that the peer's
/// host refuses them: three of those end a connection if they are accepted.
const KINDS: [(u8, u8); 9] =
    [(3, 0), (3, 1), (3, 4), (3, 4), (3, 10), (3, 13), (11, 0), (3, 2), (3, 3)];

/// The same for ICMPv6.
const KINDS_V6: [(u8, u8); 9] =
    [(1, 0), (1, 3), (2, 0), (2, 0), (1, 1), (1, 5), (3, 0), (4, 1), (1, 4)];

/// An ICMP message about an IP packet from and to this host that carried `quoted`.
fn icmp((kind, code): (u8, u8), rng: &mut Rng, protocol: u8, quoted: &[u8]) -> Vec<u8> {
    const MTUS: [u16; 10] = [0, 1, 20, 67, 68, 128, 296, 552, 1400, 65_535];
    let mtu = MTUS[rng.below(10) as usize];
    let mut message = vec![kind, code, 0, 0, 0, 0];
    message.extend_from_slice(&mtu.to_be_bytes());
    let len = (20 + quoted.len() as u16).to_be_bytes();
    message.extend_from_slice(&[0x45, 0, len[0], len[1], 0, 0, 0x40, 0, 64, protocol, 0, 0]);
    message.extend_from_slice(&[127, 0, 0, 1, 127, 0, 0, 1]);
    message.extend_from_slice(quoted);
    let sum = checksum(&message).to_be_bytes();
    message[2..4].copy_from_slice(&sum);
    message
}

/// The same for ICMPv6; the system computes the checksum.
fn icmp_v6((kind, code): (u8, u8), rng: &mut Rng, protocol: u8, quoted: &[u8]) -> Vec<u8> {
    const MTUS: [u32; 10] = [0, 1, 68, 576, 1279, 1280, 1281, 1400, 65_535, u32::MAX];
    let mtu = MTUS[rng.below(10) as usize];
    let mut message = vec![kind, code, 0, 0];
    message.extend_from_slice(&mtu.to_be_bytes());
    let len = (quoted.len() as u16).to_be_bytes();
    message.extend_from_slice(&[0x60, 0, 0, 0, len[0], len[1], protocol, 64]);
    for _ in 0..2 {
        message.extend_from_slice(&Ipv6Addr::LOCALHOST.octets());
    }
    message.extend_from_slice(quoted);
    message
}

/// Sends ICMP messages about observed packets or, if `blind`, with different sequence numbers.
async fn send_forged_messages(seed: u64, host: IpAddr, seen: Seen, protocol: u8, blind: bool) {
    let mut rng: Rng = Seed(seed).stream("attack");
    let (domain, carrier, kinds) = match host {
        IpAddr::V4(_) => (Domain::IPV4, Protocol::ICMPV4, KINDS),
        IpAddr::V6(_) => (Domain::IPV6, Protocol::ICMPV6, KINDS_V6),
    };
    let message = if host.is_ipv4() { icmp } else { icmp_v6 };
    let socket = Socket::new(domain, Type::RAW, Some(carrier)).unwrap();
    let victim = SocketAddr::from((host, 0)).into();
    // The offset of the DCCP header in the quoted bytes.
    let dccp = if protocol == 17 { 8 } else { 0 };
    loop {
        sleep(Duration::from_micros(rng.below(2000))).await;
        for _ in 0..1 + rng.below(4) {
            let copy = {
                let seen = seen.lock().unwrap();
                (!seen.is_empty()).then(|| seen[rng.below(seen.len() as u64) as usize].clone())
            };
            let Some(mut quoted) = copy else { continue };
            if blind {
                quoted[dccp + 9..dccp + 16].fill_with(|| rng.below(256) as u8);
                quoted.truncate(if rng.chance(0.3) { 8 + dccp } else { 16 + dccp });
            }
            let kind = kinds[rng.below(if blind { 9 } else { 7 }) as usize];
            socket.send_to(&message(kind, &mut rng, protocol, &quoted), &victim).unwrap();
        }
    }
}

fn note(seen: &Seen, packet: Vec<u8>) {
    let mut seen = seen.lock().unwrap();
    if seen.len() == 8 {
        seen.pop_front();
    }
    seen.push_back(packet);
}

/// Records all packets of this protocol on this host.
async fn listen_in(host: IpAddr, protocol: u8, seen: Seen) {
    // A raw IPv4 socket also reads the IP header.
    let (domain, ip_header) = if host.is_ipv4() { (Domain::IPV4, 20) } else { (Domain::IPV6, 0) };
    let socket = Socket::new(domain, Type::RAW, Some(Protocol::from(i32::from(protocol)))).unwrap();
    socket.set_nonblocking(true).unwrap();
    loop {
        let mut buffer = [0; 2000];
        let read = std::io::Read::read(&mut &socket, &mut buffer);
        match read {
            Ok(len) => note(&seen, buffer[ip_header..len.min(ip_header + 64)].to_vec()),
            Err(_) => sleep(Duration::from_micros(200)).await,
        }
    }
}

/// All messages arrive, in order. If packets become smaller, some may be too large to send.
async fn exchange(from: &Connection, to: &Connection, rng: &mut Rng, blind: bool) {
    let pauses = rng.below(1000);
    let least = least_message(from.local_addr().ip());
    let sending = async {
        for n in 0..COUNT {
            let len = rng.below(from.max_message_size() as u64 + 1) as usize;
            match from.send(numbered(n, len)).await {
                Err(udccp::Error::MessageTooLarge { .. }) => {
                    from.send(numbered(n, least)).await.unwrap();
                }
                sent => sent.unwrap(),
            }
            if n % 16 == 0 {
                sleep(Duration::from_micros(pauses)).await;
            }
        }
    };
    let receiving = async {
        let mut next = 0;
        while next < COUNT {
            let n = number_of(&to.recv().await.unwrap().expect("open"));
            assert!(n == next || n > next && !blind, "{n} for {next}");
            next = n + 1;
        }
    };
    tokio::join!(sending, receiving);
}

/// A relay that shows the attacker the packets of the client's host, and their addresses.
async fn observing_relay(server: SocketAddr, from: u16, seen: &Seen) -> Relay {
    let (copies, to) = (Arc::clone(seen), Arc::new(Mutex::new(0)));
    let relay_port = Arc::clone(&to);
    let rule = move |from_client: bool, packet: &mut Vec<u8>| {
        if from_client && packet.len() >= 24 {
            // As sent by the client's host.
            let mut quoted = [from, *relay_port.lock().unwrap()].map(u16::to_be_bytes).concat();
            quoted.extend_from_slice(&(packet.len() as u16 + 8).to_be_bytes());
            quoted.extend_from_slice(&[0, 0]);
            quoted.extend_from_slice(&packet[..packet.len().min(64)]);
            note(&copies, quoted);
        }
        Fate::Pass
    };
    let relay = Relay::start(server, rule).await;
    *to.lock().unwrap() = relay.port;
    relay
}

async fn run_case(seed: u64, host: IpAddr, raw: bool, blind: bool) {
    let io = EndpointOptions::new().raw_ip(raw);
    let at = SocketAddr::from((host, 0));
    let server = Endpoint::bind_with(at, &io).unwrap();
    let client = Endpoint::bind_with(at, &io).unwrap();
    let options = Options::default().ccid(2);
    let listener = server.listen(if raw { 0 } else { PORT }, [SERVICE], &options).unwrap();
    let (seen, protocol) = (Seen::default(), if raw { 33 } else { 17 });
    let mut peer = Address { udp: server.local_addr(), port: PORT };
    let mut tasks = tokio::task::JoinSet::new();
    let mut relay = None;
    if raw {
        peer = Address::raw(host, listener.port());
    } else if host.is_ipv4() {
        let from = client.local_addr().port();
        let through = relay.insert(observing_relay(server.local_addr(), from, &seen).await);
        peer.udp = through.addr();
    }
    if relay.is_none() {
        tasks.spawn(listen_in(host, protocol, Arc::clone(&seen)));
    }
    tasks.spawn(send_forged_messages(seed, host, seen, protocol, blind));
    for round in 0..3 {
        let connecting = timeout(PATIENCE, client.connect(peer, SERVICE, &options));
        let patience = if blind { PATIENCE } else { Duration::from_millis(500) };
        let (a, b) = match tokio::join!(connecting, timeout(patience, listener.accept())) {
            (Ok(Ok(a)), Ok(Ok(b))) if a.local_addr().port == b.peer_addr().port => (a, b),
            // An attacker who sees a handshake can end it, on either side.
            (Ok(_), _) if !blind => continue,
            other => panic!("seed {seed}, round {round}: {other:?}"),
        };
        let most = a.max_message_size();
        let (mut x, mut y) = (Seed(seed).stream("up"), Seed(seed).stream("down"));
        let talking = async {
            tokio::join!(exchange(&a, &b, &mut x, blind), exchange(&b, &a, &mut y, blind))
        };
        let talked = timeout(PATIENCE, talking).await;
        let stats = || format!("seed {seed}, blind {blind}: {:?} {:?}", a.stats(), b.stats());
        assert!(talked.is_ok(), "{}", stats());
        assert!(a.max_message_size() >= least_message(host) - 24, "{}", stats());
        if blind {
            assert!(a.max_message_size() >= most, "{}", stats());
        }
        timeout(PATIENCE, a.close()).await.expect("it closes").unwrap();
        timeout(PATIENCE, b.closed()).await.expect("it closes").unwrap();
    }
}

/// Blind cases come first, because over raw IP an observer sees the packets of all cases.
fn live(host: IpAddr, raw: bool) {
    for blind in [true, false] {
        randomised::run_seeds(randomised::seeds(CASES), move |seed| {
            run_case(seed, host, raw, blind)
        });
    }
}

#[test]
fn forged_icmp_messages_end_nothing_over_udp() {
    if inside("forged_icmp_messages_end_nothing_over_udp") {
        live(IPV4, false);
    }
}

#[test]
fn forged_icmp_messages_end_nothing_over_udp_and_ipv6() {
    if inside("forged_icmp_messages_end_nothing_over_udp_and_ipv6") {
        live(IPV6, false);
    }
}

#[test]
fn forged_icmp_messages_end_nothing_over_raw_ip() {
    if inside("forged_icmp_messages_end_nothing_over_raw_ip") {
        live(IPV4, true);
    }
}

#[test]
fn forged_icmp_messages_end_nothing_over_raw_ipv6() {
    if inside("forged_icmp_messages_end_nothing_over_raw_ipv6") {
        live(IPV6, true);
    }
}
