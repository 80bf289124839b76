//! ICMP messages, forged and true, on live connections over UDP and over raw IP, in a network
//! namespace of their own.
//!
//! Who does not see the packets can guess ports, but not sequence numbers (RFC 4340 section 14.1):
//! whatever such a one says, nothing is lost, nothing ends and no packet becomes smaller. Who sees
//! them can make packets smaller, down to what every host takes, and no more.
//!
//! `UDCCP_LIVES=200 cargo test -p udccp --test icmp_lives` lives more lives, from `UDCCP_TEST_SEED`
//! on.

#![cfg(target_os = "linux")]

mod common;
mod namespace;

use std::collections::VecDeque;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{SERVICE, number_of, numbered};
use namespace::inside;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::time::{sleep, timeout};
use udccp::{Address, Connection, Endpoint, EndpointOptions, Options};
use udccp_base::{Rng, Seed};
use udccp_testkit::{Fate, Relay, lives};

const LIVES: u64 = 4;
const PORT: u16 = 5004;
const PATIENCE: Duration = Duration::from_secs(30);
/// Messages of each end.
const COUNT: u32 = 300;
/// IPv4 hosts take packets of this size (RFC 791); DCCP's header and options leave this much of it
/// to a message over raw IP, and UDP's header takes 8 bytes more.
const LEAST_MESSAGE: usize = 576 - 20 - 8 - 16 - 24;

/// Headers of DCCP packets from this UDP port to that one, or of raw IP.
type Seen = Arc<Mutex<VecDeque<Vec<u8>>>>;

fn checksum(bytes: &[u8]) -> u16 {
    let words =
        bytes.chunks(2).map(|w| u32::from(w[0]) << 8 | u32::from(w.get(1).map_or(0, |b| *b)));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) + (folded >> 16)) as u16
}

/// Type and code of messages about packets that did not arrive. The last two say that the peer's
/// host refuses them: three of those end a connection where they are believed.
const KINDS: [(u8, u8); 9] =
    [(3, 0), (3, 1), (3, 4), (3, 4), (3, 10), (3, 13), (11, 0), (3, 2), (3, 3)];

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

/// Sends ICMP messages about packets that were seen: about these, or, `blind`, with another number.
async fn attack(seed: u64, seen: Seen, protocol: u8, blind: bool) {
    let mut rng: Rng = Seed(seed).stream("attack");
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4)).unwrap();
    let victim = SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into();
    // Where the DCCP header begins in what is quoted.
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
            let kind = KINDS[rng.below(if blind { 9 } else { 7 }) as usize];
            socket.send_to(&icmp(kind, &mut rng, protocol, &quoted), &victim).unwrap();
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

/// Hears all DCCP packets of this host.
async fn listen_in(seen: Seen) {
    let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::from(33))).unwrap();
    socket.set_nonblocking(true).unwrap();
    loop {
        let mut buffer = [0; 2000];
        let read = std::io::Read::read(&mut &socket, &mut buffer);
        match read {
            Ok(len) => note(&seen, buffer[20..len.min(84)].to_vec()),
            Err(_) => sleep(Duration::from_micros(200)).await,
        }
    }
}

/// All messages arrive, in order; where packets become smaller, some may be too large to leave.
async fn talk(from: &Connection, to: &Connection, rng: &mut Rng, blind: bool) {
    let pauses = rng.below(1000);
    let sending = async {
        for n in 0..COUNT {
            let len = rng.below(from.max_message_size() as u64 + 1) as usize;
            match from.send(numbered(n, len)).await {
                Err(udccp::Error::MessageTooLarge { .. }) => {
                    from.send(numbered(n, LEAST_MESSAGE)).await.unwrap();
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

async fn life(seed: u64, raw: bool, blind: bool) {
    let io = EndpointOptions::new().raw_ip(raw);
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let server = Endpoint::bind_with(at, &io).unwrap();
    let client = Endpoint::bind_with(at, &io).unwrap();
    let options = Options::default().ccid(2);
    let listener = server.listen(if raw { 0 } else { PORT }, [SERVICE], &options).unwrap();
    let seen = Seen::default();
    let copies = Arc::clone(&seen);
    let (from, to) = (client.local_addr().port(), Arc::new(Mutex::new(0)));
    let relay_port = Arc::clone(&to);
    let rule = move |from_client: bool, packet: &mut Vec<u8>| {
        if from_client && packet.len() >= 24 {
            // As the client's host sent it.
            let mut quoted = [from, *relay_port.lock().unwrap()].map(u16::to_be_bytes).concat();
            quoted.extend_from_slice(&(packet.len() as u16 + 8).to_be_bytes());
            quoted.extend_from_slice(&[0, 0]);
            quoted.extend_from_slice(&packet[..packet.len().min(64)]);
            note(&copies, quoted);
        }
        Fate::Pass
    };
    let relay = Relay::start(server.local_addr(), rule).await;
    *to.lock().unwrap() = relay.port;
    let peer = match raw {
        true => Address::raw(at.ip(), listener.port()),
        false => Address { udp: relay.addr(), port: PORT },
    };
    let mut tasks = tokio::task::JoinSet::new();
    tasks.spawn(attack(seed, Arc::clone(&seen), if raw { 33 } else { 17 }, blind));
    if raw {
        tasks.spawn(listen_in(seen));
    }
    for round in 0..3 {
        let connecting = timeout(PATIENCE, client.connect(peer, SERVICE, &options));
        let patience = if blind { PATIENCE } else { Duration::from_millis(500) };
        let (a, b) = match tokio::join!(connecting, timeout(patience, listener.accept())) {
            (Ok(Ok(a)), Ok(Ok(b))) if a.local_addr().port == b.peer_addr().port => (a, b),
            // Who sees a handshake can end it, at either side.
            (Ok(_), _) if !blind => continue,
            other => panic!("seed {seed}, round {round}: {other:?}"),
        };
        let most = a.max_message_size();
        let (mut x, mut y) = (Seed(seed).stream("up"), Seed(seed).stream("down"));
        let talking =
            async { tokio::join!(talk(&a, &b, &mut x, blind), talk(&b, &a, &mut y, blind)) };
        let talked = timeout(PATIENCE, talking).await;
        let stats = || format!("seed {seed}, blind {blind}: {:?} {:?}", a.stats(), b.stats());
        assert!(talked.is_ok(), "{}", stats());
        assert!(a.max_message_size() >= LEAST_MESSAGE - 24, "{}", stats());
        if blind {
            assert!(a.max_message_size() >= most, "{}", stats());
        }
        timeout(PATIENCE, a.close()).await.expect("it closes").unwrap();
        timeout(PATIENCE, b.closed()).await.expect("it closes").unwrap();
    }
}

/// Over raw IP one hears the packets of all, so those who use them come after those who do not.
fn live(raw: bool) {
    for blind in [true, false] {
        lives::live_all(lives::seeds(LIVES), move |seed| life(seed, raw, blind));
    }
}

#[test]
fn forged_icmp_messages_end_nothing_over_udp() {
    if inside("forged_icmp_messages_end_nothing_over_udp") {
        live(false);
    }
}

#[test]
fn forged_icmp_messages_end_nothing_over_raw_ip() {
    if inside("forged_icmp_messages_end_nothing_over_raw_ip") {
        live(true);
    }
}
