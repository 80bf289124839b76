//! Helpers for the tests of the sockets.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use udccp::ccid::InitialWindow;
use udccp::{Ccid2Options, Connection, ConnectionStats, Endpoint, Listener, Options, ServiceCode};

/// The service that the tests serve.
pub const SERVICE: ServiceCode = ServiceCode(0x7465_7374);

/// Runs a test with a time limit, so that one that hangs fails.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(300), test).await.expect("the test hangs")
    })
}

/// Settings with which only acknowledgements report losses: a process that does not run for longer
/// than a round trip takes what is in flight for lost.
pub fn without_timeouts() -> Options {
    let minute = Duration::from_secs(60);
    let ccid2 = Ccid2Options::new().initial_rto(minute).min_rto(minute);
    Options::default().ccid(2).ccid2(ccid2)
}

pub fn localhost(v6: bool) -> SocketAddr {
    if v6 { "[::1]:0".parse().unwrap() } else { "127.0.0.1:0".parse().unwrap() }
}

/// A listener on a free port of the loopback interface.
pub fn listener(options: &Options) -> Listener {
    Listener::bind_with(localhost(false), [SERVICE], options).unwrap()
}

/// A client and a server end, connected.
pub async fn pair(client: &Options, server: &Options) -> (Connection, Connection) {
    pair_at(localhost(false), client, server).await
}

pub async fn pair_at(
    at: SocketAddr,
    client: &Options,
    server: &Options,
) -> (Connection, Connection) {
    let listener = Listener::bind_with(at, [SERVICE], server).unwrap();
    let endpoint = Endpoint::bind(SocketAddr::new(at.ip(), 0)).unwrap();
    let (connected, accepted) =
        tokio::join!(endpoint.connect(listener.local_addr(), SERVICE, client), listener.accept());
    (connected.unwrap(), accepted.unwrap())
}

/// Most packets in flight in [`wide_pair`].
const WINDOW: u32 = 6_000;

/// Two ends whose calls never have to wait.
pub async fn wide_pair() -> (Connection, Connection) {
    let ccid2 = Ccid2Options::new().initial_window(InitialWindow::Packets(WINDOW));
    let options = Options::default()
        .ccid2(ccid2)
        .sequence_window(4 * u64::from(WINDOW))
        .send_queue(8 << 20, WINDOW as usize)
        .recv_queue(8 << 20, WINDOW as usize);
    pair_at(localhost(false), &options, &options).await
}

/// Whether another task ran during `calls`.
pub async fn runs_another_task_during(calls: impl Future<Output = ()>) -> bool {
    let ran = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&ran);
    tokio::spawn(async move { theirs.store(true, Ordering::Relaxed) });
    calls.await;
    ran.load(Ordering::Relaxed)
}

/// A server end with this many messages to read.
pub async fn with_messages(count: usize) -> (Connection, Connection) {
    let (client, server) = wide_pair().await;
    client.send_batch((0..count).map(|_| &b"message"[..])).await.unwrap();
    while server.stats().unwrap().recv_queue_packets < count {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    (client, server)
}

/// Sends this many messages of `len` bytes and closes, while the other end reads up to `most` at
/// once and checks their order. Returns the sender's statistics after everything is acknowledged,
/// and the number of messages that arrived.
pub async fn deliver(
    client: &Connection,
    server: &Connection,
    count: u32,
    len: usize,
    most: usize,
) -> (ConnectionStats, u32) {
    let sending = async {
        client.send_batch((0..count).map(|n| numbered(n, len))).await.unwrap();
        client.acknowledged().await.unwrap();
        let stats = client.stats().unwrap();
        client.close().await.unwrap();
        stats
    };
    let receiving = async {
        let (mut batch, mut next) = (Vec::new(), 0);
        while server.recv_batch(&mut batch, most).await.unwrap() > 0 {
            for message in batch.drain(..) {
                assert_eq!(number_of(&message), next);
                next += 1;
            }
        }
        next
    };
    tokio::join!(sending, receiving)
}

/// A message that starts with its number and has `len` bytes.
pub fn numbered(n: u32, len: usize) -> Vec<u8> {
    let mut message = n.to_be_bytes().to_vec();
    message.resize(len.max(4), n as u8);
    message
}

pub fn number_of(message: &[u8]) -> u32 {
    let number = u32::from_be_bytes(message[..4].try_into().unwrap());
    assert!(message[4..].iter().all(|&b| b == number as u8), "message {number} is damaged");
    number
}
