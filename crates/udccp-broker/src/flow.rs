//! Carries messages between a connection and a program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use udccp::{Connection, Error, Outgoing, TrySendError};
use udccp_preload::protocol::{Frame, SLOT_MPS_AT, read_frame};

use crate::options::{LINGER, QUEUE_BYTES};
use crate::pair::{PACKET_BYTES, Packet, Pair};
use crate::socket::Socket;

/// Messages taken from a connection or a program at once.
const BATCH: usize = 32;

/// Who ended a connection.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The program closed its socket.
    Program,
    /// The program closed its socket, and had not read all.
    ProgramLeftUnread,
    /// The peer or the network: in order, or with an error.
    Peer(Option<Error>),
}

/// Carries messages both ways until one side ends.
pub(crate) async fn carry(socket: &Socket, connection: &Connection, pair: &Pair) -> Ending {
    let is_unread = AtomicBool::new(false);
    let ending = tokio::select! {
        ending = to_peer(socket, connection, pair) => ending,
        ending = to_program(socket, connection, pair, &is_unread) => ending,
    };
    match ending {
        Ending::Program if is_unread.load(Ordering::Relaxed) || connection.try_peek().is_ok() => {
            Ending::ProgramLeftUnread
        }
        other => other,
    }
}

/// Takes what the program sends, as far as the connection has room for it.
async fn to_peer(socket: &Socket, connection: &Connection, pair: &Pair) -> Ending {
    let mut taken = Taken::new(pair, socket.broker().region.key());
    let mut published = 0;
    loop {
        match taken.ended {
            None => pair.readable().await,
            Some(Packet::Reset) => return Ending::ProgramLeftUnread,
            Some(_) => {
                // It may only have shut down sending: then reading goes on.
                pair.hung_up().await;
                return Ending::Program;
            }
        }
        let max = connection.max_message_size();
        if max != published {
            socket.publish(SLOT_MPS_AT, max as u32);
            published = max;
        }
        taken.left = BATCH;
        let sent = if socket.has_priorities() {
            displace(connection, &mut taken)
        } else {
            fit_queue(socket, connection);
            tokio::select! {
                biased;
                sent = connection.send_batch(&mut taken) => sent,
                () = pair.hung_up() => drain(socket, connection, &mut taken).await,
            }
        };
        match sent {
            // Too large only if the path's MTU fell since the program was told.
            Ok(()) | Err(Error::MessageTooLarge { .. }) => {}
            Err(_) => return end_of_sending(pair).await,
        }
        if taken.left == 0 {
            // Others have their turn.
            tokio::task::yield_now().await;
        }
    }
}

/// Has the connection take at once what congestion control lets go at once, so that few system
/// calls send it. What has to wait stays in the pair, as far as `tx_qlen` allows.
fn fit_queue(socket: &Socket, connection: &Connection) {
    let state = connection.sender_state().unwrap_or_default();
    let window = state.cwnd_packets.unwrap_or(0);
    let room = window.saturating_sub(state.pipe_packets.unwrap_or(window)) as usize;
    let messages = room.min(BATCH).max(socket.queued_messages());
    connection.set_send_queue(QUEUE_BYTES, messages);
}

/// Sends under the policy that drops the lowest priority.
fn displace(connection: &Connection, taken: &mut Taken<'_>) -> Result<(), Error> {
    for message in taken {
        match connection.try_send(message) {
            // The new message is the lowest.
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Failed(e)) => return Err(e),
        }
    }
    Ok(())
}

/// Messages of the program, each taken out of the pair when it is asked for.
struct Taken<'a> {
    pair: &'a Pair,
    key: u64,
    packet: [u8; PACKET_BYTES],
    /// How many more it gives in this turn.
    left: usize,
    /// Why there will be no more.
    ended: Option<Packet>,
}

impl<'a> Taken<'a> {
    const fn new(pair: &'a Pair, key: u64) -> Self {
        Self { pair, key, packet: [0; PACKET_BYTES], left: 0, ended: None }
    }
}

impl Iterator for Taken<'_> {
    type Item = Outgoing;

    fn next(&mut self) -> Option<Outgoing> {
        self.left = self.left.checked_sub(1)?;
        loop {
            let len = match self.pair.recv_now(&mut self.packet)? {
                Packet::Bytes(len) => len,
                end => {
                    self.ended = Some(end);
                    return None;
                }
            };
            if let Frame::Data(data, priority) = read_frame(self.key, &self.packet[..len]) {
                return Some(Outgoing::new(Bytes::copy_from_slice(data)).priority(priority));
            }
        }
    }
}

/// The program has closed while its last messages wait: there is not for ever time for them.
async fn drain(
    socket: &Socket,
    connection: &Connection,
    taken: &mut Taken<'_>,
) -> Result<(), Error> {
    let limit = socket.linger().map_or(LINGER, Duration::from_secs);
    let all = async {
        while taken.ended.is_none() {
            taken.left = BATCH;
            connection.send_batch(&mut *taken).await?;
        }
        Ok(())
    };
    tokio::time::timeout(limit, all).await.unwrap_or(Err(Error::TimedOut))
}

/// The connection takes no more. What came before is still read, and that side reports the end.
async fn end_of_sending(pair: &Pair) -> Ending {
    pair.hung_up().await;
    Ending::Program
}

/// Gives the program what arrives.
async fn to_program(
    socket: &Socket,
    connection: &Connection,
    pair: &Pair,
    is_unread: &AtomicBool,
) -> Ending {
    let mut messages: Vec<Bytes> = Vec::with_capacity(BATCH);
    loop {
        match connection.recv_batch(&mut messages, BATCH).await {
            // The program reads no more; it may still send.
            Ok(0) if socket.reads_no_more() => {
                return Ending::Peer(connection.closed().await.err());
            }
            Ok(0) => return Ending::Peer(None),
            Ok(_) => {}
            Err(e) => return Ending::Peer(Some(e)),
        }
        is_unread.store(true, Ordering::Relaxed);
        if pair.send_all(&messages).await.is_err() {
            return Ending::Peer(connection.closed().await.err());
        }
        is_unread.store(false, Ordering::Relaxed);
        messages.clear();
    }
}
