//! Helpers for the tests of protected connections.

#![allow(dead_code, unreachable_pub, reason = "each test file uses its own part")]

use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use udccp::{Connection, Listener, Options, ServiceCode};
use udccp_dtls::{DtlsConnection, DtlsOptions, Error, Identity};
use udccp_testkit::{Relay, Rule};

/// The service code of the tests.
pub const SERVICE: ServiceCode = ServiceCode(0x7465_7374);

/// Runs a test with a time limit, so that a hang fails.
pub fn run<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        tokio::time::timeout(Duration::from_secs(300), test).await.expect("the test hangs")
    })
}

pub fn localhost() -> SocketAddr {
    "127.0.0.1:0".parse().unwrap()
}

/// Two ends of a DCCP connection: client, server.
pub async fn dccp(options: &Options) -> (Connection, Connection) {
    let listener = Listener::bind_with(localhost(), [SERVICE], options).unwrap();
    let (connected, accepted) = tokio::join!(
        Connection::connect_with(listener.local_addr(), SERVICE, options),
        listener.accept()
    );
    (connected.unwrap(), accepted.unwrap())
}

/// The same with a relay between them that applies `rule` to each packet.
pub async fn dccp_over(options: &Options, rule: impl Rule) -> (Connection, Connection, Relay) {
    let listener = Listener::bind_with(localhost(), [SERVICE], options).unwrap();
    let server = listener.local_addr();
    let relay = Relay::start(server, rule).await;
    let address = format!("127.0.0.1:{}/{}", server.port(), relay.port);
    let address: udccp::Address = address.parse().unwrap();
    let (connected, accepted) =
        tokio::join!(Connection::connect_with(address, SERVICE, options), listener.accept());
    (connected.unwrap(), accepted.unwrap(), relay)
}

/// Runs both sides of the DTLS handshake at once.
pub async fn handshake(
    (client, server): (Connection, Connection),
    client_options: &DtlsOptions,
    server_options: &DtlsOptions,
) -> (Result<DtlsConnection, Error>, Result<DtlsConnection, Error>) {
    tokio::join!(
        DtlsConnection::client(client, client_options),
        DtlsConnection::server(server, server_options)
    )
}

/// A connected client and server; the client has pinned the server's certificate.
pub async fn pair() -> (DtlsConnection, DtlsConnection) {
    pinned(dccp(&Options::default()).await).await
}

/// The same with a relay between them that applies `rule` to each packet.
pub async fn pair_over(
    options: &Options,
    rule: impl Rule,
) -> (DtlsConnection, DtlsConnection, Relay) {
    let (a, b, relay) = dccp_over(options, rule).await;
    let (client, server) = pinned((a, b)).await;
    (client, server, relay)
}

async fn pinned(ends: (Connection, Connection)) -> (DtlsConnection, DtlsConnection) {
    let identity = Identity::self_signed("server.example").unwrap();
    let client = DtlsOptions::new().pin(identity.fingerprint());
    let server = DtlsOptions::new().identity(identity);
    let (client, server) = handshake(ends, &client, &server).await;
    (client.unwrap(), server.unwrap())
}

/// Sends a message in each direction.
pub async fn echo(client: &DtlsConnection, server: &DtlsConnection) {
    client.send("ping").await.unwrap();
    assert_eq!(server.recv().await.unwrap().as_deref(), Some(&b"ping"[..]));
    server.send("pong").await.unwrap();
    assert_eq!(client.recv().await.unwrap().as_deref(), Some(&b"pong"[..]));
}

/// A message of at least four bytes that begins with its number.
pub fn numbered(n: u32, len: usize) -> Vec<u8> {
    let mut message = n.to_be_bytes().to_vec();
    message.resize(len.max(4), n as u8);
    message
}
