//! Peers that move: a NAT gives one or both ends of a connection another UDP port at any time, for
//! good or back and forth, while an attacker off the path copies and forges packets.
//!
//! The ports are part of a connection's identity (RFC 6773 section 3.8). So a connection whose peer
//! moved ends with an error within a bounded time. One whose peer stayed continues, whatever comes
//! from other addresses. The next connection opens over the new ports.
//!
//! `UDCCP_TEST_CASES=1000 cargo test -p udccp --test moving_peers` runs more cases, starting at
//! `UDCCP_TEST_SEED`.

mod common;

use std::collections::{HashSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{SERVICE, localhost, number_of, numbered};
use tokio::net::UdpSocket;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use udccp::{Address, Connection, Endpoint, Error, Listener, Options};
use udccp_base::{Rng, Seed};
use udccp_testkit::{Fate, Relay, randomised};

/// Number of cases in ordinary test runs.
const CASES: u64 = 40;
/// The idle limit of these connections.
const IDLE_LIMIT: Duration = Duration::from_secs(2);
/// Longer than the limit, because a busy machine may be slow.
const PATIENCE: Duration = Duration::from_secs(80);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn options(rng: &mut Rng) -> Options {
    Options::default()
        .ccid(2 + rng.below(3) as u8)
        .initial_rto(ms(100))
        .close_linger(ms(300))
        .close_retries(4)
        .keep_alive(Some(ms(200)))
        .idle_limit(Some(IDLE_LIMIT))
}

/// Recent packets, and whether the client sent them.
type Seen = Arc<Mutex<VecDeque<(bool, Vec<u8>)>>>;

/// Sends the ends copies of each other's packets, and modified ones, from its own port.
async fn attack(seed: u64, seen: Seen, client: SocketAddr, server: SocketAddr) {
    let mut rng: Rng = Seed(seed).stream("attack");
    let socket = UdpSocket::bind(localhost(false)).await.unwrap();
    loop {
        sleep(Duration::from_micros(rng.below(3000))).await;
        let copy = {
            let seen = seen.lock().unwrap();
            (!seen.is_empty()).then(|| seen[rng.below(seen.len() as u64) as usize].clone())
        };
        let Some((from_client, mut packet)) = copy else { continue };
        if rng.chance(0.5) {
            // Changes the type to Reset, Close, Sync or Request, among others.
            let kind = [0, 5, 6, 7, 8, 9, 10][rng.below(7) as usize];
            packet[8] = packet[8] & !0x1e | kind << 1;
        }
        if rng.chance(0.3) {
            let at = rng.below(packet.len() as u64) as usize;
            packet[at] = rng.below(256) as u8;
        }
        let _ = socket.send_to(&packet, if from_client { server } else { client }).await;
    }
}

/// The messages that one end has sent, and those that the other has received.
#[derive(Default)]
struct Traffic {
    sent: u32,
    heard: HashSet<u32>,
}

/// Sends with pauses until the time is over.
async fn send_until_end(c: Connection, told: Arc<Mutex<Traffic>>, mut rng: Rng) {
    for _ in 0..rng.below(200) {
        let n = told.lock().unwrap().sent;
        told.lock().unwrap().sent += 1;
        match timeout(ms(300), c.send(numbered(n, rng.below(500) as usize))).await {
            Ok(Err(Error::Lost(_) | Error::Closed)) => return,
            Ok(Err(e)) => panic!("{e}"),
            Ok(Ok(())) | Err(_) => {}
        }
        if rng.chance(0.1) {
            sleep(ms(rng.below(60))).await;
        }
    }
}

/// Receives from the other end until the connection ends.
async fn receive_until_end(c: Connection, peer: Arc<Mutex<Traffic>>, seed: u64) {
    loop {
        match c.recv().await {
            Ok(Some(message)) => {
                let n = number_of(&message);
                let mut peer = peer.lock().unwrap();
                assert!(n < peer.sent, "seed {seed}: {n} was never sent");
                assert!(peer.heard.insert(n), "seed {seed}: {n} came twice");
            }
            Ok(None) | Err(Error::Lost(_)) => return,
            Err(e) => panic!("seed {seed}: {e}"),
        }
    }
}

/// Moves the ends now and then. Returns whether it did.
async fn move_peers(relay: &Relay, mut rng: Rng) -> bool {
    if rng.chance(0.3) {
        sleep(ms(100)).await;
        return false;
    }
    sleep(Duration::from_micros(if rng.chance(0.3) { rng.below(4000) } else { 60_000 })).await;
    for _ in 0..1 + rng.below(4) {
        let which = rng.below(3) as usize;
        if rng.chance(0.6) {
            relay.move_client(which);
        } else {
            relay.move_server(which);
        }
        sleep(Duration::from_micros(rng.below(100_000))).await;
    }
    true
}

/// One end of a connection, which sends and receives in separate tasks.
struct End {
    connection: Connection,
    /// The messages that it sends.
    told: Arc<Mutex<Traffic>>,
    speaking: JoinHandle<()>,
    hearing: JoinHandle<()>,
}

impl End {
    fn new(
        connection: Connection,
        rng: Rng,
        seed: u64,
        told: &Arc<Mutex<Traffic>>,
        peer: &Arc<Mutex<Traffic>>,
    ) -> Self {
        let speaking = tokio::spawn(send_until_end(connection.clone(), Arc::clone(told), rng));
        let hearing = tokio::spawn(receive_until_end(connection.clone(), Arc::clone(peer), seed));
        Self { connection, told: Arc::clone(told), speaking, hearing }
    }

    /// Whether a new message still arrives before the connection ends. Messages in its queue come
    /// first, and a rate-based sender may be limited to one packet in 64 s (RFC 5348 section 4.3).
    async fn gets_through(&self, seed: u64) -> bool {
        // Packets in flight have arrived by then.
        sleep(ms(50)).await;
        let heard = || self.told.lock().unwrap().heard.len();
        let before = heard();
        let trying = async {
            while !self.hearing.is_finished() {
                if heard() > before {
                    return true;
                }
                let n = self.told.lock().unwrap().sent;
                self.told.lock().unwrap().sent += 1;
                let _ = timeout(ms(20), self.connection.send(numbered(n, 100))).await;
                sleep(ms(20)).await;
            }
            false
        };
        let stats = || self.connection.stats();
        timeout(PATIENCE, trying).await.unwrap_or_else(|_| panic!("seed {seed}: {:?}", stats()))
    }

    async fn end(self) {
        let _ = self.connection.close().await;
        self.speaking.await.unwrap();
        self.hearing.await.unwrap();
    }
}

/// Both ends at work: the client's, and those of connections that the server accepts.
async fn work(seed: u64, client: Connection, listener: &Listener, relay: &Relay, is_still: bool) {
    let (ours, theirs) = <(Arc<Mutex<Traffic>>, Arc<Mutex<Traffic>>)>::default();
    let client = End::new(client, Seed(seed).stream("client"), seed, &ours, &theirs);
    let serve =
        |connection| End::new(connection, Seed(seed).stream("server"), seed, &theirs, &ours);
    let mut served = Vec::new();
    let moved = {
        let accepting = async {
            loop {
                served.push(serve(listener.accept().await.unwrap()));
            }
        };
        let moving = move_peers(relay, Seed(seed).stream("wander"));
        tokio::select! {
            moved = moving => moved,
            () = accepting => unreachable!(),
        }
    };
    let must_go_on = is_still && !moved;
    if must_go_on && served.is_empty() {
        served.push(serve(listener.accept().await.unwrap()));
    }
    let mut is_open = client.gets_through(seed).await;
    for end in &served {
        is_open &= end.gets_through(seed).await;
    }
    assert!(is_open && served.len() == 1 || !must_go_on, "seed {seed}: hijacked");
    // An end that is gone receives nothing.
    client.end().await;
    for end in served {
        end.end().await;
    }
}

async fn run_case(seed: u64) {
    let mut rng = Seed(seed).stream("life");
    let options = options(&mut rng);
    let listener = Listener::bind_with(localhost(false), [SERVICE], &options).unwrap();
    let seen = Seen::default();
    let copies = Arc::clone(&seen);
    let rule = move |from_client: bool, packet: &mut Vec<u8>| {
        let mut seen = copies.lock().unwrap();
        if seen.len() == 20 {
            seen.pop_front();
        }
        seen.push_back((from_client, packet.clone()));
        Fate::Pass
    };
    let relay = Relay::start(listener.local_addr(), rule).await;
    let endpoint = Endpoint::bind(localhost(false)).unwrap();
    let attacking = attack(seed, seen, endpoint.local_addr(), listener.local_addr());
    let attacking = tokio::spawn(attacking);
    let moves_early = rng.chance(0.3);
    let moving = async {
        sleep(Duration::from_micros(rng.below(3000))).await;
        if moves_early {
            relay.move_client(1);
        }
    };
    let peer = |relay: &Relay| Address { udp: relay.server_seen_at(), port: listener.port() };
    let connecting = timeout(PATIENCE, endpoint.connect(peer(&relay), SERVICE, &options));
    let (connected, ()) = tokio::join!(connecting, moving);
    match connected.expect("a handshake ends") {
        Ok(client) => work(seed, client, &listener, &relay, !moves_early).await,
        Err(e) => assert!(moves_early, "seed {seed}: {e}"),
    }
    // At their new ports, they can connect again.
    let again = timeout(PATIENCE, endpoint.connect(peer(&relay), SERVICE, &options));
    let again = again.await.expect("a handshake ends").unwrap();
    // A packet that a busy machine holds up counts as lost, and is accounted for.
    let arriving = async {
        let acked = || again.stats().unwrap().counters.data_packets_acked;
        for n in 0.. {
            again.send(numbered(n, 8)).await.unwrap();
            again.acknowledged().await.unwrap();
            if acked() > 0 {
                return;
            }
        }
    };
    timeout(PATIENCE, arriving).await.unwrap_or_else(|_| panic!("seed {seed}: nothing arrives"));
    attacking.abort();
    drop((again, listener));
    timeout(PATIENCE, endpoint.wait_idle()).await.expect("all ends");
}

#[test]
fn connections_of_moved_peers_end_and_others_continue() {
    randomised::run_seeds(randomised::seeds(CASES), run_case);
}
