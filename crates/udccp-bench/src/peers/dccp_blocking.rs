//! Runs the loads on the blocking sockets.

use std::sync::mpsc::channel;
use std::time::Instant;

use anyhow::{Context, Result};
use bytes::Bytes;
use udccp::blocking::{Connection, Listener};

use super::dccp::{SERVICE, chunk, messages, options};
use super::{Peer, pace};
use crate::meter::{Measured, Meter};
use crate::network::Network;
use crate::turn::{BULK_BATCH, PING_BYTES, Turn};

/// Sends batches of messages until the time is over.
pub(crate) fn bulk(turn: &Turn) -> Result<Measured> {
    let options = options(Peer::UdccpBlocking);
    let (tx, rx) = channel();
    let theirs = options.clone();
    let server = turn.network.serve(move || {
        let listener = Listener::bind_with(Network::server_addr(), [SERVICE], &theirs)?;
        tx.send(listener.local_addr())?;
        let connection = listener.accept()?;
        let (mut batch, mut arrived) = (Vec::with_capacity(1024), 0);
        while connection.recv_batch(&mut batch, 1024)? > 0 {
            arrived += batch.len() as u64;
            batch.clear();
        }
        Ok(arrived)
    })?;
    let connection = Connection::connect_with(rx.recv()?, SERVICE, &options, None)?;
    let chunk = chunk();
    let meter = Meter::start();
    let end = meter.after(turn.seconds);
    let mut sent = 0;
    while Instant::now() < end {
        connection.send_batch(messages(&chunk))?;
        sent += BULK_BATCH as u64;
    }
    connection.acknowledged(None)?;
    connection.close()?;
    let arrived = server.join()?;
    Ok(meter.stop(sent, arrived))
}

/// Measures round trips.
pub(crate) fn ping(turn: &Turn) -> Result<Measured> {
    let (tx, rx) = channel();
    turn.network.serve::<()>(move || {
        let listener = Listener::bind(Network::server_addr(), SERVICE)?;
        tx.send(listener.local_addr())?;
        let connection = listener.accept()?;
        while let Some(message) = connection.recv()? {
            connection.send(message)?;
        }
        Ok(())
    })?;
    let connection = Connection::connect(rx.recv()?, SERVICE)?;
    let message = Bytes::from_static(&[7; PING_BYTES]);
    let meter = Meter::start();
    let times = pace::round_trips_blocking(meter.after(turn.seconds), || {
        connection.send(message.clone())?;
        connection.recv()?.context("the server closed")?;
        Ok(())
    })?;
    let count = times.len() as u64;
    Ok(meter.stop(count, count).with_round_trips(times))
}
