//! Runs the loads on datagrams of quinn. QUIC requires TLS, which is a small part of a datagram's
//! cost.

use std::iter::repeat_n;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Result;
use bytes::Bytes;
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use quinn::{ClientConfig, Connection, Endpoint, ServerConfig, TransportConfig, VarInt};

use super::dccp::{chunk, messages};
use super::{pace, runtime};
use crate::meter::{Heap, Measured, Meter};
use crate::network::Network;
use crate::turn::{HANDSHAKES_AT_ONCE, MANY_BYTES, PING_BYTES, QUESTIONS_AT_ONCE, SETTLE, Turn};

const NAME: &str = "server.test";

/// Buffers large enough for bulk, and a long idle timeout while connections are opened.
fn transport() -> Arc<TransportConfig> {
    let mut config = TransportConfig::default();
    config.datagram_receive_buffer_size(Some(4 << 20)).datagram_send_buffer_size(2 << 20);
    // Bulk messages fit from the start, and continue to fit: quinn takes consecutive losses as a
    // sign of a smaller path MTU, and would reduce packets to 1,200 bytes including headers.
    config.initial_mtu(1400).min_mtu(1400);
    config.max_idle_timeout(Some(VarInt::from_u32(60_000).into()));
    Arc::new(config)
}

/// Starts a server that handles each connection as long as the process lives. Returns its address,
/// and the configuration of a client that trusts it.
fn serve<F>(
    turn: &Turn,
    with: impl Fn(Connection) -> F + Clone + Send + 'static,
) -> Result<(SocketAddr, ClientConfig)>
where
    F: Future<Output = ()> + 'static,
{
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate: CertificateDer<'static> = made.cert.into();
    let key =
        PrivateKeyDer::try_from(made.signing_key.serialize_der()).map_err(anyhow::Error::msg)?;
    let mut server = ServerConfig::with_single_cert(vec![certificate.clone()], key)?;
    server.transport_config(transport());
    let mut roots = RootCertStore::empty();
    roots.add(certificate)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots))?;
    client.transport_config(transport());

    let (tx, rx) = channel();
    turn.network.serve::<()>(move || {
        runtime()?.block_on(async {
            let endpoint = Endpoint::server(server, Network::server_addr())?;
            tx.send(endpoint.local_addr()?)?;
            let serving = async {
                while let Some(incoming) = endpoint.accept().await {
                    let (connecting, with) = (incoming.accept()?, with.clone());
                    tokio::task::spawn_local(async move {
                        if let Ok(connection) = connecting.await {
                            with(connection).await;
                        }
                    });
                }
                Ok(())
            };
            tokio::task::LocalSet::new().run_until(serving).await
        })
    })?;
    Ok((rx.recv()?, client))
}

fn endpoint(config: ClientConfig) -> Result<Endpoint> {
    let mut endpoint = Endpoint::client(Network::client_addr())?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Counts messages of a connection until it ends.
async fn count(connection: Connection, counter: Arc<AtomicU64>) {
    while connection.read_datagram().await.is_ok() {
        counter.fetch_add(1, Relaxed);
    }
}

/// Sends messages until the time is over.
pub(crate) fn bulk(turn: &Turn) -> Result<Measured> {
    let arrived = Arc::new(AtomicU64::new(0));
    let counter = arrived.clone();
    let (address, config) = serve(turn, move |c| count(c, counter.clone()))?;
    runtime()?.block_on(async {
        let connection = endpoint(config)?.connect(address, NAME)?.await?;
        let chunk = chunk();
        let meter = Meter::start();
        let end = meter.after(turn.seconds);
        let mut sent = 0;
        while Instant::now() < end {
            for message in messages(&chunk) {
                connection.send_datagram_wait(message).await?;
                sent += 1;
            }
        }
        tokio::time::sleep(SETTLE).await;
        Ok(meter.stop(sent, arrived.load(Relaxed)))
    })
}

/// Sends every message back.
async fn answer(connection: Connection) {
    while let Ok(message) = connection.read_datagram().await {
        if connection.send_datagram(message).is_err() {
            return;
        }
    }
}

/// Performs one round trip.
async fn ask(connection: &Connection) -> Result<()> {
    connection.send_datagram(Bytes::from_static(&[7; PING_BYTES]))?;
    connection.read_datagram().await?;
    Ok(())
}

/// Measures round trips.
pub(crate) fn ping(turn: &Turn) -> Result<Measured> {
    let (address, config) = serve(turn, answer)?;
    runtime()?.block_on(async {
        let connection = endpoint(config)?.connect(address, NAME)?.await?;
        let meter = Meter::start();
        let times = pace::round_trips(meter.after(turn.seconds), || ask(&connection)).await?;
        let count = times.len() as u64;
        Ok(meter.stop(count, count).with_round_trips(times))
    })
}

/// Measures round trips on many connections at once.
pub(crate) fn questions(turn: &Turn) -> Result<Measured> {
    let (address, config) = serve(turn, answer)?;
    runtime()?.block_on(async {
        let client = endpoint(config)?;
        let connections = connect(&client, address, QUESTIONS_AT_ONCE).await?;
        let works = connections.into_iter().map(|connection| {
            move || {
                let connection = connection.clone();
                async move { ask(&connection).await }
            }
        });
        let meter = Meter::start();
        let count = pace::at_once(works, meter.after(turn.seconds)).await?;
        Ok(meter.stop(count, count))
    })
}

/// Measures accepting and closing of connections.
pub(crate) fn handshakes(turn: &Turn) -> Result<Measured> {
    let (address, config) = serve(turn, |connection| async move {
        connection.closed().await;
    })?;
    runtime()?.block_on(async {
        let client = endpoint(config)?;
        let meter = Meter::start();
        let handshake = move || {
            let client = client.clone();
            async move {
                client.connect(address, NAME)?.await?.close(VarInt::from_u32(0), b"");
                Ok(())
            }
        };
        let works = repeat_n(handshake, HANDSHAKES_AT_ONCE);
        let count = pace::at_once(works, meter.after(turn.seconds)).await?;
        Ok(meter.stop(count, count))
    })
}

async fn connect(client: &Endpoint, to: SocketAddr, n: usize) -> Result<Vec<Connection>> {
    let mut all = Vec::with_capacity(n);
    for _ in 0..n {
        all.push(client.connect(to, NAME)?.await?);
    }
    Ok(all)
}

/// Sends few messages on each of many connections.
pub(crate) fn many(turn: &Turn) -> Result<Measured> {
    let arrived = Arc::new(AtomicU64::new(0));
    let counter = arrived.clone();
    let (address, config) = serve(turn, move |c| count(c, counter.clone()))?;
    runtime()?.block_on(async {
        let client = endpoint(config)?;
        let connections = connect(&client, address, turn.connections).await?;
        let message = Bytes::from_static(&[7; MANY_BYTES]);
        let meter = Meter::start();
        let mut sent = 0;
        pace::by_the_clock(turn.connections, turn.seconds, |n| {
            sent += u64::from(connections[n].send_datagram(message.clone()).is_ok());
        })
        .await;
        tokio::time::sleep(SETTLE).await;
        Ok(meter.stop(sent, arrived.load(Relaxed)))
    })
}

/// Measures the heap of one end of an idle connection.
pub(crate) fn idle(turn: &Turn) -> Result<Measured> {
    let held = Arc::new(Mutex::new(Vec::with_capacity(2 * turn.connections)));
    let (address, config) = serve(turn, move |connection| {
        let held = Arc::clone(&held);
        async move { held.lock().unwrap_or_else(PoisonError::into_inner).push(connection) }
    })?;
    runtime()?.block_on(async {
        let client = endpoint(config)?;
        let first = connect(&client, address, turn.connections).await?;
        let before = Heap::now();
        let held = connect(&client, address, turn.connections).await?;
        tokio::time::sleep(Duration::from_secs(1)).await;
        let heap = before.since(2 * turn.connections);
        drop((first, held));
        Ok(Measured { heap: Some(heap), ..Measured::default() })
    })
}
