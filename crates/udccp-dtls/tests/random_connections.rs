//! Random connections: whatever path, peer and application do, a connection that survives works
//! once the path is calm again, and any other ends with an error.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use common::{dccp_over, numbered};
use udccp::Options;
use udccp_base::{Rng, Seed};
use udccp_dtls::{DtlsConnection, DtlsOptions, Error, Identity, Version};
use udccp_testkit::{Fate, Relay, randomised};

/// Connections in a normal run; `UDCCP_TEST_CASES` and `UDCCP_TEST_SEED` select others.
const CASES: u64 = 40;

/// The current state of the path.
const PERFECT: u32 = 0;
const IMPAIRED: u32 = 1;
const SILENCE: u32 = 2;
/// A storm that also damages data, which can pass partial checksums.
const HAIL: u32 = 3;

type Path = Arc<AtomicU32>;

/// The parameters of one random connection.
struct Plan {
    rng: Rng,
    client: DtlsOptions,
    server: DtlsOptions,
    options: Options,
    /// Whether the two sides' options are compatible.
    fits: bool,
}

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len() as u64) as usize]
}

/// Whether a NAT changes an end's port after the handshake, which ends a connection (RFC 6773
/// section 3.8).
fn is_moved(seed: u64) -> bool {
    Seed(seed).stream("whether it moves").chance(0.15)
}

fn plan(seed: u64) -> Plan {
    let mut rng: Rng = Seed(seed).stream("plan");
    let mut options = Options::default()
        .initial_rto(Duration::from_millis(100))
        .silence_timeout(Duration::from_secs(60))
        .close_linger(Duration::from_secs(3))
        .ccid(pick(&mut rng, &[2, 2, 3]));
    if is_moved(seed) {
        let (alive, idle) = (Duration::from_millis(500), Duration::from_secs(10));
        options = options.keep_alive(Some(alive)).idle_limit(Some(idle));
    }
    if rng.chance(0.5) {
        options = options.path_mtu(pick(&mut rng, &[400, 600, 1300]));
    }
    if rng.chance(0.3) {
        options = options.send_queue(20_000, pick(&mut rng, &[1, 2, 8]));
    }
    if rng.chance(0.3) {
        options = options.send_cscov(1).min_cscov(1);
    }
    let (mut client, mut server) = (DtlsOptions::new(), DtlsOptions::new());
    let mut fits = true;
    if rng.chance(0.2) {
        let key = if rng.chance(0.8) { "key" } else { "another key" };
        fits = key == "key";
        (client, server) = (client.psk("us", key), server.psk("us", "key"));
    } else {
        let names = pick(&mut rng, &[1, 1, 20, 40]);
        let names = (0..names).map(|n| format!("host-number-{n}.example"));
        let identity = Identity::self_signed_for(names).unwrap();
        let other = Identity::self_signed("other.example").unwrap();
        let pinned = if rng.chance(0.85) { &identity } else { &other };
        fits &= pinned == &identity;
        client = client.pin(pinned.fingerprint());
        if rng.chance(0.4) {
            client = client.identity(other.clone());
            let asked = if rng.chance(0.8) { &other } else { &identity };
            fits &= asked == &other;
            server = server.pin(asked.fingerprint());
        }
        server = server.identity(identity).cookie_exchange(rng.chance(0.3));
        let mut some = || match rng.below(6) {
            0 => Version::Dtls12..=Version::Dtls12,
            1 => Version::Dtls13..=Version::Dtls13,
            _ => Version::Dtls12..=Version::Dtls13,
        };
        let (ours, theirs) = (some(), some());
        fits &= ours.start() <= theirs.end() && theirs.start() <= ours.end();
        (client, server) = (client.versions(ours), server.versions(theirs));
    }
    let set = |o: DtlsOptions| {
        o.flight_timeout(Duration::from_millis(80)).handshake_timeout(Duration::from_secs(30))
    };
    Plan { rng, client: set(client), server: set(server), options, fits }
}

/// A path whose storms and silences are controlled by `path`.
fn impair(seed: u64, path: Path) -> impl FnMut(bool, &mut Vec<u8>) -> Fate + Send + 'static {
    let mut rng: Rng = Seed(seed).stream("weather");
    let (loss, late, twice) = (rng.below(30) as f64 / 100.0, 0.2, 0.1);
    move |_, packet| match path.load(Ordering::Relaxed) {
        IMPAIRED | HAIL if rng.chance(loss) => Fate::Drop,
        IMPAIRED | HAIL if rng.chance(late) => Fate::Late(Duration::from_millis(1 + rng.below(30))),
        IMPAIRED | HAIL if rng.chance(twice) => Fate::Twice,
        HAIL if packet.len() > 60 && rng.chance(0.2) => {
            let at = packet.len() - 1 - rng.below(packet.len() as u64 - 50) as usize;
            packet[at] ^= 1 << rng.below(8);
            Fate::Pass
        }
        SILENCE => Fate::Drop,
        _ => Fate::Pass,
    }
}

/// Gives a handshake up after a random time, or lets it run.
async fn run_or_cancel<T>(rng: &mut Rng, job: impl Future<Output = T>) -> Option<T> {
    if rng.chance(0.8) {
        return Some(job.await);
    }
    let patience = Duration::from_micros(rng.below(30_000));
    tokio::time::timeout(patience, job).await.ok()
}

async fn read(connection: &DtlsConnection, seed: u64, count: usize, seen: &mut BTreeSet<u32>) {
    for _ in 0..count {
        match connection.recv().await {
            Ok(Some(message)) if message.is_empty() => {}
            Ok(Some(message)) => {
                let n = u32::from_be_bytes(message[..4].try_into().unwrap());
                assert!(message[4..].iter().all(|&b| b == n as u8), "seed {seed}: {n} damaged");
                assert!(seen.insert(n), "seed {seed}: {n} came twice");
            }
            Ok(None) | Err(Error::Truncated | Error::Dccp(_)) => return,
            Err(e) => panic!("seed {seed}: {e}"),
        }
    }
}

/// Sends and receives for a while, then reads to the end. Every end must be reported.
async fn live(
    connection: DtlsConnection,
    mut rng: Rng,
    (seed, must_close): (u64, bool),
    path: Path,
) {
    let connection = Arc::new(connection);
    let mut seen = BTreeSet::new();
    let mut next = 0;
    for _ in 0..rng.below(60) {
        match rng.below(12) {
            0..=6 => {
                let len = rng.below(connection.max_message_size() as u64 + 1) as usize;
                let message = if len == 0 { Vec::new() } else { numbered(next, len) };
                next += 1;
                let sending = connection.send(message);
                let sent =
                    tokio::time::timeout(Duration::from_millis(rng.below(20)), sending).await;
                if let Ok(Err(Error::Closed | Error::Dccp(_) | Error::Truncated)) = sent {
                    break;
                }
                if let Ok(Err(e)) = sent {
                    assert!(matches!(e, Error::MessageTooLarge { .. }), "seed {seed}: {e}");
                }
            }
            7 | 8 => {
                let reading = read(&connection, seed, 1 + rng.below(9) as usize, &mut seen);
                let _ = tokio::time::timeout(Duration::from_millis(rng.below(30)), reading).await;
            }
            9 => {
                let max = connection.max_message_size();
                match connection.send(vec![0; max + 1 + rng.below(3000) as usize]).await {
                    Err(Error::MessageTooLarge { len, max }) => assert!(len > max),
                    Err(Error::Closed | Error::Dccp(_) | Error::Truncated) => break,
                    other => panic!("seed {seed}: {other:?}"),
                }
            }
            10 => tokio::time::sleep(Duration::from_millis(rng.below(30))).await,
            _ => path.store(pick(&mut rng, &[PERFECT, IMPAIRED, HAIL, SILENCE]), Ordering::Relaxed),
        }
    }
    path.store(PERFECT, Ordering::Relaxed);
    // At least one end has to close.
    let closes = match rng.below(if must_close { 3 } else { 4 }) {
        0 => {
            drop(connection);
            return;
        }
        1 => {
            let patience = Duration::from_micros(rng.below(5000));
            let _ = tokio::time::timeout(patience, connection.close()).await;
            true
        }
        2 => true,
        _ => false,
    };
    if closes {
        let closing = Arc::clone(&connection);
        let closing = async move { closing.close().await };
        let reading = read(&connection, seed, usize::MAX, &mut seen);
        let (_, ()) = tokio::join!(closing, reading);
        return;
    }
    read(&connection, seed, usize::MAX, &mut seen).await;
}

/// The result of one end's handshake; `None` if it was given up.
type Outcome = Option<Result<DtlsConnection, Error>>;

/// Opens a connection over the random path and runs the handshake.
async fn connect_and_handshake(
    plan: &mut Plan,
    seed: u64,
    path: &Path,
    calm: bool,
) -> (Outcome, Outcome, Relay) {
    let (a, b, relay) = dccp_over(&plan.options, impair(seed, Arc::clone(path))).await;
    let before_silence = Duration::from_micros(plan.rng.below(20_000));
    let clearing = async {
        if !calm {
            let (silence, storm) = (Duration::from_millis(100), Duration::from_millis(700));
            for (weather, lasts) in
                [(IMPAIRED, before_silence), (SILENCE, silence), (IMPAIRED, storm)]
            {
                path.store(weather, Ordering::Relaxed);
                tokio::time::sleep(lasts).await;
            }
            path.store(PERFECT, Ordering::Relaxed);
        }
    };
    let (mut x, mut y): (Rng, Rng) = (Seed(seed).stream("client"), Seed(seed).stream("server"));
    let (client, server, ()) = tokio::join!(
        run_or_cancel(&mut x, DtlsConnection::client(a, &plan.client)),
        run_or_cancel(&mut y, DtlsConnection::server(b, &plan.server)),
        clearing,
    );
    (client, server, relay)
}

/// Changes an end's port at a random time, if this connection moves.
async fn move_port(relay: &Relay, seed: u64) {
    if is_moved(seed) {
        let mut rng: Rng = Seed(seed).stream("moves");
        tokio::time::sleep(Duration::from_micros(rng.below(200_000))).await;
        match rng.chance(0.6) {
            true => relay.move_client(1),
            false => relay.move_server(1),
        }
    }
}

async fn run_case(seed: u64) {
    let mut plan = plan(seed);
    let path = Path::new(AtomicU32::new(PERFECT));
    let calm = plan.rng.chance(0.4);
    let (client, server, relay) = connect_and_handshake(&mut plan, seed, &path, calm).await;
    let is_open = |end: &Outcome| matches!(end, Some(Ok(_)));
    let both_open = is_open(&client) && is_open(&server);
    assert!(plan.fits || !both_open, "seed {seed}: {client:?} {server:?}");
    let given_up = client.is_none() || server.is_none();
    // Once the path is calm, a handshake has several seconds to complete.
    assert!(both_open || given_up || !plan.fits, "seed {seed}: {client:?} {server:?}");
    let go_on = |end: Outcome, name, must_close| {
        let (path, rng) = (Arc::clone(&path), Seed(seed).stream(name));
        async move {
            if let Some(Ok(connection)) = end {
                live(connection, rng, (seed, must_close), path).await;
            }
        }
    };
    tokio::join!(
        go_on(client, "client lives", true),
        go_on(server, "server lives", false),
        move_port(&relay, seed),
    );
}

#[test]
fn random_connections_survive_or_end_with_an_error() {
    randomised::run_seeds(randomised::seeds(CASES), run_case);
}
