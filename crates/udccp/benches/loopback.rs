//! Goodput of DCCP over the loopback interface compared with plain UDP, both peers on one core.
//!
//! `cargo bench -p udccp --bench loopback` prints one line for each contender and the ratio; `-- 3`
//! measures for three seconds each. Plain UDP is measured with two threads, and with one thread
//! that sends and receives in turn without waiting; the better result counts. The DCCP peers are
//! two threads with a runtime and a UDP socket each.

#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock and starts threads")]
#![allow(clippy::print_stdout, reason = "a benchmark prints its result")]

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use udccp::{Connection, ConnectionStats, Listener, Options, ServiceCode};

const MESSAGE_BYTES: usize = 1400;
const SERVICE: ServiceCode = ServiceCode(0x6265_6e63);
/// Messages passed in one call, as by an application that has data ready.
const BATCH: usize = 128;

/// The result of one contender.
struct Measured {
    name: &'static str,
    messages: u64,
    lost: u64,
    elapsed: Duration,
}

impl Measured {
    fn gbit_per_s(&self) -> f64 {
        (self.messages * MESSAGE_BYTES as u64 * 8) as f64 / self.elapsed.as_secs_f64() / 1e9
    }

    fn print(&self) {
        println!(
            "{:<44} {:>8.3} Gbit/s  {:>8.0} ns/message  {} lost",
            self.name,
            self.gbit_per_s(),
            self.elapsed.as_nanos() as f64 / self.messages as f64,
            self.lost,
        );
    }
}

fn main() {
    let seconds = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(2.0);
    let span = Duration::from_secs_f64(seconds);
    let mut core = CpuSet::new();
    core.set(0).expect("core 0 exists");
    sched_setaffinity(Pid::from_raw(0), &core).expect("this process may choose its core");
    println!("{MESSAGE_BYTES}-byte messages, both peers on core 0, {seconds} s each");

    let plain = [udp_two_threads(span), udp_in_turn(span)];
    plain.iter().for_each(Measured::print);
    let (dccp, stats) = dccp(span);
    dccp.print();
    println!(
        "    {} acks for {} messages, {} congestion events, {} timeouts, cwnd {}, srtt {:?}",
        stats.counters.acks_received,
        stats.counters.data_packets_sent,
        stats.congestion_events,
        stats.timeouts,
        stats.cwnd_packets.unwrap_or(0),
        stats.srtt.unwrap_or_default(),
    );
    let best = plain.iter().map(Measured::gbit_per_s).fold(0.0, f64::max);
    let ratio = dccp.gbit_per_s() / best;
    println!("ratio to the better plain UDP: {ratio:.2} (goal: at least 2)");
}

fn sockets() -> (UdpSocket, UdpSocket, SocketAddr) {
    let receiver = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let sender = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let at = receiver.local_addr().expect("bound");
    sender.connect(at).expect("loopback");
    socket2::SockRef::from(&receiver).set_recv_buffer_size(4 << 20).expect("a buffer");
    (sender, receiver, at)
}

/// A thread that sends as fast as it can and a thread that receives.
fn udp_two_threads(span: Duration) -> Measured {
    let (sender, receiver, _) = sockets();
    receiver.set_read_timeout(Some(Duration::from_millis(100))).expect("a timeout");
    let stop = Arc::new(AtomicBool::new(false));
    let stopping = Arc::clone(&stop);
    let sending = thread::spawn(move || {
        let message = [7; MESSAGE_BYTES];
        let mut sent = 0_u64;
        while !stopping.load(Ordering::Relaxed) {
            sent += u64::from(sender.send(&message).is_ok());
        }
        sent
    });
    let began = Instant::now();
    let mut buffer = [0; 2048];
    let mut messages = 0;
    while began.elapsed() < span {
        messages += u64::from(receiver.recv(&mut buffer).is_ok());
    }
    let elapsed = began.elapsed();
    stop.store(true, Ordering::Relaxed);
    let sent = sending.join().expect("the sender ends");
    let name = "plain UDP send/recv, two threads";
    Measured { name, messages, lost: sent.saturating_sub(messages), elapsed }
}

/// One thread that alternately sends some messages and receives them, without switches or losses.
fn udp_in_turn(span: Duration) -> Measured {
    let (sender, receiver, _) = sockets();
    let message = [7; MESSAGE_BYTES];
    let mut buffer = [0; 2048];
    let (mut sent, mut messages) = (0_u64, 0_u64);
    let began = Instant::now();
    while began.elapsed() < span {
        for _ in 0..64 {
            sent += u64::from(sender.send(&message).is_ok());
        }
        for _ in 0..64 {
            messages += u64::from(receiver.recv(&mut buffer).is_ok());
        }
    }
    let elapsed = began.elapsed();
    Measured { name: "plain UDP send/recv, in turn", messages, lost: sent - messages, elapsed }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

fn options() -> Options {
    Options::default().send_queue(2 << 20, 2048).recv_queue(4 << 20, 4096)
}

/// Two threads, each with a runtime and a socket.
fn dccp(span: Duration) -> (Measured, ConnectionStats) {
    let (tell, hear) = std::sync::mpsc::channel();
    let server = thread::spawn(move || {
        runtime().block_on(async {
            let at = "127.0.0.1:0".parse().expect("an address");
            let listener = Listener::bind_with(at, [SERVICE], &options()).expect("a free port");
            tell.send(listener.local_addr()).expect("the client listens");
            receive(&listener.accept().await.expect("a client")).await
        })
    });
    let peer = hear.recv().expect("the server's address");
    let stats = runtime().block_on(async {
        let client = Connection::connect_with(peer, SERVICE, &options()).await.expect("connected");
        send(&client, span).await
    });
    let (messages, elapsed) = server.join().expect("the server ends");
    let lost = stats.counters.data_packets_sent - messages;
    (Measured { name: "DCCP over UDP, CCID 2", messages, lost, elapsed }, stats)
}

async fn send(client: &Connection, span: Duration) -> ConnectionStats {
    let chunk: Bytes = BytesMut::zeroed(MESSAGE_BYTES * BATCH).freeze();
    let began = Instant::now();
    while began.elapsed() < span {
        let messages = (0..BATCH).map(|n| chunk.slice(n * MESSAGE_BYTES..(n + 1) * MESSAGE_BYTES));
        client.send_batch(messages).await.expect("open");
    }
    client.acknowledged().await.expect("open");
    let stats = client.stats().expect("open");
    client.close().await.expect("confirmed");
    stats
}

/// Counts messages until the client closes. The time is from the first message to the last.
async fn receive(server: &Connection) -> (u64, Duration) {
    let mut batch = Vec::with_capacity(1024);
    let mut messages = 0;
    let began = Instant::now();
    let mut last = began;
    while server.recv_batch(&mut batch, 1024).await.expect("in order") > 0 {
        messages += batch.len() as u64;
        assert!(batch.iter().all(|m| m.len() == MESSAGE_BYTES));
        batch.clear();
        last = Instant::now();
    }
    (messages, last - began)
}
