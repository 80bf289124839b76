//! What goes wrong, and how it is told.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{SERVICE, listener, localhost, number_of, numbered, pair, run};
use udccp::{Address, CloseReason, Connection, Endpoint, Error, Listener, Options, ServiceCode};

/// Fails fast: two Requests, 200 ms apart.
fn impatient() -> Options {
    Options::default().initial_rto(Duration::from_millis(100)).request_retries(1)
}

#[test]
fn another_service_code_is_refused_by_name() {
    run(async {
        let listener = listener(&Options::default());
        let other: ServiceCode = "SC:othr".parse().unwrap();
        let e = Connection::connect(listener.local_addr(), other).await.unwrap_err();
        assert!(matches!(e, Error::BadServiceCode { service, .. } if service == other), "{e}");
        assert!(e.to_string().contains("SC:othr") && e.is_refusal());
    });
}

#[test]
fn a_port_without_listener_is_refused() {
    run(async {
        let listener = listener(&Options::default());
        let udp = listener.local_addr();
        let peer = Address { udp, port: udp.port().wrapping_add(1) };
        let e = Endpoint::bind(localhost(false))
            .unwrap()
            .connect(peer, SERVICE, &Options::default())
            .await
            .unwrap_err();
        assert!(matches!(e, Error::Refused { .. }), "{e}");
    });
}

#[test]
fn a_closed_udp_port_is_unreachable_at_once() {
    run(async {
        for v6 in [false, true] {
            let closed = UdpSocket::bind(localhost(v6)).unwrap().local_addr().unwrap();
            let began = tokio::time::Instant::now();
            let e = Connection::connect(closed, SERVICE).await.unwrap_err();
            assert!(matches!(e, Error::Unreachable { .. }), "{e}");
            assert!(began.elapsed() < Duration::from_millis(500), "the ICMP message is heard");
        }
    });
}

#[test]
fn a_silent_peer_gives_no_answer() {
    run(async {
        let silent = UdpSocket::bind(localhost(false)).unwrap();
        let peer = silent.local_addr().unwrap();
        let e = Connection::connect_with(peer, SERVICE, &impatient()).await.unwrap_err();
        assert!(matches!(e, Error::NoAnswer { .. }), "{e}");
    });
}

#[test]
fn a_port_in_use_is_named() {
    run(async {
        let listener = listener(&Options::default());
        let e = Listener::bind(listener.local_addr(), SERVICE).unwrap_err();
        assert!(matches!(e, Error::PortInUse { addr } if addr == listener.local_addr()), "{e}");
        assert!(!e.advice().is_empty());
    });
}

#[test]
fn a_service_is_served_once_on_a_port() {
    run(async {
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let options = Options::default();
        let _first = endpoint.listen(7, [SERVICE], &options).unwrap();
        let e = endpoint.listen(7, [SERVICE], &options).unwrap_err();
        assert!(matches!(e, Error::ServiceInUse { port: 7, .. }), "{e}");
        assert!(matches!(endpoint.listen(8, [], &options), Err(Error::NoService)));
    });
}

#[test]
fn wrong_settings_are_refused_before_anything_is_sent() {
    run(async {
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let peer: Address = "127.0.0.1:9".parse().unwrap();
        let unknown = Options::default().ccid(77);
        let e = endpoint.connect(peer, SERVICE, &unknown).await.unwrap_err();
        assert!(matches!(e, Error::Config(_)) && e.to_string().contains("77"), "{e}");
        let e = endpoint.connect(peer.over_udp_port(0), SERVICE, &unknown).await.unwrap_err();
        assert!(matches!(e, Error::Connect(_)), "{e}");
        assert_eq!(endpoint.stats().datagrams_sent, 0);
    });
}

#[test]
fn a_full_backlog_is_too_busy() {
    run(async {
        let listener = listener(&Options::default().backlog(1));
        let peer = listener.local_addr();
        let first = Connection::connect(peer, SERVICE).await.unwrap();
        let e = Connection::connect(peer, SERVICE).await.unwrap_err();
        assert!(matches!(e, Error::TooBusy { .. }), "{e}");
        drop(first);
    });
}

#[test]
fn closing_towards_a_peer_that_is_gone_ends_with_a_reason() {
    let options = impatient().close_retries(1);
    let (tell, hear) = std::sync::mpsc::channel();
    let server = std::thread::Builder::new().spawn(move || {
        run(async {
            let listener = listener(&impatient());
            tell.send(listener.local_addr()).unwrap();
            listener.accept().await.unwrap();
            // The runtime ends here, and with it everything that could answer.
        });
    });
    let peer = hear.recv().unwrap();
    run(async {
        let client = Connection::connect_with(peer, SERVICE, &options).await.unwrap();
        server.unwrap().join().unwrap();
        let e = client.close().await.unwrap_err();
        assert!(matches!(e, Error::Lost(CloseReason::CloseTimeout)), "{e}");
    });
}

#[test]
fn a_close_that_runs_out_of_time_says_how_much_was_left() {
    run(async {
        let reads_nothing = Options::default().recv_queue(20_000, 20);
        let linger = Options::default().close_linger(Duration::from_millis(100));
        let (client, server) = pair(&linger, &reads_nothing).await;
        while client.try_send(vec![0; 1000]).is_ok() {}
        let e = client.close().await.unwrap_err();
        assert!(matches!(e, Error::Unsent { messages } if messages > 100), "{e}");
        drop(server);
    });
}

#[test]
fn garbage_is_counted_and_disturbs_nobody() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        let stranger = UdpSocket::bind(localhost(false)).unwrap();
        for len in 0..1500_u32 {
            let garbage: Vec<u8> = (0..len).map(|i| (i * len) as u8).collect();
            stranger.send_to(&garbage, server.local_addr().udp).unwrap();
        }
        for n in 0..200 {
            client.send(numbered(n, 500)).await.unwrap();
            assert_eq!(number_of(&server.recv().await.unwrap().unwrap()), n);
        }
    });
}

#[test]
fn sockets_may_go_to_other_threads() {
    fn check<T: Send + Sync>() {}
    check::<Endpoint>();
    check::<Listener>();
    check::<Connection>();
    check::<udccp::blocking::Connection>();
    check::<Error>();
}

#[test]
fn the_end_of_the_runtime_ends_every_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (client, server) = runtime.block_on(pair(&Options::default(), &Options::default()));
    drop(runtime);
    run(async {
        assert!(matches!(client.recv().await, Err(Error::Io { .. })));
        assert!(matches!(server.close().await, Err(Error::Io { .. } | Error::Lost(_))));
    });
}

#[test]
fn without_a_runtime_binding_says_so() {
    let e = Endpoint::bind(localhost(false)).unwrap_err();
    assert!(e.to_string().contains("runtime"), "{e}");
}
