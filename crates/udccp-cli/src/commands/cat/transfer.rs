//! Transfers in both directions: one thread reads standard input and sends; this one receives and
//! writes.

use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use udccp::Error;
use udccp::blocking::Connection;

use super::Role;
use super::input::{Framing, Messages};
use super::report::{Received, Report, Sent};
use crate::exit::{CliResult, Exit, Failure};
use crate::output;

/// Messages read from the connection at once.
const BATCH_MESSAGES: usize = 256;
/// Interval for repeating the end marker until the peer reacts: the message may be lost.
const END_INTERVAL: Duration = Duration::from_millis(250);
/// How long a server waits for the client to close when both directions are done.
const CLIENT_CLOSES_WITHIN: Duration = Duration::from_secs(2);
/// How long to wait until the last messages are accounted for.
const DRAIN_WITHIN: Duration = Duration::from_secs(10);
/// How long to wait for the sender to notice the end of the connection. A sender that waits for a
/// terminal never does.
const NOTICE_WITHIN: Duration = Duration::from_millis(500);

/// State shared by the two threads.
#[derive(Debug, Default)]
struct Progress {
    messages: AtomicU64,
    bytes: AtomicU64,
    /// Messages that the peer reported received, once all are accounted for.
    delivered: AtomicU64,
    accounted: AtomicBool,
    /// Whether the peer has sent its end marker.
    peer_is_done: AtomicBool,
    /// Whether standard input failed, so that the connection was reset.
    input_has_failed: AtomicBool,
}

/// Runs the transfer to its end.
pub(super) fn run(
    connection: &Connection,
    role: Role,
    framing: Framing,
    recv_only: bool,
) -> CliResult<Report> {
    let began = now();
    let progress = Arc::new(Progress::default());
    let sender = {
        let (connection, progress) = (connection.clone(), Arc::clone(&progress));
        start("send", move || send_all(&connection, role, framing, recv_only, &progress))?
    };
    let mut lost = None;
    let received = receive_all(connection, &progress, &mut lost);
    if received.is_err() {
        // No one reads our output any more: let the peer know.
        connection.abort();
    }
    // A sender that still waits for input has not sent it all.
    let cut_off = || lost.map_or(Ok(()), |error: Error| Err(error.into()));
    let sent = sender.recv_timeout(NOTICE_WITHIN).unwrap_or_else(|_| cut_off());
    let received = match sent {
        // The end of the connection is only a consequence.
        Err(failure) if progress.input_has_failed.load(Ordering::Acquire) => return Err(failure),
        sent => received.and_then(|received| sent.map(|()| received))?,
    };
    let stats = connection.stats();
    let sent = progress.sent(stats.map_or(0, |s| s.counters.data_packets_acked));
    let peer = connection.peer_addr().to_string();
    Ok(Report::new(peer, began.elapsed(), sent, received, stats.as_ref()))
}

impl Progress {
    fn sent(&self, acked: u64) -> Sent {
        let messages = self.messages.load(Ordering::Acquire);
        let delivered = if self.accounted.load(Ordering::Acquire) {
            self.delivered.load(Ordering::Acquire)
        } else {
            acked.min(messages)
        };
        Sent {
            messages,
            bytes: self.bytes.load(Ordering::Acquire),
            delivered,
            lost: messages - delivered.min(messages),
            ..Sent::default()
        }
    }
}

/// Runs `work` on a new thread and returns its result through a channel. The thread is not joined:
/// a read from a terminal cannot be interrupted.
fn start<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> CliResult<mpsc::Receiver<T>> {
    let (done, result) = mpsc::sync_channel(1);
    std::thread::Builder::new().name(name.into()).spawn(move || {
        let _ = done.send(work());
    })?;
    Ok(result)
}

/// Sends standard input and the end marker, and closes when both directions are done.
fn send_all(
    connection: &Connection,
    role: Role,
    framing: Framing,
    recv_only: bool,
    progress: &Progress,
) -> CliResult<()> {
    if !recv_only {
        send_input(connection, framing, progress)?;
    }
    account(connection, progress);
    // The peer may have closed already, which is not a failure once everything is accounted for.
    while send_end(connection).is_ok() {
        if progress.peer_is_done.load(Ordering::Acquire) {
            return finish(connection, role);
        }
        match connection.closed(Some(END_INTERVAL)) {
            Err(Error::TimedOut) => {}
            _ => return Ok(()),
        }
    }
    Ok(())
}

fn send_input(connection: &Connection, framing: Framing, progress: &Progress) -> CliResult<()> {
    let mut input = Messages::new(io::stdin().lock(), framing);
    let unreadable = |e: io::Error| {
        // Otherwise both sides would wait for each other, and a close would tell the peer that the
        // data are complete.
        progress.input_has_failed.store(true, Ordering::Release);
        connection.abort();
        Failure::new(Exit::BadInput, format!("cannot read standard input: {e}"))
            .hint("redirect it from a file or a pipe, or use --recv-only")
    };
    while let Some(batch) = input.next_batch().map_err(unreadable)? {
        let bytes = batch.iter().map(|m| m.len() as u64).sum();
        let messages = match send_fitting(connection, batch) {
            Ok(messages) => messages,
            Err(Error::Closed) => {
                return Err(Failure::new(
                    Exit::ConnectionLost,
                    "the peer closed the connection before the end of the input",
                )
                .hint("the peer may have been stopped, or its output was closed"));
            }
            Err(e) => return Err(e.into()),
        };
        progress.messages.fetch_add(messages, Ordering::AcqRel);
        progress.bytes.fetch_add(bytes, Ordering::AcqRel);
    }
    Ok(())
}

/// Sends messages, and cuts those that no longer fit into one packet because the path's MTU has
/// fallen. Returns how many messages it sent.
fn send_fitting(connection: &Connection, batch: Vec<Bytes>) -> Result<u64, Error> {
    let mut sent = batch.len();
    let mut rest = batch.into_iter();
    loop {
        let mut taken = Bytes::new();
        match connection.send_batch(rest.by_ref().inspect(|message| taken = message.clone())) {
            Err(Error::MessageTooLarge { max, .. }) => {
                sent -= rest.len() + 1;
                rest = cut(std::iter::once(taken).chain(rest), max).into_iter();
                sent += rest.len();
            }
            done => return done.map(|()| sent as u64),
        }
    }
}

/// Cuts messages that are longer than `max` bytes.
fn cut(messages: impl Iterator<Item = Bytes>, max: usize) -> Vec<Bytes> {
    let mut all = Vec::new();
    for mut message in messages {
        while message.len() > max {
            all.push(message.split_to(max));
        }
        all.push(message);
    }
    all
}

/// Waits until the peer has reported what it received, and records the number.
fn account(connection: &Connection, progress: &Progress) {
    // What is not reported by then counts as lost.
    let _ = connection.acknowledged(Some(DRAIN_WITHIN));
    if let Some(stats) = connection.stats() {
        progress.delivered.store(stats.counters.data_packets_acked, Ordering::Release);
        progress.accounted.store(true, Ordering::Release);
    }
}

/// Sends the end marker: an empty message.
fn send_end(connection: &Connection) -> Result<(), Error> {
    connection.send(Bytes::new())
}

/// The client closes; if it fails to, the server does.
fn finish(connection: &Connection, role: Role) -> CliResult<()> {
    if role == Role::Server && connection.closed(Some(CLIENT_CLOSES_WITHIN)).is_ok() {
        return Ok(());
    }
    // All data are accounted for, so errors of the close do not matter.
    let _ = connection.close();
    Ok(())
}

/// Writes what arrives to standard output until the connection ends. If it ends with an error after
/// all data have arrived, that is `lost`: it matters only if we still had something to send.
fn receive_all(
    connection: &Connection,
    progress: &Progress,
    lost: &mut Option<Error>,
) -> CliResult<Received> {
    let mut out = io::stdout().lock();
    let mut received = Received::default();
    let mut batch = Vec::with_capacity(BATCH_MESSAGES);
    let at_terminal = io::stdin().is_terminal();
    loop {
        batch.clear();
        match connection.recv_batch(&mut batch, BATCH_MESSAGES) {
            Ok(0) => break,
            Ok(_) => {}
            Err(e) if progress.peer_is_done.load(Ordering::Acquire) => {
                *lost = Some(e);
                break;
            }
            Err(e) => return Err(e.into()),
        }
        for message in &batch {
            if message.is_empty() {
                progress.peer_is_done.store(true, Ordering::Release);
                continue;
            }
            received.messages += 1;
            received.bytes += message.len() as u64;
            output::printed(out.write_all(message))?;
        }
        output::printed(out.flush())?;
        let is_over = progress.peer_is_done.load(Ordering::Acquire) && received.messages > 0;
        if at_terminal && is_over {
            // A user at the terminal has nothing to add to a finished transfer. A peer that only
            // receives waits for what the user types.
            let _ = connection.close();
        }
    }
    Ok(received)
}

#[expect(clippy::disallowed_methods, reason = "a transfer is timed by the clock on the wall")]
fn now() -> Instant {
    Instant::now()
}
