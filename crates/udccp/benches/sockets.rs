//! Fixed amounts of work for the sockets, for whole-process figures: processor time of both ends
//! (`perf stat`, `/usr/bin/time -v`) and instruction counts (`valgrind --tool=callgrind`).
//!
//! `cargo bench -p udccp --bench sockets -- WORK COUNT [CHOICE]`, both ends on core 0 over the
//! loopback interface:
//!
//! | WORK | does COUNT times | CHOICE |
//! |---|---|---|
//! | `handshakes` | connects, accepts and closes | how many at once (32) |
//! | `ping` | sends 100 bytes and awaits as many | `async` or `blocking` |
//! | `bulk` | sends a message of 1,200 bytes | CCID 2, 3, or a window algorithm: `cubic`, `bbr` |
//! | `stream` | the same with blocking sockets | messages a call: `one` or `many` (32) |
//! | `idle` | holds a connection, and prints what it costs the heap | |

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and starts threads")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::net::SocketAddr;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use udccp::{
    Ccid2Options, Connection, Endpoint, EndpointOptions, Listener, Options, ServiceCode, blocking,
};
use udccp_cc::{Algorithm, BbrConfig, CubicConfig};
use udccp_testkit::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::new();

const SERVICE: ServiceCode = ServiceCode(0x6265_6e63);
const BULK_BYTES: usize = 1200;
const BATCH: usize = 128;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    let work = args.first().map_or("ping", String::as_str);
    let count = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(1000_usize);
    let choice = args.get(2).map_or("", String::as_str);
    let mut core = CpuSet::new();
    core.set(0).expect("core 0 exists");
    sched_setaffinity(Pid::from_raw(0), &core).expect("this process may choose its core");
    let began = Instant::now();
    match work {
        "handshakes" => runtime().block_on(handshakes(count, choice.parse().unwrap_or(32))),
        "ping" if choice == "blocking" => ping_blocking(count),
        "ping" => ping(count),
        "bulk" => bulk(count, choice),
        "stream" => stream(count, choice == "many"),
        "idle" => runtime().block_on(idle(count)),
        _ => panic!("no such work: {work}"),
    }
    let each = began.elapsed() / u32::try_from(count).expect("a count");
    println!("{work} {choice}: {each:?} each");
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn anywhere() -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 0))
}

/// Connects one client socket to one server socket `count` times, `at_once` at a time.
async fn handshakes(count: usize, at_once: usize) {
    let listener = Listener::bind(anywhere(), SERVICE).expect("a free port");
    let client = Endpoint::bind_with(anywhere(), &EndpointOptions::default()).expect("a socket");
    let peer = listener.local_addr();
    let local = tokio::task::LocalSet::new();
    let serving = local.spawn_local(async move {
        for _ in 0..count / at_once * at_once {
            let connection = listener.accept().await.expect("a client");
            tokio::task::spawn_local(async move { connection.closed().await });
        }
        listener
    });
    local
        .run_until(async move {
            let mut tasks = tokio::task::JoinSet::new();
            for _ in 0..at_once {
                let client = client.clone();
                tasks.spawn_local(async move {
                    for _ in 0..count / at_once {
                        let options = Options::default();
                        let c = client.connect(peer, SERVICE, &options).await.expect("connected");
                        c.close().await.expect("confirmed");
                    }
                });
            }
            while let Some(done) = tasks.join_next().await {
                done.expect("no panic");
            }
            serving.await.expect("no panic");
        })
        .await;
}

fn ping(count: usize) {
    let (tell, heard) = channel();
    let server = thread::spawn(move || {
        runtime().block_on(async {
            let listener = Listener::bind(anywhere(), SERVICE).expect("a free port");
            tell.send(listener.local_addr()).expect("the client waits");
            let connection = listener.accept().await.expect("a client");
            while let Some(message) = connection.recv().await.expect("in order") {
                if connection.send(message).await.is_err() {
                    break;
                }
            }
        });
    });
    let peer = heard.recv().expect("the server's address");
    let mut times = Vec::with_capacity(count);
    let stats = runtime().block_on(async {
        let connection = Connection::connect(peer, SERVICE).await.expect("connected");
        let message = Bytes::from(vec![7; 100]);
        for _ in 0..count {
            let began = Instant::now();
            connection.send(message.clone()).await.expect("open");
            connection.recv().await.expect("in order").expect("open");
            times.push(began.elapsed());
        }
        let stats = connection.stats().expect("open");
        connection.close().await.expect("confirmed");
        stats
    });
    server.join().expect("no panic");
    print_times(&mut times, &stats);
}

fn ping_blocking(count: usize) {
    let listener = blocking::Listener::bind(anywhere(), SERVICE).expect("a free port");
    let peer = listener.local_addr();
    let server = thread::spawn(move || {
        let connection = listener.accept().expect("a client");
        while let Some(message) = connection.recv().expect("in order") {
            if connection.send(message).is_err() {
                break;
            }
        }
    });
    let connection = blocking::Connection::connect(peer, SERVICE).expect("connected");
    let message = Bytes::from(vec![7; 100]);
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let began = Instant::now();
        connection.send(message.clone()).expect("open");
        connection.recv().expect("in order").expect("open");
        times.push(began.elapsed());
    }
    let stats = connection.stats().expect("open");
    connection.close().expect("confirmed");
    server.join().expect("no panic");
    print_times(&mut times, &stats);
}

fn print_times(times: &mut [Duration], stats: &udccp::ConnectionStats) {
    times.sort_unstable();
    let at = |permille: usize| times[(times.len() * permille / 1000).min(times.len() - 1)];
    println!("p50 {:?}, p99 {:?}", at(500), at(990));
    let c = &stats.counters;
    println!("{} packets sent, {} data", c.packets_sent, c.data_packets_sent);
}

fn bulk_options(choice: &str) -> Options {
    let options = Options::default().send_queue(2 << 20, 2048).recv_queue(4 << 20, 4096);
    match choice {
        "" | "2" => options,
        "3" => options.ccid(3),
        "cubic" => with_algorithm(options, Algorithm::Cubic(CubicConfig::default())),
        "bbr" => with_algorithm(options, Algorithm::Bbr(BbrConfig::default())),
        _ => panic!("no such congestion control: {choice}"),
    }
}

fn with_algorithm(options: Options, algorithm: Algorithm) -> Options {
    options.ccid2(Ccid2Options::default().algorithm(algorithm))
}

fn bulk(count: usize, choice: &str) {
    let options = bulk_options(choice);
    let (tell, heard) = channel();
    let theirs = options.clone();
    let server = thread::spawn(move || {
        runtime().block_on(async {
            let listener =
                Listener::bind_with(anywhere(), [SERVICE], &theirs).expect("a free port");
            tell.send(listener.local_addr()).expect("the client waits");
            let connection = listener.accept().await.expect("a client");
            let mut batch = Vec::with_capacity(1024);
            let mut messages = 0;
            while connection.recv_batch(&mut batch, 1024).await.expect("in order") > 0 {
                messages += batch.len();
                batch.clear();
            }
            messages
        })
    });
    let peer = heard.recv().expect("the server's address");
    let stats = runtime().block_on(async {
        let client = Connection::connect_with(peer, SERVICE, &options).await.expect("connected");
        let chunk: Bytes = BytesMut::zeroed(BULK_BYTES * BATCH).freeze();
        let message = |n: usize| chunk.slice(n * BULK_BYTES..(n + 1) * BULK_BYTES);
        for _ in 0..count.div_ceil(BATCH) {
            client.send_batch((0..BATCH).map(message)).await.expect("open");
        }
        client.acknowledged().await.expect("open");
        let stats = client.stats().expect("open");
        client.close().await.expect("confirmed");
        stats
    });
    let messages = server.join().expect("no panic");
    println!(
        "{messages} of {} messages, {} acks, cwnd {:?}, srtt {:?}",
        stats.counters.data_packets_sent,
        stats.counters.acks_received,
        stats.cwnd_packets,
        stats.srtt,
    );
}

/// Two threads with the defaults of blocking sockets, and one call per message or per 32 messages.
fn stream(count: usize, is_many: bool) {
    let at_once = if is_many { 32 } else { 1 };
    let listener = blocking::Listener::bind(anywhere(), SERVICE).expect("a free port");
    let peer = listener.local_addr();
    let server = thread::spawn(move || {
        let connection = listener.accept().expect("a client");
        let (began, mut last) = (Instant::now(), Instant::now());
        let mut batch = Vec::with_capacity(at_once);
        let mut messages = 0;
        loop {
            let got = if is_many {
                connection.recv_batch(&mut batch, at_once).expect("in order")
            } else {
                usize::from(connection.recv().expect("in order").is_some())
            };
            if got == 0 {
                return (messages, last - began);
            }
            batch.clear();
            messages += got;
            if messages % 64 < got {
                last = Instant::now();
            }
        }
    });
    let connection = blocking::Connection::connect(peer, SERVICE).expect("connected");
    let message = Bytes::from(vec![7; BULK_BYTES]);
    for _ in 0..count / at_once {
        if is_many {
            connection.send_batch((0..at_once).map(|_| message.clone())).expect("open");
        } else {
            connection.send(message.clone()).expect("open");
        }
    }
    connection.close().expect("confirmed");
    let (messages, time) = server.join().expect("no panic");
    let rate = messages as f64 / time.as_secs_f64();
    println!("messages_per_s {rate:.0} lost {}", count / at_once * at_once - messages);
}

/// Idle connections: heap bytes and allocations of one end.
async fn idle(count: usize) {
    let listener = Listener::bind(anywhere(), SERVICE).expect("a free port");
    let client = Endpoint::bind(anywhere()).expect("a socket");
    let peer = listener.local_addr();
    let options = Options::default();
    let mut held = Vec::with_capacity(2 * (count + 1));
    let pair = async || {
        let (one, other) = tokio::join!(client.connect(peer, SERVICE, &options), listener.accept());
        [one.expect("connected"), other.expect("a client")]
    };
    held.extend(pair().await);
    let (bytes, allocations) = (ALLOCATOR.held_bytes(), ALLOCATOR.allocations());
    for _ in 0..count {
        held.extend(pair().await);
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    let ends = 2 * count;
    println!("{} heap bytes an end", (ALLOCATOR.held_bytes() - bytes) / ends);
    let made = (ALLOCATOR.allocations() - allocations) as f64 / ends as f64;
    println!("{made:.1} allocations an end");
    drop(held);
    listener.endpoint().wait_idle().await;
    println!(
        "{} heap bytes an end afterwards",
        ALLOCATOR.held_bytes().saturating_sub(bytes) / ends
    );
}
