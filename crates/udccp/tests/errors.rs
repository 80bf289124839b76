//! Errors, and how they are reported.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{SERVICE, listener, localhost, number_of, numbered, pair, run};
use udccp::ccid::CcidRegistry;
use udccp::{
    Address, CloseReason, Connection, Endpoint, EndpointOptions, Error, Listener, Options,
    ServiceCode, TryRecvError, TrySendError, blocking,
};
use udccp_testkit::{Relay, pass};

/// Time limit, so that a test that hangs fails.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(30));

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
#[cfg(target_os = "linux")]
fn a_closed_udp_port_is_refused_at_once() {
    run(async {
        for v6 in [false, true] {
            let closed = UdpSocket::bind(localhost(v6)).unwrap().local_addr().unwrap();
            // A single Request per hour, so only the ICMP message can be the answer.
            let once = Options::default().initial_rto(Duration::from_secs(3600));
            let e = Connection::connect_with(closed, SERVICE, &once).await.unwrap_err();
            assert!(matches!(e, Error::PortClosed { .. }) && e.is_refusal(), "{e}");
            assert!(e.to_string().contains(&format!("UDP port {}", closed.port())), "{e}");
            let e = std::io::Error::from(e);
            assert_eq!(e.kind(), std::io::ErrorKind::ConnectionRefused);
        }
    });
}

#[test]
#[cfg(target_os = "linux")]
fn a_closed_port_over_ipv4_is_refused_to_a_socket_for_both_families() {
    run(async {
        let closed = UdpSocket::bind(localhost(false)).unwrap().local_addr().unwrap();
        let both = Endpoint::bind("[::]:0".parse().unwrap()).unwrap();
        // A single Request per hour, so only the ICMP message can be the answer.
        let once = Options::default().initial_rto(Duration::from_secs(3600));
        let e = both.connect(closed, SERVICE, &once).await.unwrap_err();
        assert!(matches!(e, Error::PortClosed { .. }), "{e}");
    });
}

#[test]
fn a_ccid_that_the_server_does_not_offer_is_named() {
    run(async {
        let listener = listener(&Options::default());
        let experiments = EndpointOptions::new().ccids(CcidRegistry::with_experiments());
        let endpoint = Endpoint::bind_with(localhost(false), &experiments).unwrap();
        let options = Options::default().ccid(250);
        let e = endpoint.connect(listener.local_addr(), SERVICE, &options).await.unwrap_err();
        assert!(matches!(e, Error::CcidNotOffered { ccid: 250, .. }) && e.is_refusal(), "{e}");
        assert_eq!(std::io::Error::from(e).kind(), std::io::ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_ccid_is_named_whichever_end_insists_on_another() {
    run(async {
        for (client, server) in [(2, 3), (2, 4), (3, 2), (4, 2), (3, 4), (4, 3)] {
            let listener = listener(&Options::default().ccid(server));
            let options = Options::default().ccid(client);
            let connecting = Connection::connect_with(listener.local_addr(), SERVICE, &options);
            let e = connecting.await.unwrap_err();
            let is_named = matches!(e, Error::CcidNotOffered { ccid, .. } if ccid == client);
            assert!(is_named, "{client} at a server of {server}: {e}");
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
        // The advice does not ask for a change of settings.
        assert!(e.advice().contains("UDP or raw IP"), "{}", e.advice());
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
fn closing_towards_a_dead_peer_ends_with_a_reason() {
    run(async {
        let listener = listener(&Options::default());
        let path = Relay::start(listener.local_addr(), pass).await;
        let options = Options::default().close_retries(1);
        let peer = Address { udp: path.addr(), port: listener.port() };
        let client = Connection::connect_with(peer, SERVICE, &options).await.unwrap();
        let server = listener.accept().await.unwrap();
        path.cut();
        let e = client.close().await.unwrap_err();
        assert!(matches!(e, Error::Lost(CloseReason::CloseTimeout)), "{e}");
        drop(server);
    });
}

#[test]
fn runtime_end_delivers_accepted_messages_and_notifies_the_peer() {
    let (tell, hear) = std::sync::mpsc::channel();
    let server = std::thread::Builder::new().spawn(move || {
        run(async {
            let listener = listener(&Options::default());
            tell.send(listener.local_addr()).unwrap();
            let connection = listener.accept().await.unwrap();
            let mut got = 0;
            while connection.recv().await.unwrap().is_some() {
                got += 1;
            }
            got
        })
    });
    let peer = hear.recv().unwrap();
    let client = run(async {
        let options = Options::default().close_linger(Duration::from_secs(60));
        let client = Connection::connect_with(peer, SERVICE, &options).await.unwrap();
        for n in 0..100 {
            client.send(numbered(n, 1000)).await.unwrap();
        }
        client
        // The runtime ends here, with a window of three packets in the network.
    });
    assert_eq!(server.unwrap().join().unwrap(), 100);
    assert!(matches!(run(client.recv()), Err(Error::Io { .. })), "nobody closed it");
}

#[test]
fn endpoint_of_connect_waits_for_dropped_connections() {
    run(async {
        let listener = listener(&Options::default());
        let client = Connection::connect(listener.local_addr(), SERVICE).await.unwrap();
        let server = listener.accept().await.unwrap();
        for n in 0..100 {
            client.send(numbered(n, 1000)).await.unwrap();
        }
        let endpoint = client.endpoint();
        drop(client);
        endpoint.wait_idle().await;
        // Messages that the peer has acknowledged arrive.
        for n in 0..100 {
            assert_eq!(number_of(&server.recv().await.unwrap().unwrap()), n);
        }
        assert_eq!(server.recv().await.unwrap(), None);
        drop(server);
        listener.endpoint().wait_idle().await;
    });
}

#[test]
fn a_closed_connection_that_is_kept_is_idle() {
    run(async {
        let (client, server) = pair(&Options::default(), &Options::default()).await;
        client.close().await.unwrap();
        server.closed().await.unwrap();
        // Both handles exist, and the client's end is in TIMEWAIT for four minutes.
        client.endpoint().wait_idle().await;
        server.endpoint().wait_idle().await;
    });
}

#[test]
fn timed_out_close_reports_the_unsent_messages() {
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
fn garbage_is_counted_and_ignored() {
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

/// Calls that do not wait fail too, after everything that arrived was read. Here nothing closes the
/// connections, which would hide it.
#[test]
fn the_end_of_the_runtime_fails_calls_that_do_not_wait() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = blocking::Listener::bind(localhost(false), SERVICE).unwrap();
    let client = runtime.block_on(async {
        let stays = EndpointOptions::new().close_at_exit(false);
        let endpoint = Endpoint::bind_with(localhost(false), &stays).unwrap();
        let peer = listener.local_addr();
        let client = endpoint.connect(peer, SERVICE, &Options::default()).await.unwrap();
        client.send("hello").await.unwrap();
        client
    });
    let server = listener.accept().unwrap();
    server.send("early").unwrap();
    runtime.block_on(client.readable()).unwrap();
    drop(runtime);
    let is_io = |e: &Error| matches!(e, Error::Io { .. });
    let has_ended = |e| matches!(e, TryRecvError::Ended(e) if is_io(&e));
    assert_eq!(client.try_recv().expect("it had arrived"), "early");
    assert!(has_ended(client.try_recv().unwrap_err()));
    assert!(has_ended(client.try_recv_with_meta().unwrap_err()));
    assert!(has_ended(client.try_recv_batch(3).unwrap_err()));
    assert!(has_ended(client.try_recv_into(&mut [0; 9]).unwrap_err()));
    assert!(has_ended(client.try_peek().unwrap_err()));
    let sent = client.try_send("late");
    assert!(matches!(&sent, Err(TrySendError::Failed(e)) if is_io(e)), "{sent:?}");
    run(async {
        let all = [client.send("late").await, client.send_batch(["late", "later"]).await];
        assert!(all.iter().all(|sent| sent.as_ref().is_err_and(is_io)), "{all:?}");
    });
}

#[test]
fn a_runtime_that_ends_before_it_ran_ends_every_wait_too() {
    let listener = blocking::Listener::bind(localhost(false), SERVICE).unwrap();
    let peer = listener.local_addr();
    for ends_first in [false, true] {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let endpoint = {
            let _inside = runtime.enter();
            Endpoint::bind(localhost(false)).unwrap()
        };
        let runtime = (!ends_first).then_some(runtime);
        let mut connecting = endpoint.start_connect(peer, SERVICE, &Options::default()).unwrap();
        drop(runtime);
        let e = blocking::wait(PATIENCE, |cx| connecting.poll_connect(cx)).unwrap_err();
        assert!(matches!(e, Error::Io { .. }), "{e}");
    }
}

#[test]
fn binding_without_a_runtime_is_an_error() {
    let e = Endpoint::bind(localhost(false)).unwrap_err();
    assert!(e.to_string().contains("runtime"), "{e}");
}
