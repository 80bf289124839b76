//! Listeners of one endpoint for different local addresses.

#![cfg(target_os = "linux")]

mod common;

use std::net::{IpAddr, SocketAddr};

use common::{SERVICE, run};
use udccp::{Address, Connection, Endpoint, Error, Listener, Options};

const PORT: u16 = 5004;

fn endpoint() -> Endpoint {
    Endpoint::bind("[::]:0".parse().unwrap()).unwrap()
}

fn listen(endpoint: &Endpoint, ip: &str) -> Result<Listener, Error> {
    let ip: IpAddr = ip.parse().unwrap();
    endpoint.listen(PORT, [SERVICE], &Options::default().local_ip(ip))
}

async fn connect(endpoint: &Endpoint, ip: &str) -> Result<Connection, Error> {
    let udp = SocketAddr::new(ip.parse().unwrap(), endpoint.local_addr().port());
    Connection::connect(Address { udp, port: PORT }, SERVICE).await
}

/// Each listener gets only the client that connects to its address.
async fn each_gets_its_own(endpoint: &Endpoint, listeners: &[(&str, Listener)]) {
    for (ip, listener) in listeners {
        let client = connect(endpoint, ip).await.unwrap();
        let server = listener.accept().await.unwrap();
        assert_eq!(server.peer_addr().port, client.local_addr().port);
        for (_, other) in listeners {
            assert!(other.try_accept().unwrap().is_none());
        }
    }
}

#[test]
fn two_addresses_have_a_port_each() {
    run(async {
        let endpoint = endpoint();
        let listeners =
            ["127.0.0.1", "127.0.0.2", "::1"].map(|ip| (ip, listen(&endpoint, ip).unwrap()));
        each_gets_its_own(&endpoint, &listeners).await;
        let e = connect(&endpoint, "127.0.0.3").await.unwrap_err();
        assert!(matches!(e, Error::Refused { .. }), "{e}");
        let e = listen(&endpoint, "127.0.0.2").unwrap_err();
        assert!(matches!(e, Error::ServiceInUse { .. }), "{e}");
    });
}

#[test]
fn all_addresses_of_one_ip_version_are_not_those_of_the_other() {
    run(async {
        let endpoint = endpoint();
        let four = listen(&endpoint, "0.0.0.0").unwrap();
        let e = connect(&endpoint, "::1").await.unwrap_err();
        assert!(matches!(e, Error::Refused { .. }), "{e}");
        let six = listen(&endpoint, "::").unwrap();
        each_gets_its_own(&endpoint, &[("127.0.0.7", four), ("::1", six)]).await;
    });
}

#[test]
fn all_addresses_and_one_of_them_do_not_serve_the_same() {
    run(async {
        for (one, other) in [("0.0.0.0", "127.0.0.1"), ("127.0.0.1", "0.0.0.0"), ("::", "::1")] {
            let endpoint = endpoint();
            let _listener = listen(&endpoint, one).unwrap();
            let e = listen(&endpoint, other).unwrap_err();
            assert!(matches!(e, Error::ServiceInUse { .. }), "{e}");
        }
    });
}
