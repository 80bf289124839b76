//! RFC 6773 over real sockets: UDP ports, ECN, and STUN on the same port as DCCP.

mod common;

use std::net::UdpSocket;
use std::time::Duration;

use common::{SERVICE, listener, localhost, run};
use udccp::{Address, Connection, Endpoint, Error, Options, blocking};

fn binding_request(fill: u8) -> Vec<u8> {
    let mut message = vec![0, 1, 0, 8, 0x21, 0x12, 0xa4, 0x42];
    message.extend_from_slice(&[fill; 12 + 8]);
    message
}

//= 6773-3.8-1 test
//= 6773-3.8-3 test
#[test]
fn each_connection_has_a_udp_port_of_its_own_and_a_server_may_take_any() {
    run(async {
        let options = Options::default();
        let listener = listener(&options);
        let at = listener.local_addr();
        assert!(at.port() >= 1024 && at.port() != 6511, "an ephemeral port: {at}");
        let peer = Address { udp: at, port: listener.port() };
        let (a, b) = (Connection::connect(peer, SERVICE), Connection::connect(peer, SERVICE));
        let (a, b) = (a.await.unwrap(), b.await.unwrap());
        assert_ne!(a.local_addr().udp.port(), b.local_addr().udp.port());
    });
}

/// Two connections over one pair of UDP ports.
#[test]
fn an_endpoint_multiplexes_connections_over_one_pair_of_udp_ports() {
    run(async {
        let options = Options::default();
        let listener = listener(&options);
        let peer = Address { udp: listener.local_addr(), port: listener.port() };
        let client = Endpoint::bind(localhost(false)).unwrap();
        let first = client.connect(peer, SERVICE, &options).await.unwrap();
        let second = client.connect(peer, SERVICE, &options).await.unwrap();
        assert_eq!(first.local_addr().udp, second.local_addr().udp);
        assert_ne!(first.local_addr().port, second.local_addr().port);
        first.send("rtp").await.unwrap();
        second.send("rtcp").await.unwrap();
        for expected in ["rtp", "rtcp"] {
            let connection = listener.accept().await.unwrap();
            assert_eq!(connection.recv().await.unwrap().as_deref(), Some(expected.as_bytes()));
        }
    });
}

#[test]
fn stun_messages_go_to_the_application_and_dccp_does_not_notice() {
    run(async {
        let endpoint = Endpoint::bind(localhost(false)).unwrap();
        let options = Options::default();
        let listener = endpoint.listen(5001, vec![SERVICE], &options).unwrap();
        let other = UdpSocket::bind("127.0.0.1:0").unwrap();
        other.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        other.send_to(&binding_request(1), endpoint.local_addr()).unwrap();
        let (message, from) = endpoint.recv_stun().await.unwrap();
        assert_eq!((&message[..], from), (&binding_request(1)[..], other.local_addr().unwrap()));
        endpoint.send_stun(&binding_request(2), from).unwrap();
        let mut buffer = [0; 100];
        let (len, source) = other.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..len], source), (&binding_request(2)[..], endpoint.local_addr()));
        assert!(matches!(endpoint.send_stun(b"no STUN", from), Err(Error::Io { .. })));
        // DCCP from a port whose first byte could be STUN's, on the same socket.
        let peer = Address { udp: endpoint.local_addr(), port: 5001 };
        let client = Endpoint::bind(localhost(false)).unwrap();
        let low = Options::default().local_port(1);
        let connected = client.connect(peer, SERVICE, &low).await.unwrap();
        let accepted = listener.accept().await.unwrap();
        connected.send("data").await.unwrap();
        assert_eq!(accepted.recv().await.unwrap().as_deref(), Some(&b"data"[..]));
        assert_eq!(endpoint.stats().malformed, 0);
    });
}

#[test]
fn the_newest_stun_messages_are_kept_and_blocking_sockets_read_them() {
    let endpoint = blocking::Endpoint::bind(localhost(false)).unwrap();
    let limit = Some(Duration::from_millis(10));
    assert!(matches!(endpoint.recv_stun(limit), Err(Error::TimedOut)));
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    for n in 0..100 {
        other.send_to(&binding_request(n), endpoint.local_addr()).unwrap();
    }
    let mut seen = Vec::new();
    while seen.last() != Some(&99) {
        let (message, _) = endpoint.recv_stun(Some(Duration::from_secs(60))).unwrap();
        seen.push(message[8]);
    }
    assert!(seen.len() >= 64 && seen.ends_with(&[98, 99]), "{seen:?}");
    endpoint.send_stun(&binding_request(0), other.local_addr().unwrap()).unwrap();
}
