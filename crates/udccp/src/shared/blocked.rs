//! Tests of a socket that cannot send while a flood arrives.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Waker};
use std::time::Duration;

use udccp_base::Machine;
use udccp_proto::{ConnectOptions, ConnectionConfig, Endpoint, EndpointConfig, InitCookies};
use udccp_wire::ServiceCode;

use super::{Handle, Shared};
use crate::io::Receiver;
use crate::{EndpointOptions, Options};

/// Most bytes gathered for a UDP socket: eight batches of at most 64 KiB.
const MOST_BYTES: usize = 8 << 16;

fn localhost() -> std::net::SocketAddr {
    "127.0.0.1:0".parse().expect("an address")
}

/// The Request of a client at `client`, as in its UDP datagram.
fn request(client: &UdpSocket, server: &Shared, service: ServiceCode) -> Vec<u8> {
    let mut end = Endpoint::new(EndpointConfig::new([1; 32]));
    let now = udccp_base::Instant::ZERO;
    let remote = server.io.local_addr();
    let options = ConnectOptions {
        local: client.local_addr().unwrap(),
        local_port: None,
        remote,
        remote_port: remote.port(),
        service,
        config: ConnectionConfig::default().into(),
    };
    end.connect(now, options).unwrap();
    end.poll_transmit(now).expect("a Request").header.to_vec()
}

#[test]
fn packets_behind_a_blocked_socket_leave_before_the_driver_ends() {
    let service: ServiceCode = "SC:test".parse().unwrap();
    let server = UdpSocket::bind(localhost()).unwrap();
    server.set_nonblocking(true).unwrap();
    let shared = Shared::bind(localhost(), &EndpointOptions::default()).unwrap();
    // This test is the driver.
    shared.set_starter(|_| Ok(()));
    let handle = Handle::new(Arc::clone(&shared));
    let peer = server.local_addr().unwrap();
    let connecting = handle.connect(peer.into(), service, &Options::default()).unwrap();
    let mut buffer = [0; 2048];
    server.recv(&mut buffer).expect("a Request");
    shared.io.is_stuck.store(true, Ordering::Relaxed);
    drop((connecting, handle));
    let mut rx = Receiver::new(&shared.io);
    let turn = shared.turn(&mut rx, Receiver::read, false);
    assert!(turn.blocked && !turn.finished, "a Reset waits: {turn:?}");
    assert!(!shared.lock().is_idle());
    shared.io.is_stuck.store(false, Ordering::Relaxed);
    assert!(shared.turn(&mut rx, Receiver::read, false).finished);
    server.recv(&mut buffer).expect("a Reset");
    assert_eq!(udccp_wire::PacketType::peek(&buffer), Some(udccp_wire::PacketType::Reset));
}

/// A regression: what is gathered for a blocked socket has few destinations, and the connections
/// behind it had no timers.
#[test]
fn connections_behind_a_blocked_socket_have_timers() {
    let service: ServiceCode = "SC:test".parse().unwrap();
    let shared = Shared::bind(localhost(), &EndpointOptions::default()).unwrap();
    // This test is the driver.
    shared.set_starter(|_| Ok(()));
    let handle = Handle::new(Arc::clone(&shared));
    shared.io.is_stuck.store(true, Ordering::Relaxed);
    let connect = |port: u16, initial_rto: Duration| {
        let options = Options::default().initial_rto(initial_rto).request_retries(0);
        handle.connect(([127, 0, 0, 1], port).into(), service, &options).unwrap()
    };
    let long: Vec<_> = (1..20).map(|port| connect(port, Duration::from_secs(3600))).collect();
    let short = connect(20, Duration::from_millis(1));
    let mut rx = Receiver::new(&shared.io);
    let mut cx = Context::from_waker(Waker::noop());
    loop {
        let turn = shared.turn(&mut rx, Receiver::read, false);
        if short.poll_connected((&mut cx).into()).is_ready() {
            break;
        }
        let soon = shared.clock.now() + udccp_base::Duration::from_secs(60);
        assert!(turn.blocked && turn.deadline.is_some_and(|at| at < soon), "{turn:?}");
    }
    assert!(long.iter().all(|one| one.poll_connected((&mut cx).into()).is_pending()));
}

/// A regression: nothing woke the driver, which would have given the connection a timer.
#[test]
fn the_driver_looks_at_what_opens_and_closes_behind_a_blocked_socket() {
    let service: ServiceCode = "SC:test".parse().unwrap();
    let peer = UdpSocket::bind(localhost()).unwrap();
    let shared = Shared::bind(localhost(), &EndpointOptions::default()).unwrap();
    // This test is the driver.
    shared.set_starter(|_| Ok(()));
    let handle = Handle::new(Arc::clone(&shared));
    let address = peer.local_addr().unwrap();
    let options = Options::default().initial_rto(Duration::from_secs(3600));
    let connect = || handle.connect(address.into(), service, &options).unwrap();
    shared.io.is_stuck.store(true, Ordering::Relaxed);
    let _first = connect();
    let mut rx = Receiver::new(&shared.io);
    let mut rest = || {
        assert!(shared.turn(&mut rx, Receiver::read, false).blocked);
        assert!(!shared.lock().driver.notified, "nothing is left to the driver");
    };
    rest();
    let second = connect();
    assert!(shared.lock().driver.notified, "a second connection");
    rest();
    second.close();
    assert!(shared.lock().driver.notified, "its end");
    rest();
}

#[test]
fn queue_behind_a_blocked_socket_is_bounded_and_counted() {
    let service: ServiceCode = "SC:test".parse().unwrap();
    let shared = Shared::bind(localhost(), &EndpointOptions::default()).unwrap();
    // This test is the driver.
    shared.set_starter(|_| Ok(()));
    let handle = Handle::new(Arc::clone(&shared));
    let options = Options::default().init_cookies(InitCookies::Always);
    let port = shared.io.local_addr().port();
    let _listener = handle.listen(port, vec![service], &options).unwrap();
    let client = UdpSocket::bind(localhost()).unwrap();
    client.set_nonblocking(true).unwrap();
    let request = request(&client, &shared, service);

    let mut rx = Receiver::new(&shared.io);
    let mut flood = |count: u32| {
        for _ in 0..count {
            client.send_to(&request, shared.io.local_addr()).unwrap();
        }
        shared.turn(&mut rx, Receiver::read, false)
    };
    shared.io.is_stuck.store(true, Ordering::Relaxed);
    for _ in 0..200 {
        assert!(flood(50).blocked);
        assert!(handle.io_stats().waiting_bytes <= MOST_BYTES);
    }
    let (io, end) = (handle.io_stats(), handle.endpoint_stats());
    assert_eq!(end.cookies_sent, 10_000, "the driver goes on reading");
    assert!(io.times_blocked >= 200 && io.waiting_bytes > 0, "{io:?}");
    // 1024 answers wait in the endpoint, and here as many as eight batches hold.
    assert!((7_000..9_000).contains(&end.answers_dropped), "{end:?}");

    shared.io.is_stuck.store(false, Ordering::Relaxed);
    assert!(!flood(0).blocked);
    assert_eq!(handle.io_stats().waiting_bytes, 0);
    let mut buffer = [0; 2048];
    let mut answers = || std::iter::from_fn(|| client.recv(&mut buffer).ok()).count();
    assert!(answers() > 0);
    flood(1);
    assert_eq!(answers(), 1, "the next client is served");
    assert_eq!(handle.endpoint_stats().answers_dropped, end.answers_dropped);
}
