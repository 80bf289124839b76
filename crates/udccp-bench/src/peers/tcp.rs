//! Runs the loads on the kernel's TCP.

use std::io::{Read, Write};
use std::iter::repeat_n;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::Result;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::Mutex;

use super::{pace, runtime};
use crate::meter::{Measured, Meter};
use crate::network::Network;
use crate::turn::{BULK_BYTES, HANDSHAKES_AT_ONCE, PING_BYTES, QUESTIONS_AT_ONCE, Turn};

/// Bytes per call: about as many as fit into one packet of the network stack.
const BLOCK: usize = 64 * 1024;

/// Sends a byte stream, counted in messages of 1,200 bytes.
pub(crate) fn bulk(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    let server = turn.network.serve(move || {
        let listener = TcpListener::bind(Network::server_addr())?;
        tx.send(listener.local_addr()?)?;
        let (mut stream, _) = listener.accept()?;
        let (mut buffer, mut arrived) = (vec![0; BLOCK], 0_u64);
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(arrived),
                n => arrived += n as u64,
            }
        }
    })?;
    let mut stream = TcpStream::connect(rx.recv()?)?;
    let block = vec![7; BLOCK];
    let meter = Meter::start();
    let end = meter.after(turn.seconds);
    while Instant::now() < end {
        stream.write_all(&block)?;
    }
    drop(stream);
    let messages = server.join()? / BULK_BYTES as u64;
    Ok(meter.stop(messages, messages))
}

/// Starts a tokio server that handles each connection as long as the process lives. Returns its
/// address.
fn serve<F>(
    turn: &Turn,
    with: impl Fn(tokio::net::TcpStream) -> F + Send + 'static,
) -> Result<SocketAddr>
where
    F: Future<Output = Result<()>> + Send + 'static,
{
    let (tx, rx) = channel();
    turn.network.serve::<()>(move || {
        runtime()?.block_on(async {
            let listener = tokio::net::TcpListener::bind(Network::server_addr()).await?;
            tx.send(listener.local_addr()?)?;
            loop {
                let (stream, _) = listener.accept().await?;
                tokio::spawn(with(stream));
            }
        })
    })?;
    Ok(rx.recv()?)
}

/// Measures round trips in tokio on many connections at once.
pub(crate) fn questions(turn: &Turn) -> Result<Measured> {
    let peer = serve(turn, |mut stream| async move {
        stream.set_nodelay(true)?;
        let mut message = [0; PING_BYTES];
        while stream.read_exact(&mut message).await.is_ok() {
            stream.write_all(&message).await?;
        }
        Ok(())
    })?;
    runtime()?.block_on(async {
        let mut streams = Vec::new();
        for _ in 0..QUESTIONS_AT_ONCE {
            let stream = tokio::net::TcpStream::connect(peer).await?;
            stream.set_nodelay(true)?;
            streams.push(Rc::new(Mutex::new(stream)));
        }
        let works = streams.into_iter().map(|stream| {
            move || {
                let stream = Rc::clone(&stream);
                async move {
                    let (mut stream, mut message) = (stream.lock().await, [7; PING_BYTES]);
                    stream.write_all(&message).await?;
                    stream.read_exact(&mut message).await?;
                    Ok(())
                }
            }
        });
        let meter = Meter::start();
        let count = pace::at_once(works, meter.after(turn.seconds)).await?;
        Ok(meter.stop(count, count))
    })
}

/// Measures accepting and closing of connections in tokio.
pub(crate) fn handshakes(turn: &Turn) -> Result<Measured> {
    let peer = serve(turn, |stream| {
        drop(stream);
        std::future::ready(Ok(()))
    })?;
    runtime()?.block_on(async {
        let meter = Meter::start();
        let handshake = move || async move {
            let mut stream = tokio::net::TcpStream::connect(peer).await?;
            // Only waits for the end: the server closes first, so no port of the client stays in
            // TIMEWAIT.
            stream.read_to_end(&mut Vec::new()).await?;
            Ok(())
        };
        let works = repeat_n(handshake, HANDSHAKES_AT_ONCE);
        let count = pace::at_once(works, meter.after(turn.seconds)).await?;
        Ok(meter.stop(count, count))
    })
}
