//! Carries messages between a connection and a program.

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use udccp::{Connection, Error, TrySendError};
use udccp_preload::protocol::SLOT_MPS_AT;
use udccp_preload::ring::CorruptRing;

use crate::options::{LINGER, QUEUE_BYTES};
use crate::pair::{Packet, Pair};
use crate::shared::SharedRing;
use crate::socket::Socket;
use crate::taken::{Inbox, Taken};

/// Most messages read from a connection at once.
const BATCH: usize = 1024;
/// Most messages of a program in one write to the network: with 1,200 bytes each, one write takes
/// as many.
const TRAIN: usize = 53;
/// After this many writes to the network, other tasks get a turn.
const TRAINS: usize = 18;
/// Initial interval for polling a full ring to a program, in case the program could not send its
/// bell. The interval doubles each time: the program may read nothing for hours.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The same for a socket pair, which the program must empty before the ring is used.
const UNTIL_EMPTY: Duration = Duration::from_millis(1);
/// The longest polling interval.
const LONGEST: Duration = Duration::from_millis(32);

/// Interval and number of attempts for a ring whose places are all in use. Filling a place takes
/// less than a microsecond.
const UNTIL_PLACES: Duration = Duration::from_millis(20);
const PLACE_LOOKS: usize = 50;

/// A bell that was taken from the socket pair is sent again after this time, unless the program
/// says that it took it.
const UNTIL_LOST: Duration = Duration::from_millis(100);

/// Who ended a connection.
#[derive(Debug)]
pub(crate) enum Ending {
    /// The program closed its socket.
    Program,
    /// The program closed its socket and left messages unread.
    ProgramLeftUnread,
    /// The peer or the network ended it: orderly, or with an error.
    Peer(Option<Error>),
}

/// Tells both directions that the program has sent a packet.
#[derive(Debug, Default)]
struct PacketSignals {
    to_peer: Notify,
    to_program: Notify,
}

/// Carries messages in both directions until one side ends.
pub(crate) async fn carry(socket: &Socket, connection: &Connection, pair: &Pair) -> Ending {
    let is_unread = AtomicBool::new(false);
    let news = PacketSignals::default();
    let ending = tokio::select! {
        ending = to_peer(socket, connection, pair, &news) => ending,
        ending = to_program(socket, connection, pair, &news, &is_unread) => ending,
        ending = watch(socket, pair, &news) => ending,
    };
    let is_unread = || {
        is_unread.load(Ordering::Relaxed)
            || connection.try_peek().is_ok()
            || socket.ring().is_some_and(|ring| ring.is_on() && ring.has_unread())
    };
    match ending {
        Ending::Program if is_unread() => Ending::ProgramLeftUnread,
        other => other,
    }
}

/// Wakes both directions when the program has sent a packet.
async fn watch(socket: &Socket, pair: &Pair, news: &PacketSignals) -> Ending {
    let mut has_ended = false;
    loop {
        pair.news(&mut has_ended).await;
        news.to_peer.notify_one();
        news.to_program.notify_one();
        if has_ended {
            // The task that waits for room to send may have run before this notification.
            tokio::task::yield_now().await;
        }
        if let Some(ring) = socket.ring().filter(|ring| ring.is_on()) {
            // The program may have lost a bell. An error means that it has closed.
            let _ = ring_bells(socket, pair, &ring, 0).await;
        }
    }
}

/// Sends the program's messages, as far as the connection has room for them.
async fn to_peer(
    socket: &Socket,
    connection: &Connection,
    pair: &Pair,
    news: &PacketSignals,
) -> Ending {
    let inbox = Inbox::new(socket, pair);
    let (mut published, mut trains, mut is_refused) = (0, 0, false);
    let mut slab = None;
    loop {
        match inbox.ended() {
            None => {
                inbox.slabs().give_back(&mut slab);
                wait_for_program(&inbox, connection, pair, news).await;
            }
            Some(Packet::Reset) => return Ending::ProgramLeftUnread,
            Some(_) => {
                // The program may only have shut down sending; then the other direction goes on.
                pair.wait_hang_up().await;
                return Ending::Program;
            }
        }
        if inbox.was_starved() && !finds_places(&inbox).await {
            tracing::warn!("killed programs left no memory for messages");
            return Ending::ProgramLeftUnread;
        }
        let max = connection.max_message_size();
        if max != published {
            socket.publish(SLOT_MPS_AT, max as u32);
            published = max;
        }
        let has_priorities = socket.has_priorities();
        let most = if has_priorities { TRAIN } else { fit_queue(socket, connection).min(TRAIN) };
        let mut taken = Taken::new(&inbox, most, &mut slab);
        let sent = if is_refused {
            taken.by_ref().for_each(drop);
            Ok(())
        } else if has_priorities {
            send_displacing(connection, &mut taken)
        } else {
            tokio::select! {
                biased;
                sent = connection.send_batch(&mut taken) => sent,
                () = pair.wait_hang_up() => drain(socket, connection, &inbox).await,
                // Polled while the connection has no room.
                never = unplug(&inbox) => never,
            }
        };
        match sent {
            // MessageTooLarge can only happen if the path MTU fell after the program learned it.
            Ok(()) | Err(Error::MessageTooLarge { .. }) => {}
            // The peer reads no more. As in Linux, the program may go on sending, and the messages
            // are dropped. If the connection is over, the reading side reports that.
            Err(_) => is_refused = true,
        }
        inbox.grant(window_room(connection));
        inbox.unplug();
        trains = if taken.are_all() { trains + 1 } else { 0 };
        if trains >= TRAINS {
            trains = 0;
            // Let other tasks run.
            tokio::task::yield_now().await;
        }
    }
}

/// Waits until a place of the ring is free again. Returns whether one is.
async fn finds_places(inbox: &Inbox<'_>) -> bool {
    for _ in 0..PLACE_LOOKS {
        sleep(UNTIL_PLACES).await;
        inbox.grant(0);
        if !inbox.was_starved() {
            return true;
        }
    }
    false
}

/// Waits until there may be a message from the program.
async fn wait_for_program(
    inbox: &Inbox<'_>,
    connection: &Connection,
    pair: &Pair,
    news: &PacketSignals,
) {
    while !inbox.has_some() && !pair.may_have_packets() && inbox.sleep() {
        tokio::select! {
            () = news.to_peer.notified() => {}
            never = grant_all(inbox, connection) => never,
        }
        inbox.wake();
    }
}

/// Grants the whole window once the network has acknowledged all messages. Never returns.
async fn grant_all(inbox: &Inbox<'_>, connection: &Connection) {
    if connection.acknowledged().await.is_ok() {
        inbox.grant(window_room(connection));
    }
    std::future::pending().await
}

/// Makes the program's end writable where possible. Never returns.
async fn unplug(inbox: &Inbox<'_>) -> Result<(), Error> {
    poll_fn(|_| {
        inbox.unplug();
        Poll::Pending
    })
    .await
}

/// How many messages congestion control would send at once now.
fn window_room(connection: &Connection) -> usize {
    let state = connection.sender_state().unwrap_or_default();
    let window = state.cwnd_packets.unwrap_or(0);
    window.saturating_sub(state.pipe_packets.unwrap_or(window)) as usize
}

/// Sizes the connection's queue for what congestion control would send at once, so that few system
/// calls send it. Other messages stay with the program, up to `tx_qlen`. Returns how many messages
/// to take: sending them may open the window further.
fn fit_queue(socket: &Socket, connection: &Connection) -> usize {
    let messages = window_room(connection).min(TRAIN * TRAINS).max(socket.queued_messages());
    connection.set_send_queue(QUEUE_BYTES, messages);
    messages
}

/// Sends under the queue policy that drops the message of lowest priority.
fn send_displacing(connection: &Connection, taken: &mut Taken<'_>) -> Result<(), Error> {
    for message in taken {
        match connection.try_send(message) {
            // The new message had the lowest priority and was dropped.
            Ok(()) | Err(TrySendError::Full(_)) => {}
            Err(TrySendError::Failed(e)) => return Err(e),
        }
    }
    Ok(())
}

/// Sends the last messages of a program that has closed, within a time limit.
async fn drain(socket: &Socket, connection: &Connection, inbox: &Inbox<'_>) -> Result<(), Error> {
    let limit = socket.linger().map_or(LINGER, Duration::from_secs);
    let mut slab = None;
    let all = async {
        while inbox.ended().is_none() {
            let most = fit_queue(socket, connection);
            connection.send_batch(&mut Taken::new(inbox, most, &mut slab)).await?;
        }
        Ok(())
    };
    tokio::time::timeout(limit, all).await.unwrap_or(Err(Error::TimedOut))
}

/// Passes received messages to the program.
async fn to_program(
    socket: &Socket,
    connection: &Connection,
    pair: &Pair,
    news: &PacketSignals,
    is_unread: &AtomicBool,
) -> Ending {
    let mut messages: Vec<Bytes> = Vec::with_capacity(BATCH);
    loop {
        let received = tokio::select! {
            biased;
            received = connection.recv_batch(&mut messages, BATCH) => received,
            never = resend_lost_bells(socket, pair) => never,
        };
        match received {
            // The program reads no more, but may still send.
            Ok(0) if socket.reads_no_more() => {
                return Ending::Peer(connection.closed().await.err());
            }
            Ok(0) => return Ending::Peer(None),
            Ok(_) => {}
            Err(e) => return Ending::Peer(Some(e)),
        }
        is_unread.store(true, Ordering::Relaxed);
        match deliver(socket, pair, news, &messages).await {
            Ok(()) => {}
            Err(Undelivered::CorruptRing) => {
                tracing::warn!("a program has corrupted the memory of its messages");
                return Ending::ProgramLeftUnread;
            }
            Err(Undelivered::Closed) => return Ending::Peer(connection.closed().await.err()),
        }
        is_unread.store(false, Ordering::Relaxed);
        messages.clear();
    }
}

/// Sends a bell again if messages wait and the bell is gone. Never returns.
async fn resend_lost_bells(socket: &Socket, pair: &Pair) -> Result<usize, Error> {
    if let Some(ring) = socket.ring().filter(|ring| ring.is_on()) {
        while ring.has_unread() {
            sleep(UNTIL_LOST).await;
            if !pair.has_unread() {
                // An error means that the program has closed.
                let _ = send_bells(socket, pair, ring.resend_bells()).await;
            }
        }
    }
    std::future::pending().await
}

/// Why messages can no longer be delivered to the program.
#[derive(Clone, Copy, Debug)]
enum Undelivered {
    /// The program has closed or reads no more.
    Closed,
    /// The program has corrupted the ring.
    CorruptRing,
}

impl From<io::Error> for Undelivered {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl From<CorruptRing> for Undelivered {
    fn from(_: CorruptRing) -> Self {
        Self::CorruptRing
    }
}

async fn deliver(
    socket: &Socket,
    pair: &Pair,
    news: &PacketSignals,
    messages: &[Bytes],
) -> Result<(), Undelivered> {
    let Some(ring) = socket.ring().filter(|ring| ring.is_on() || ring.is_wanted()) else {
        return Ok(pair.send_all(messages).await?);
    };
    if !ring.is_on() {
        let mut pause = UNTIL_EMPTY;
        while pair.has_unread() {
            sleep(pause).await;
            pause = LONGEST.min(pause * 2);
        }
        ring.turn_on();
    }
    let (mut put, mut most) = (0, socket.recv_queue_bytes());
    for message in messages {
        let mut pause = LOOK_AGAIN;
        while !ring.put(message, most)? {
            ring_bells(socket, pair, &ring, put).await?;
            put = 0;
            if socket.reads_no_more() {
                return Err(Undelivered::Closed);
            }
            if ring.want_room()? {
                let _ = timeout(pause, news.to_program.notified()).await;
                pause = LONGEST.min(pause * 2);
            }
            most = socket.recv_queue_bytes();
        }
        put += 1;
    }
    Ok(ring_bells(socket, pair, &ring, put).await?)
}

/// Sends the bells for messages that were put into the ring.
async fn ring_bells(socket: &Socket, pair: &Pair, ring: &SharedRing, put: usize) -> io::Result<()> {
    send_bells(socket, pair, ring.bells(put)).await
}

async fn send_bells(socket: &Socket, pair: &Pair, bells: (u32, u32)) -> io::Result<()> {
    let (first, count) = bells;
    for n in 0..count {
        pair.ring(socket.broker().region.key(), first.wrapping_add(n)).await?;
    }
    Ok(())
}
