//! Runs the loads on plain UDP sockets.

use std::net::UdpSocket;
use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::Result;

use super::{pace, runtime};
use crate::meter::{Measured, Meter};
use crate::network::Network;
use crate::turn::{BULK_BYTES, PING_BYTES, Turn};

/// Datagrams per acknowledgement.
const BATCH: u64 = 32;
/// Most batches in flight.
const WINDOW: u64 = 1;
/// A datagram that ends the transfer.
const END: [u8; 1] = [0];

/// Sends datagrams with one call each, acknowledged in batches so that none is lost.
pub(crate) fn bulk(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    let server = turn.network.serve(move || {
        let socket = UdpSocket::bind(Network::server_addr())?;
        tx.send(socket.local_addr()?)?;
        let (mut buffer, mut arrived) = ([0; BULK_BYTES], 0);
        loop {
            let (bytes, peer) = socket.recv_from(&mut buffer)?;
            if bytes == END.len() {
                return Ok(arrived);
            }
            arrived += 1;
            if arrived % BATCH == 0 {
                socket.send_to(&[0; 8], peer)?;
            }
        }
    })?;
    let socket = UdpSocket::bind(Network::client_addr())?;
    socket.connect(rx.recv()?)?;
    let (message, mut ack) = ([7; BULK_BYTES], [0; 8]);
    let (mut sent, mut batches) = (0, 0);
    let meter = Meter::start();
    let end = meter.after(turn.seconds);
    while Instant::now() < end {
        for _ in 0..BATCH {
            socket.send(&message)?;
        }
        sent += BATCH;
        if sent / BATCH > batches + WINDOW {
            socket.recv(&mut ack)?;
            batches += 1;
        }
    }
    socket.send(&END)?;
    let arrived = server.join()?;
    Ok(meter.stop(sent, arrived))
}

/// Measures round trips of blocking sockets.
pub(crate) fn ping(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    turn.network.serve::<()>(move || {
        let socket = UdpSocket::bind(Network::server_addr())?;
        tx.send(socket.local_addr()?)?;
        let mut buffer = [0; PING_BYTES];
        loop {
            let (bytes, peer) = socket.recv_from(&mut buffer)?;
            socket.send_to(&buffer[..bytes], peer)?;
        }
    })?;
    let socket = UdpSocket::bind(Network::client_addr())?;
    socket.connect(rx.recv()?)?;
    let (message, mut buffer) = ([7; PING_BYTES], [0; PING_BYTES]);
    let meter = Meter::start();
    let times = pace::round_trips_blocking(meter.after(turn.seconds), || {
        socket.send(&message)?;
        socket.recv(&mut buffer)?;
        Ok(())
    })?;
    let count = times.len() as u64;
    Ok(meter.stop(count, count).with_round_trips(times))
}

/// Measures round trips of tokio's sockets.
pub(crate) fn ping_tokio(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    turn.network.serve::<()>(move || {
        runtime()?.block_on(async {
            let socket = tokio::net::UdpSocket::bind(Network::server_addr()).await?;
            tx.send(socket.local_addr()?)?;
            let mut buffer = [0; PING_BYTES];
            loop {
                let (bytes, peer) = socket.recv_from(&mut buffer).await?;
                socket.send_to(&buffer[..bytes], peer).await?;
            }
        })
    })?;
    let peer = rx.recv()?;
    runtime()?.block_on(async {
        let socket = tokio::net::UdpSocket::bind(Network::client_addr()).await?;
        socket.connect(peer).await?;
        let meter = Meter::start();
        let times = pace::round_trips(meter.after(turn.seconds), || async {
            socket.send(&[7; PING_BYTES]).await?;
            socket.recv(&mut [0; PING_BYTES]).await?;
            Ok(())
        })
        .await?;
        let count = times.len() as u64;
        Ok(meter.stop(count, count).with_round_trips(times))
    })
}
