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
use udccp_preload::ring::Nonsense;

use crate::options::{LINGER, QUEUE_BYTES};
use crate::pair::{Packet, Pair};
use crate::shared::SharedRing;
use crate::socket::Socket;
use crate::taken::{Inbox, Taken};

/// Messages taken from a connection at once.
const BATCH: usize = 1024;
/// Messages taken from a program for one write to the network: as many of 1,200 bytes as it takes.
const TRAIN: usize = 53;
/// Writes to the network after which others have their turn.
const TRAINS: usize = 18;
/// Time after which the ring to a program is looked at again that was full, should the program's
/// bell have found no room. Each time twice as long: the program may read nothing for hours.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
/// The same for a socket pair that has to be read empty before the ring is used.
const UNTIL_EMPTY: Duration = Duration::from_millis(1);
/// The longest of these times.
const LONGEST: Duration = Duration::from_millis(32);

/// Time after which a ring is looked at again whose places are all in use, and how often. To fill a
/// place takes less than a microsecond.
const UNTIL_PLACES: Duration = Duration::from_millis(20);
const PLACE_LOOKS: usize = 50;

/// Time after which a bell that somebody has taken is rung again, unless he has said so.
const UNTIL_LOST: Duration = Duration::from_millis(100);

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

/// Says that the program has sent a packet, to both directions.
#[derive(Debug, Default)]
struct News {
    to_peer: Notify,
    to_program: Notify,
}

/// Carries messages both ways until one side ends.
pub(crate) async fn carry(socket: &Socket, connection: &Connection, pair: &Pair) -> Ending {
    let is_unread = AtomicBool::new(false);
    let news = News::default();
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

/// Tells both directions of packets from the program.
async fn watch(socket: &Socket, pair: &Pair, news: &News) -> Ending {
    let mut has_ended = false;
    loop {
        pair.news(&mut has_ended).await;
        news.to_peer.notify_one();
        news.to_program.notify_one();
        if has_ended {
            // Who waits for room to send may have had his turn before this.
            tokio::task::yield_now().await;
        }
        if let Some(ring) = socket.ring().filter(|ring| ring.is_on()) {
            // The program may have lost a bell. Where it cannot be rung, the program has closed.
            let _ = ring_bells(socket, pair, &ring, 0).await;
        }
    }
}

/// Takes what the program sends, as far as the connection has room for it.
async fn to_peer(socket: &Socket, connection: &Connection, pair: &Pair, news: &News) -> Ending {
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
                // It may only have shut down sending: then reading goes on.
                pair.hung_up().await;
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
            displace(connection, &mut taken)
        } else {
            tokio::select! {
                biased;
                sent = connection.send_batch(&mut taken) => sent,
                () = pair.hung_up() => drain(socket, connection, &inbox).await,
                // Polled where the connection has no room for more.
                never = unplug(&inbox) => never,
            }
        };
        match sent {
            // Too large only if the path's MTU fell since the program was told.
            Ok(()) | Err(Error::MessageTooLarge { .. }) => {}
            // The peer reads no more: as in Linux, the program may send on, to nobody. Or the
            // connection is over, and who reads from it reports that.
            Err(_) => is_refused = true,
        }
        inbox.grant(window_room(connection));
        inbox.unplug();
        trains = if taken.are_all() { trains + 1 } else { 0 };
        if trains >= TRAINS {
            trains = 0;
            // Others have their turn.
            tokio::task::yield_now().await;
        }
    }
}

/// Waits for whoever has all places of the ring; whether any came back.
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

/// Waits until there may be something to take.
async fn wait_for_program(inbox: &Inbox<'_>, connection: &Connection, pair: &Pair, news: &News) {
    while !inbox.has_some() && !pair.may_have_packets() && inbox.sleep() {
        tokio::select! {
            () = news.to_peer.notified() => {}
            never = grant_all(inbox, connection) => never,
        }
        inbox.wake();
    }
}

/// Once the network has accounted for all messages, grants the whole window; never ends.
async fn grant_all(inbox: &Inbox<'_>, connection: &Connection) {
    if connection.acknowledged().await.is_ok() {
        inbox.grant(window_room(connection));
    }
    std::future::pending().await
}

/// Makes the program's end writable where it can be; never ends.
async fn unplug(inbox: &Inbox<'_>) -> Result<(), Error> {
    poll_fn(|_| {
        inbox.unplug();
        Poll::Pending
    })
    .await
}

/// How many messages congestion control lets go at once.
fn window_room(connection: &Connection) -> usize {
    let state = connection.sender_state().unwrap_or_default();
    let window = state.cwnd_packets.unwrap_or(0);
    window.saturating_sub(state.pipe_packets.unwrap_or(window)) as usize
}

/// Has the connection take at once what congestion control lets go at once, so that few system
/// calls send it. What has to wait stays with the program, as far as `tx_qlen` allows. Gives the
/// number of messages: once they are taken the window may have room for more than it had.
fn fit_queue(socket: &Socket, connection: &Connection) -> usize {
    let messages = window_room(connection).min(TRAIN * TRAINS).max(socket.queued_messages());
    connection.set_send_queue(QUEUE_BYTES, messages);
    messages
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

/// The program has closed while its last messages wait: there is not for ever time for them.
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

/// Gives the program what arrives.
async fn to_program(
    socket: &Socket,
    connection: &Connection,
    pair: &Pair,
    news: &News,
    is_unread: &AtomicBool,
) -> Ending {
    let mut messages: Vec<Bytes> = Vec::with_capacity(BATCH);
    loop {
        let received = tokio::select! {
            biased;
            received = connection.recv_batch(&mut messages, BATCH) => received,
            never = watch_bell(socket, pair) => never,
        };
        match received {
            // The program reads no more; it may still send.
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
            Err(Undelivered::Nonsense) => {
                tracing::warn!("a program has corrupted the memory of its messages");
                return Ending::ProgramLeftUnread;
            }
            Err(Undelivered::Closed) => return Ending::Peer(connection.closed().await.err()),
        }
        is_unread.store(false, Ordering::Relaxed);
        messages.clear();
    }
}

/// Rings again where messages wait and the bell for them is gone; never ends.
async fn watch_bell(socket: &Socket, pair: &Pair) -> Result<usize, Error> {
    if let Some(ring) = socket.ring().filter(|ring| ring.is_on()) {
        while ring.has_unread() {
            sleep(UNTIL_LOST).await;
            if !pair.has_unread() {
                // Where the program cannot be rung, it has closed.
                let _ = send_bells(socket, pair, ring.bells_again()).await;
            }
        }
    }
    std::future::pending().await
}

/// Why the program gets no more messages.
#[derive(Clone, Copy, Debug)]
enum Undelivered {
    /// It has closed, or reads no more.
    Closed,
    /// It has written into the ring what cannot be.
    Nonsense,
}

impl From<io::Error> for Undelivered {
    fn from(_: io::Error) -> Self {
        Self::Closed
    }
}

impl From<Nonsense> for Undelivered {
    fn from(_: Nonsense) -> Self {
        Self::Nonsense
    }
}

async fn deliver(
    socket: &Socket,
    pair: &Pair,
    news: &News,
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

/// Rings for messages that were put into the ring.
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
