//! Runs the loads on the async sockets.

use std::cell::{Cell, RefCell};
use std::iter::repeat_n;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::{Context, Result};
use bytes::{Bytes, BytesMut};
use udccp::{Ccid2Options, Connection, Endpoint, Listener, Options, ServiceCode};
use udccp_cc::{Algorithm, BbrConfig, CubicConfig};

use super::{Peer, pace, runtime};
use crate::meter::{Heap, Measured, Meter};
use crate::network::Network;
use crate::turn::{
    BULK_BATCH, BULK_BYTES, HANDSHAKES_AT_ONCE, MANY_BYTES, PING_BYTES, QUESTIONS_AT_ONCE, SETTLE,
    Turn,
};

/// The service code of all benchmarks.
pub(crate) const SERVICE: ServiceCode = ServiceCode(0x6265_6e63);

/// Connection options: queues large enough for bulk, and the peer's CCID.
pub(crate) fn options(peer: Peer) -> Options {
    let options = Options::default().send_queue(2 << 20, 2048).recv_queue(4 << 20, 4096);
    let with = |algorithm| Ccid2Options::default().algorithm(algorithm);
    match peer {
        Peer::UdccpCcid3 => options.ccid(3),
        Peer::UdccpCubic => options.ccid2(with(Algorithm::Cubic(CubicConfig::default()))),
        Peer::UdccpBbr => options.ccid2(with(Algorithm::Bbr(BbrConfig::default()))),
        _ => options,
    }
}

/// A batch of messages that share one chunk, without a copy.
pub(crate) fn messages(chunk: &Bytes) -> impl Iterator<Item = Bytes> {
    (0..BULK_BATCH).map(|n| chunk.slice(n * BULK_BYTES..(n + 1) * BULK_BYTES))
}

/// The chunk for [`messages`].
pub(crate) fn chunk() -> Bytes {
    BytesMut::zeroed(BULK_BYTES * BULK_BATCH).freeze()
}

/// Sends batches of messages until the time is over.
pub(crate) fn bulk(turn: &Turn, peer: Peer) -> Result<Measured> {
    let (tx, rx) = channel();
    let server = turn.network.serve(move || {
        runtime()?.block_on(async {
            let listener = Listener::bind_with(Network::server_addr(), [SERVICE], &options(peer))?;
            tx.send(listener.local_addr())?;
            let connection = listener.accept().await?;
            let (mut batch, mut arrived) = (Vec::with_capacity(1024), 0);
            while connection.recv_batch(&mut batch, 1024).await? > 0 {
                arrived += batch.len() as u64;
                batch.clear();
            }
            Ok(arrived)
        })
    })?;
    let address = rx.recv()?;
    let (meter, sent) = runtime()?.block_on(async {
        let connection = Connection::connect_with(address, SERVICE, &options(peer)).await?;
        let chunk = chunk();
        let meter = Meter::start();
        let end = meter.after(turn.seconds);
        let mut sent = 0;
        while Instant::now() < end {
            connection.send_batch(messages(&chunk)).await?;
            sent += BULK_BATCH as u64;
        }
        connection.acknowledged().await?;
        connection.close().await?;
        anyhow::Ok((meter, sent))
    })?;
    let arrived = server.join()?;
    Ok(meter.stop(sent, arrived))
}

/// Sends every message back.
async fn answer(connection: Connection) -> Result<()> {
    while let Some(message) = connection.recv().await? {
        connection.send(message).await?;
    }
    Ok(())
}

/// Performs one round trip.
async fn ask(connection: &Connection) -> Result<()> {
    connection.send(Bytes::from_static(&[7; PING_BYTES])).await?;
    connection.recv().await?.context("the server closed")?;
    Ok(())
}

/// Measures round trips.
pub(crate) fn ping(turn: &Turn) -> Result<Measured> {
    let address = serve_many(turn, answer)?;
    runtime()?.block_on(async {
        let connection = Connection::connect(address, SERVICE).await?;
        let meter = Meter::start();
        let times = pace::round_trips(meter.after(turn.seconds), || ask(&connection)).await?;
        let count = times.len() as u64;
        Ok(meter.stop(count, count).with_round_trips(times))
    })
}

/// Measures round trips on many connections at once.
pub(crate) fn questions(turn: &Turn) -> Result<Measured> {
    let address = serve_many(turn, answer)?;
    runtime()?.block_on(async {
        let client = Endpoint::bind(Network::client_addr())?;
        let connections = connect(&client, address, QUESTIONS_AT_ONCE).await?;
        let works = connections.into_iter().map(Rc::new).map(|connection| {
            move || {
                let connection = Rc::clone(&connection);
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
    let address = serve_many(turn, |connection| async move { Ok(connection.closed().await?) })?;
    runtime()?.block_on(async {
        let ports = Rc::new(Ports { client: RefCell::default(), used: Cell::new(0) });
        let meter = Meter::start();
        let end = meter.after(turn.seconds);
        let handshake = move || {
            let ports = ports.clone();
            async move {
                let client = ports.client()?;
                let connection = client.connect(address, SERVICE, &Options::default()).await?;
                Ok(connection.close().await?)
            }
        };
        let count = pace::at_once(repeat_n(handshake, HANDSHAKES_AT_ONCE), end).await?;
        Ok(meter.stop(count, count))
    })
}

/// A client endpoint, replaced before its ephemeral ports are used up: those of closed connections
/// stay in TIMEWAIT.
struct Ports {
    client: RefCell<Option<Endpoint>>,
    used: Cell<u32>,
}

impl Ports {
    fn client(&self) -> Result<Endpoint> {
        let mut client = self.client.borrow_mut();
        if self.used.replace(self.used.get() + 1).is_multiple_of(10_000) {
            *client = None;
        }
        match &*client {
            Some(client) => Ok(client.clone()),
            None => Ok(client.insert(Endpoint::bind(Network::client_addr())?).clone()),
        }
    }
}

/// Sends few messages on each of many connections.
pub(crate) fn many(turn: &Turn) -> Result<Measured> {
    let arrived = Arc::new(AtomicU64::new(0));
    let counter = arrived.clone();
    let address = serve_many(turn, move |connection| {
        let counter = counter.clone();
        async move {
            while connection.recv().await?.is_some() {
                counter.fetch_add(1, Relaxed);
            }
            Ok(())
        }
    })?;
    runtime()?.block_on(async {
        let client = Endpoint::bind(Network::client_addr())?;
        let connections = connect(&client, address, turn.connections).await?;
        let message = Bytes::from_static(&[7; MANY_BYTES]);
        let meter = Meter::start();
        let mut sent = 0;
        pace::by_the_clock(turn.connections, turn.seconds, |n| {
            // If congestion control does not allow a message now, that connection is skipped.
            sent += u64::from(connections[n].try_send(message.clone()).is_ok());
        })
        .await;
        tokio::time::sleep(SETTLE).await;
        Ok(meter.stop(sent, arrived.load(Relaxed)))
    })
}

/// Measures the heap of one end of an idle connection.
pub(crate) fn idle(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    // Without a task per connection, which would count as the connection's heap.
    let expected = 2 * turn.connections;
    turn.network.serve::<()>(move || {
        runtime()?.block_on(async {
            let listener = Listener::bind(Network::server_addr(), SERVICE)?;
            tx.send(listener.local_addr())?;
            let mut held = Vec::with_capacity(expected);
            loop {
                held.push(listener.accept().await?);
            }
        })
    })?;
    let address = rx.recv()?;
    runtime()?.block_on(async {
        let client = Endpoint::bind(Network::client_addr())?;
        // Open as many before: then both sockets have their buffers, which do not belong to a
        // connection.
        let first = connect(&client, address, turn.connections).await?;
        let before = Heap::now();
        let held = connect(&client, address, turn.connections).await?;
        tokio::time::sleep(SETTLE).await;
        let heap = before.since(2 * turn.connections);
        drop((first, held));
        Ok(Measured { heap: Some(heap), ..Measured::default() })
    })
}

async fn connect(client: &Endpoint, to: SocketAddr, n: usize) -> Result<Vec<Connection>> {
    let mut all = Vec::with_capacity(n);
    for _ in 0..n {
        all.push(client.connect(to, SERVICE, &Options::default()).await?);
    }
    Ok(all)
}

/// Starts a server that handles each connection with `with` as long as the process lives. Returns
/// its address.
fn serve_many<F>(turn: &Turn, with: impl Fn(Connection) -> F + Send + 'static) -> Result<SocketAddr>
where
    F: Future<Output = Result<()>> + 'static,
{
    let (tx, rx) = channel();
    turn.network.serve::<()>(move || {
        runtime()?.block_on(async {
            let listener = Listener::bind(Network::server_addr(), SERVICE)?;
            tx.send(listener.local_addr())?;
            let serving = async {
                loop {
                    tokio::task::spawn_local(with(listener.accept().await?));
                }
            };
            tokio::task::LocalSet::new().run_until(serving).await
        })
    })?;
    Ok(rx.recv()?)
}
