//! A UDP port is free again as soon as its socket was dropped, as with other sockets.

#![cfg(target_os = "linux")]

mod common;

use common::{SERVICE, listener, localhost, run};
use udccp::{Connection, EndpointOptions, Error, Listener, Options, blocking};

/// A restarted server serves new clients.
fn assert_serves(listener: &blocking::Listener) {
    let client = blocking::Connection::connect(listener.local_addr(), SERVICE).unwrap();
    let server = listener.accept().unwrap();
    client.send("hello").unwrap();
    assert_eq!(server.recv().unwrap().unwrap(), "hello");
    // The client closes, so TIMEWAIT is held by the client and not by the server.
    client.close().unwrap();
    server.closed(None).unwrap();
}

#[test]
fn blocking_server_can_restart_at_once() {
    for local in ["127.0.0.1:0", "[::1]:0", "[::]:0", "0.0.0.0:0"] {
        let mut at = local.parse().unwrap();
        for round in 0..50 {
            let listener = blocking::Listener::bind(at, SERVICE);
            let listener = listener.unwrap_or_else(|e| panic!("{at}, round {round}: {e}"));
            at.set_port(listener.local_addr().port());
            if round % 5 > 0 {
                assert_serves(&listener);
            }
        }
    }
}

#[test]
fn async_server_can_restart_at_once() {
    run(async {
        let mut at = localhost(false);
        for _ in 0..20 {
            // The old driver never runs between the drop and the next bind.
            let listener = Listener::bind(at, SERVICE).unwrap();
            at = listener.local_addr();
            let client = Connection::connect(at, SERVICE).await.unwrap();
            let server = listener.accept().await.unwrap();
            client.close().await.unwrap();
            server.closed().await.unwrap();
        }
    });
}

#[test]
fn reused_port_is_not_shared() {
    run(async {
        let at = listener(&Options::default()).local_addr();
        let _again = Listener::bind(at, SERVICE).unwrap();
        let sharing = EndpointOptions::new().reuse_port(true);
        let third = blocking::Endpoint::bind_with(at, &sharing);
        assert!(matches!(third, Err(Error::PortInUse { .. })), "{third:?}");
    });
}

#[test]
fn a_port_that_is_used_stays_taken() {
    run(async {
        let first = listener(&Options::default());
        let at = first.local_addr();
        let client = Connection::connect(at, SERVICE).await.unwrap();
        let server = first.accept().await.unwrap();
        drop(first);
        let again = || blocking::Endpoint::bind_with(at, &EndpointOptions::default());
        assert!(matches!(again(), Err(Error::PortInUse { .. })), "a connection uses it");
        client.close().await.unwrap();
        server.closed().await.unwrap();
        assert!(matches!(again(), Err(Error::PortInUse { .. })), "its handle is there");
        drop(server);
        again().unwrap();
    });
}
