//! Puts the loads on the kernel's TCP.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::Result;
use tokio::io::AsyncReadExt as _;

use super::{pace, runtime};
use crate::meter::{Measured, Meter};
use crate::network::Network;
use crate::work::{BULK_BYTES, HANDSHAKES_AT_ONCE, Turn};

/// Bytes of one call, about as many as go into one packet of the stack.
const BLOCK: usize = 64 * 1024;

/// A stream, counted in messages of 1,200 bytes.
pub(crate) fn bulk(turn: &Turn) -> Result<Measured> {
    let (tell, heard) = channel();
    let server = turn.network.serve(move || {
        let listener = TcpListener::bind(Network::server_addr())?;
        tell.send(listener.local_addr()?)?;
        let (mut stream, _) = listener.accept()?;
        let (mut buffer, mut arrived) = (vec![0; BLOCK], 0_u64);
        loop {
            match stream.read(&mut buffer)? {
                0 => return Ok(arrived),
                n => arrived += n as u64,
            }
        }
    })?;
    let mut stream = TcpStream::connect(heard.recv()?)?;
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

/// Connections in tokio that are accepted and closed.
pub(crate) fn handshakes(turn: &Turn) -> Result<Measured> {
    let (tell, heard) = channel();
    turn.network.serve::<()>(move || {
        runtime()?.block_on(async {
            let listener = tokio::net::TcpListener::bind(Network::server_addr()).await?;
            tell.send(listener.local_addr()?)?;
            loop {
                drop(listener.accept().await?);
            }
        })
    })?;
    let peer = heard.recv()?;
    runtime()?.block_on(async {
        let meter = Meter::start();
        let count =
            pace::at_once(HANDSHAKES_AT_ONCE, meter.after(turn.seconds), move || async move {
                let mut stream = tokio::net::TcpStream::connect(peer).await?;
                // Nothing but the end: the server closes first, and no port stays in TIMEWAIT here.
                stream.read_to_end(&mut Vec::new()).await?;
                Ok(())
            })
            .await?;
        Ok(meter.stop(count, count))
    })
}
