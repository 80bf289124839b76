//! A connection: messages both ways, with boundaries, without retransmission.

use std::future::poll_fn;
use std::io::IoSlice;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use udccp_wire::ServiceCode;

use crate::address::any_port;
use crate::coop;
use crate::message::gather;
use crate::methods::{as_fd_by_readiness, connection_methods};
use crate::names::{ATTEMPT_DELAY, Race, unresolved};
use crate::shared::ConnHandle;
use crate::{
    Address, Connecting, ConnectionEvent, Endpoint, EndpointOptions, Error, Options, Outgoing,
    Received, ReceivedInto, RecvHalf, SendHalf,
};

/// A DCCP connection.
///
/// Every method takes `&self`, and clones are handles of one connection, which tasks may share
/// ([`Self::into_split`] makes halves of them). Messages keep their boundaries and are sent once:
/// what the network loses stays lost, and [`Self::stats`] counts it.
///
/// [`Self::close`] delivers what was accepted, waits for the end, and says how it went. Dropping a
/// connection (its last handle) does the same in the background, and nobody hears how it went; the
/// end of the process (the return of `main`, `std::process::exit`) waits for it within
/// [`Options::close_linger`].
///
/// # Cancel safety
/// Every method says what becomes of its future when that is dropped before it is ready. In short:
/// it has sent nothing, taken nothing and lost nothing, and the same call later goes on. The
/// `poll_` methods are for hand-written futures and work on any runtime; several tasks may wait for
/// the same thing.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<ConnHandle>,
}

impl Connection {
    /// Connects over a UDP port of its own (RFC 6773 section 3.8 recommends one for each
    /// connection), or over a raw socket of its own to an [`Address::raw`]. `peer` is a
    /// [`SocketAddr`](std::net::SocketAddr) or an [`Address`].
    ///
    /// Dropping the future cancels the handshake, and the server learns it by a Reset.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn connect(peer: impl Into<Address>, service: ServiceCode) -> Result<Self, Error> {
        Self::connect_with(peer, service, &Options::default()).await
    }

    //= 6773-3.8-1
    //= 6773-3.8-3
    /// Connects with settings.
    ///
    /// Dropping the future cancels the handshake, and the server learns it by a Reset.
    ///
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn connect_with(
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Self, Error> {
        Self::start_connect(peer, service, options)?.await
    }

    /// Connects to a host by name: `example.org:5004`, as [`Address::resolve`] reads it. Where it
    /// has several addresses, they are tried in turn, both families, a quarter of a second apart;
    /// the first that answers wins, and the others are cancelled (RFC 8305).
    ///
    /// Dropping the future cancels all handshakes; a look-up that has begun ends by itself.
    ///
    /// # Errors
    /// [`Error::Io`] where the name has no address; else as [`Endpoint::connect`] for the address
    /// that failed last.
    pub async fn connect_host(
        host: impl Into<String>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Self, Error> {
        let host = host.into();
        let found = tokio::task::spawn_blocking(move || Address::resolve(&host)).await;
        let found = found.unwrap_or_else(|e| Err(std::io::Error::other(e)));
        Self::connect_any(&found.map_err(unresolved)?, service, options).await
    }

    /// Connects to the first of several addresses of one host that answers, as
    /// [`Self::connect_host`] does.
    ///
    /// Dropping the future cancels all handshakes.
    ///
    /// # Errors
    /// As [`Endpoint::connect`] for the address that failed last.
    pub async fn connect_any(
        addresses: &[Address],
        service: ServiceCode,
        options: &Options,
    ) -> Result<Self, Error> {
        let mut race = Race::new(addresses);
        loop {
            race.start_next(|address| Self::start_connect(address, service, options));
            let is_last = !race.has_more();
            let turn = poll_fn(|cx| race.poll(cx, Connecting::poll_connect));
            let turn = match is_last {
                true => turn.await?,
                false => match tokio::time::timeout(ATTEMPT_DELAY, turn).await {
                    Ok(turn) => turn?,
                    Err(_) => None,
                },
            };
            if let Some(connection) = turn {
                return Ok(connection);
            }
        }
    }

    /// Starts to connect, and gives the handshake to wait for, to watch or to cancel.
    ///
    /// # Errors
    /// The socket cannot be opened, or a setting cannot be used.
    pub fn start_connect(
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Connecting, Error> {
        let peer = peer.into();
        let below = EndpointOptions::new().for_peer(peer)?;
        Endpoint::bind_with(any_port(peer.udp), &below)?.start_connect(peer, service, options)
    }

    pub(crate) fn new(handle: ConnHandle) -> Self {
        Self { inner: Arc::new(handle) }
    }

    connection_methods!();

    /// Sends a message, waiting while the send queue is full. It has left, or will as soon as
    /// congestion control lets it.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the message was not sent.
    ///
    /// # Errors
    /// [`Error::MessageTooLarge`]; [`Error::Closed`] or [`Error::Lost`] once the connection ended.
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let mut slot = Some(message.into());
        let mut call = self.inner.call();
        let mut send = |cx: &mut Context<'_>| call.poll(cx, |conn, w| conn.poll_send(w, &mut slot));
        poll_fn(|cx| coop::counted(cx, &mut send)).await
    }

    /// Sends one message gathered from several pieces.
    ///
    /// Cancel safe as [`Self::send`] is.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<(), Error> {
        self.send(gather(pieces)).await
    }

    /// Sends messages in order, waiting while the send queue is full, with as few system calls
    /// as possible.
    ///
    /// Cancel safe: what was taken out of the iterator was queued, so that one passed by `&mut`
    /// goes on where it stopped. Only under [`QueuePolicy::DropLowest`](crate::QueuePolicy), where
    /// a full queue drops what matters least, one such message may be dropped with the future.
    ///
    /// # Errors
    /// As [`Self::send`]; messages before the failing one were queued.
    pub async fn send_batch<I>(&self, messages: I) -> Result<(), Error>
    where
        I: IntoIterator,
        I::Item: Into<Outgoing>,
    {
        let mut messages = messages.into_iter().map(Into::into);
        let (mut slot, mut call) = (None, self.inner.call());
        poll_fn(|cx| {
            let mut count = 0;
            let mut messages = messages.by_ref().inspect(|_| count += 1);
            let sent = coop::counted(cx, |cx| {
                call.poll(cx, |conn, w| conn.poll_send_batch(w, &mut slot, &mut messages))
            });
            coop::count_batch(cx, count);
            sent
        })
        .await
    }

    /// Waits until the send queue has room for a message.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn writable(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_writable(w))).await
    }

    /// The next message; `None` once the connection was closed in order and all was read. A message
    /// may be empty: `Some` of no bytes.
    ///
    /// Cancel safe: a message is taken only where it is returned.
    ///
    /// # Errors
    /// [`Error::Lost`] once all was read and the connection ended out of order.
    pub async fn recv(&self) -> Result<Option<Bytes>, Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| coop::counted(cx, |cx| call.poll(cx, |conn, w| conn.poll_recv(w)))).await
    }

    /// The next message with what is known of it: with [`Options::deliver_corrupt`], whether it was
    /// damaged on the way. `None` as for [`Self::recv`].
    ///
    /// Cancel safe as [`Self::recv`] is.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_with_meta(&self) -> Result<Option<Received>, Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| coop::counted(cx, |cx| call.poll(cx, |conn, w| conn.poll_recv_with_meta(w))))
            .await
    }

    /// Appends up to `max` messages to `into`, waiting for the first. Returns how many; 0 once
    /// the connection was closed in order and all was read.
    ///
    /// Cancel safe: messages are appended only where their number is returned.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_batch(&self, into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| {
            let received =
                coop::counted(cx, |cx| call.poll(cx, |conn, w| conn.poll_recv_batch(w, into, max)));
            if let Poll::Ready(Ok(count)) = received {
                coop::count_batch(cx, count);
            }
            received
        })
        .await
    }

    /// The next message, copied into `buffer`; `None` as for [`Self::recv`]. What does not fit is
    /// lost, and [`ReceivedInto::is_truncated`] says so.
    ///
    /// Cancel safe: as [`Self::recv`], and the buffer is not touched before.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_into(&self, buffer: &mut [u8]) -> Result<Option<ReceivedInto>, Error> {
        Ok(self.recv_with_meta().await?.map(|received| received.copy_into(buffer)))
    }

    /// The next message, which stays; `None` as for [`Self::recv`]. Nothing is copied.
    ///
    /// Cancel safe: it takes nothing.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn peek(&self) -> Result<Option<Bytes>, Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_peek(w))).await
    }

    /// Waits until there is a message to read, or the end.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// Only if the runtime that drives the socket has shut down.
    pub async fn readable(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_readable(w))).await
    }

    /// Waits until the send queue is empty: everything sent so far has gone to the network (which
    /// may lose it), or was dropped.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn flushed(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_flushed(w))).await
    }

    /// Waits until everything sent so far has left and is accounted for: reported received by
    /// the peer, or judged lost. `stats` then tells how much of which.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn acknowledged(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_acknowledged(w))).await
    }

    /// Closes: what is queued is still sent, for at most [`Options::close_linger`], then the peer
    /// is told. Ready when the peer has confirmed. What the peer sent before can still be read.
    /// With no time to linger, the connection ends at once with a Reset.
    ///
    /// The peer has as long again to confirm, or the time of three Closes (14 round-trip times)
    /// where that is longer. Then the call is over, and Closes go on in the background
    /// ([`Options::close_retries`]): [`Self::closed`] waits for their end.
    ///
    /// Cancel safe: the close has begun with the first poll and goes on without the future; wait
    /// for it with this call again or with [`Self::closed`].
    ///
    /// # Errors
    /// [`Error::Unsent`]: the time was over before everything queued had left. [`Error::Lost`]: the
    /// connection ended out of order before, or the peer did not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        self.inner.close();
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_closed(w))).await
    }

    /// Waits for the end of the connection, whoever causes it.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// [`Error::Lost`] where it did not end in order.
    pub async fn closed(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_ended(w))).await
    }

    /// The next event in addition to messages, waiting for it; `None` once the connection has
    /// ended and all were read. The latest 64 are kept for who asks late, and the fates of messages
    /// ([`Outgoing::token`]) until they are read.
    ///
    /// Cancel safe: an event is taken only where it is returned.
    pub async fn event(&self) -> Option<ConnectionEvent> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_event(w))).await
    }

    /// A half to send with and a half to receive with, in addition to the connection itself.
    pub fn split(&self) -> (SendHalf, RecvHalf) {
        (SendHalf::new(self.clone()), RecvHalf::new(self.clone()))
    }

    /// A half to send with and a half to receive with, for two tasks. The connection is closed
    /// when both are dropped.
    pub fn into_split(self) -> (SendHalf, RecvHalf) {
        self.split()
    }

    /// The endpoint below, that of [`Self::connect`] too: [`Endpoint::wait_idle`] waits for the end
    /// of connections that were dropped.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.inner.handle.clone())
    }
}

as_fd_by_readiness!(Connection: inner);
