//! Carries messages between a connection and a program.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use udccp::{Connection, Error, Outgoing, TrySendError};
use udccp_preload::protocol::{Frame, SLOT_MPS_AT, read_frame};

use crate::options::LINGER;
use crate::pair::{PACKET_BYTES, Packet, Pair};
use crate::socket::Socket;

/// Messages taken from a connection at once.
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

/// Takes what the program sends: one message, and the next when the connection has room for it.
async fn to_peer(socket: &Socket, connection: &Connection, pair: &Pair) -> Ending {
    let key = socket.broker().region.key();
    let drops_lowest = socket.has_priorities();
    let mut packet = [0; PACKET_BYTES];
    let mut published = 0;
    loop {
        let len = match pair.recv(&mut packet).await {
            Packet::Bytes(len) => len,
            Packet::Reset => return Ending::ProgramLeftUnread,
            Packet::End => {
                // It may only have shut down sending: then reading goes on.
                pair.hung_up().await;
                return Ending::Program;
            }
        };
        let max = connection.max_message_size();
        if max != published {
            socket.publish(SLOT_MPS_AT, max as u32);
            published = max;
        }
        let Frame::Data(data, priority) = read_frame(key, &packet[..len]) else { continue };
        let message = Outgoing::new(Bytes::copy_from_slice(data)).priority(priority);
        let sent = if drops_lowest {
            match connection.try_send(message) {
                // The new message is the lowest.
                Ok(()) | Err(TrySendError::Full(_)) => Ok(()),
                Err(TrySendError::Failed(e)) => Err(e),
            }
        } else {
            tokio::select! {
                biased;
                sent = connection.send(message.clone()) => sent,
                () = pair.hung_up() => drain(socket, connection, message).await,
            }
        };
        match sent {
            // Too large only if the path's MTU fell since the program was told.
            Ok(()) | Err(Error::MessageTooLarge { .. }) => {}
            Err(_) => return end_of_sending(pair).await,
        }
    }
}

/// The program has closed while its last messages wait: there is not for ever time for them.
async fn drain(socket: &Socket, connection: &Connection, message: Outgoing) -> Result<(), Error> {
    let limit = socket.linger().map_or(LINGER, Duration::from_secs);
    let sent = tokio::time::timeout(limit, connection.send(message)).await;
    sent.unwrap_or(Err(Error::TimedOut))
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
        for message in messages.drain(..) {
            is_unread.store(true, Ordering::Relaxed);
            if pair.send(&message).await.is_err() {
                return Ending::Peer(connection.closed().await.err());
            }
            is_unread.store(false, Ordering::Relaxed);
        }
    }
}
