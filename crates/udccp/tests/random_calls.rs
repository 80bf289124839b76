//! Random connections: three tasks at each end send, receive, cancel calls, change settings and the
//! path, and close, over a relay that loses, delays and duplicates. Every call ends, messages
//! arrive complete and at most once, each token has one fate, and the counters add up.
//!
//! `UDCCP_TEST_CASES=3000 cargo test -p udccp --test random_calls` runs more cases, starting at
//! `UDCCP_TEST_SEED`.

mod common;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use common::{SERVICE, localhost};
use tokio::time::timeout;
use udccp::{
    Address, Connection, ConnectionEvent, Endpoint, Error, Listener, Options, Outgoing, QueuePolicy,
};
use udccp_base::{Rng, Seed};
use udccp_testkit::{Relay, by_chance, randomised};

/// Number of cases in ordinary test runs.
const CASES: u64 = 100;

/// The messages of one end.
#[derive(Default)]
struct Traffic {
    queued: AtomicU64,
    tokens: AtomicU64,
    fates: AtomicU64,
    /// The number of the next message.
    number: AtomicU64,
    /// Numbers of the messages that the other end has received.
    heard: Mutex<HashSet<u64>>,
}

fn pick<T: Clone>(rng: &mut Rng, of: &[T]) -> T {
    of[rng.below(of.len() as u64) as usize].clone()
}

fn options(rng: &mut Rng) -> Options {
    let mut o = Options::default()
        .ccid(2)
        .send_queue(pick(rng, &[1, 3000, 1 << 20]), pick(rng, &[1, 5, 512]))
        .recv_queue(pick(rng, &[1, 3000, 1 << 20]), pick(rng, &[1, 5, 512]))
        .close_linger(Duration::from_millis(pick(rng, &[0, 50, 1000])))
        // The relay does not forward ICMP errors about closed ports, so only this ends a close
        // then.
        .initial_rto(Duration::from_millis(100))
        .close_retries(5)
        .keep_alive(Some(Duration::from_millis(200)))
        .idle_limit(Some(Duration::from_secs(4)));
    if rng.chance(0.3) {
        o = o.request_data("early");
    }
    if rng.chance(0.3) {
        o = o.queue_policy(QueuePolicy::DropLowest);
    }
    o
}

fn message(rng: &mut Rng, me: &Traffic, max: usize) -> Outgoing {
    let number = me.number.fetch_add(1, Ordering::Relaxed);
    let len = if rng.chance(0.05) { max + 1 } else { rng.below(max as u64 + 1) as usize }.max(8);
    let mut bytes = vec![number as u8; len];
    bytes[..8].copy_from_slice(&number.to_le_bytes());
    let mut m = Outgoing::new(bytes).priority(rng.below(3) as u32);
    if rng.chance(0.2) {
        m = m.lifetime(Duration::from_millis(rng.below(30)));
    }
    m
}

/// Checks a received message: it was sent, is complete, and arrives once.
fn check_received(peer: &Traffic, bytes: &[u8]) {
    if bytes == b"early" {
        return;
    }
    let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
    assert!(number < peer.number.load(Ordering::Relaxed));
    assert!(bytes[8..].iter().all(|b| *b == number as u8), "broken");
    assert!(peer.heard.lock().unwrap().insert(number), "twice");
}

/// Changes a setting.
fn change(rng: &mut Rng, c: &Connection) {
    let some = Duration::from_millis(pick(rng, &[0, 20, 500]));
    match rng.below(5) {
        0 => c.set_send_queue(pick(rng, &[1, 3000, 1 << 20]), pick(rng, &[1, 5, 512])),
        1 => c.set_queue_policy(pick(rng, &[QueuePolicy::Refuse, QueuePolicy::DropLowest])),
        2 => c.set_linger(some),
        3 => c.set_slow_receiver(rng.chance(0.5)),
        _ => c.path_changed(),
    }
}

/// Performs a random action, cancelling it after a while.
async fn act(rng: &mut Rng, c: &Connection, me: &Traffic, peer: &Traffic) {
    let brief = Duration::from_micros(rng.below(3000));
    match rng.below(22) {
        0..=3 => {
            let m = message(rng, me, c.max_message_size());
            let token = rng.chance(0.5);
            let m = if token { m.token(7) } else { m };
            if c.try_send(m).is_ok() {
                me.queued.fetch_add(1, Ordering::Relaxed);
                me.tokens.fetch_add(u64::from(token), Ordering::Relaxed);
            }
        }
        4..=6 => {
            let m = message(rng, me, c.max_message_size());
            // A cancelled call has not queued its message.
            if let Ok(Ok(())) = timeout(brief, c.send(m)).await {
                me.queued.fetch_add(1, Ordering::Relaxed);
            }
        }
        7..=10 => {
            if let Ok(Ok(Some(bytes))) = timeout(brief, c.recv()).await {
                check_received(peer, &bytes);
            }
        }
        11 => {
            let mut batch = Vec::new();
            let _ = timeout(brief, c.recv_batch(&mut batch, 5)).await;
            batch.iter().for_each(|bytes| check_received(peer, bytes));
        }
        12 => {
            if let Ok(Some(ConnectionEvent::MessageFate { .. })) = timeout(brief, c.event()).await {
                me.fates.fetch_add(1, Ordering::Relaxed);
            }
        }
        13..=17 => change(rng, c),
        18 => drop(timeout(brief, c.acknowledged()).await),
        19 => drop(timeout(brief, c.flushed()).await),
        20 => {
            let _ = (c.stats(), c.sender_state(), c.receiver_state(), c.coverage());
            #[cfg(unix)]
            drop(c.readiness());
            let _ = timeout(brief, c.writable()).await;
        }
        _ => match rng.below(30) {
            0 => c.abort(),
            1 => drop(timeout(brief, c.close()).await),
            2 => c.shutdown_read(),
            _ => tokio::time::sleep(brief).await,
        },
    }
}

/// One end: three tasks, and then a close or a drop.
async fn live(seed: u64, n: u64, c: Connection, me: Arc<Traffic>, peer: Arc<Traffic>) {
    let mut tasks = Vec::new();
    for task in 0..3 {
        let (c, me, peer) = (c.clone(), Arc::clone(&me), Arc::clone(&peer));
        let mut rng = Seed(seed * 100 + n * 10 + task).stream("act");
        tasks.push(tokio::spawn(async move {
            for _ in 0..rng.below(120) {
                act(&mut rng, &c, &me, &peer).await;
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let mut rng: Rng = Seed(seed * 100 + n).stream("end");
    if rng.chance(0.2) {
        return;
    }
    let closed = c.close().await;
    let again = c.closed().await;
    assert!(closed.is_err() || again.is_ok(), "{closed:?} {again:?}");
    loop {
        match c.recv().await {
            Ok(Some(bytes)) => check_received(&peer, &bytes),
            Ok(None) | Err(Error::Lost(_)) => break,
            Err(e) => panic!("{e}"),
        }
    }
    while let Some(event) = c.event().await {
        if let ConnectionEvent::MessageFate { .. } = event {
            me.fates.fetch_add(1, Ordering::Relaxed);
        }
    }
    let get = |a: &AtomicU64| a.load(Ordering::Relaxed);
    assert_eq!(get(&me.fates), get(&me.tokens), "seed {seed}: fates");
    let s = c.stats().unwrap();
    let (k, d) = (s.counters, s.counters.drops);
    let all = k.data_packets_sent
        + d.send_expired
        + d.send_displaced
        + d.send_ended
        + d.send_too_large
        + s.send_queue_packets as u64;
    assert_eq!(all, get(&me.queued), "seed {seed}: {s:?}");
}

/// Runs up to three connections.
async fn run_case(seed: u64) {
    let mut rng = Seed(seed).stream("life");
    let server_options = options(&mut rng).backlog(pick(&mut rng, &[1, 128]));
    let listener = Listener::bind_with(localhost(false), [SERVICE], &server_options).unwrap();
    let loss = pick(&mut rng, &[0.0, 0.02, 0.2]);
    let relay = Relay::start(listener.local_addr(), by_chance(seed, loss, 0.1, 0.05)).await;
    let peer = Address { udp: ([127, 0, 0, 1], relay.port).into(), port: listener.port() };
    let endpoint = Endpoint::bind(localhost(false)).unwrap();
    let mut all = tokio::task::JoinSet::new();
    for n in 0..1 + rng.below(3) {
        let o = options(&mut rng);
        let (connected, accepted) = tokio::join!(
            timeout(Duration::from_secs(8), endpoint.connect(peer, SERVICE, &o)),
            timeout(Duration::from_secs(2), listener.accept()),
        );
        let (a, b) = (Arc::new(Traffic::default()), Arc::new(Traffic::default()));
        // Either end may have given up, and the accepted connection may be that of an earlier
        // client.
        if let (Ok(Ok(c)), Ok(Ok(s))) = (connected, accepted)
            && c.local_addr().port == s.peer_addr().port
        {
            all.spawn(live(seed, 2 * n, c, Arc::clone(&a), Arc::clone(&b)));
            all.spawn(live(seed, 2 * n + 1, s, b, a));
        }
    }
    if rng.chance(0.3) {
        drop(listener);
    }
    while let Some(done) = all.join_next().await {
        done.unwrap();
    }
    endpoint.wait_idle().await;
}

#[test]
fn random_calls_and_cancellations_account_for_every_message() {
    randomised::run_seeds(randomised::seeds(CASES), run_case);
}
