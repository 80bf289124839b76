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
/// All methods take `&self`, and clones are handles of the same connection, so that tasks can share
/// it ([`Self::into_split`] makes two halves). Messages keep their boundaries and are sent once:
/// what the network loses is not sent again, and [`Self::stats`] counts it.
///
/// [`Self::close`] delivers what was queued, waits until the connection has ended, and reports how
/// it ended. Dropping the last handle of a connection does the same in the background, without a
/// report. When the process ends (by a return from `main` or `std::process::exit`), it waits for
/// that, within [`Options::close_linger`].
///
/// # Cancel safety
/// Each method says what happens if its future is dropped before it is ready. In short: nothing was
/// sent, taken or lost, and the same call can be made again later. The `poll_` methods are for
/// hand-written futures and work on any runtime. Several tasks may wait for the same thing.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<ConnHandle>,
}

impl Connection {
    /// Connects over a UDP port of its own (RFC 6773 section 3.8 recommends one for each
    /// connection), or, if `peer` is an [`Address::raw`], over a raw socket of its own. `peer` is a
    /// [`SocketAddr`](std::net::SocketAddr) or an [`Address`].
    ///
    /// Dropping the future cancels the handshake and sends the server a Reset.
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
    /// Dropping the future cancels the handshake and sends the server a Reset.
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

    /// Connects to a host by name, written as for [`Address::resolve`]: `example.org:5004`. If the
    /// name has several addresses, they are tried in turn, IPv6 and IPv4 alternately, 250 ms apart.
    /// The first that answers is used, and the other handshakes are cancelled (RFC 8305).
    ///
    /// Dropping the future cancels all handshakes; a lookup that has begun runs to its end.
    ///
    /// # Errors
    /// [`Error::Io`] if the name has no address; otherwise as [`Endpoint::connect`], for the
    /// address that failed last.
    pub async fn connect_host(
        host: &str,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Self, Error> {
        let host = host.to_owned();
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
    /// As [`Endpoint::connect`], for the address that failed last.
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

    /// Starts to connect and returns the handshake, which can be awaited, watched or cancelled.
    ///
    /// # Errors
    /// The socket cannot be opened, or a setting is invalid.
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

    /// Queues a message, waiting while the send queue is full. It leaves as soon as congestion
    /// control allows.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the message was not sent.
    ///
    /// # Errors
    /// [`Error::MessageTooLarge`] if it does not fit in one packet; [`Error::Closed`] or
    /// [`Error::Lost`] if the connection has ended.
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let mut slot = Some(message.into());
        let mut call = self.inner.call();
        let mut send = |cx: &mut Context<'_>| call.poll(cx, |conn, w| conn.poll_send(w, &mut slot));
        poll_fn(|cx| coop::counted(cx, &mut send)).await
    }

    /// Sends one message that is gathered from several buffers.
    ///
    /// Cancel safe as [`Self::send`] is.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<(), Error> {
        self.send(gather(pieces)).await
    }

    /// Sends messages in order, waiting while the send queue is full, with as few system calls as
    /// possible.
    ///
    /// Cancel safe: every message taken out of the iterator was queued, so that an iterator passed
    /// by `&mut` can be continued where it stopped. The exception is
    /// [`QueuePolicy::DropLowest`](crate::QueuePolicy): one message that was waiting for room may
    /// be dropped with the future.
    ///
    /// # Errors
    /// As [`Self::send`]; the messages before the one that failed were queued.
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
    /// [`Error::Closed`] or [`Error::Lost`] if nothing more can be sent.
    pub async fn writable(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_writable(w))).await
    }

    /// Receives the next message. `None` means that the connection was closed in order, or
    /// [`Self::shutdown_read`] was called, and everything was read. An empty message is `Some` of
    /// no bytes.
    ///
    /// Cancel safe: a message is taken only when it is returned.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection was not closed in order and everything was read.
    pub async fn recv(&self) -> Result<Option<Bytes>, Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| coop::counted(cx, |cx| call.poll(cx, |conn, w| conn.poll_recv(w)))).await
    }

    /// Receives the next message and whether it was damaged on the way, which is possible only with
    /// [`Options::deliver_corrupt`]. `None` as for [`Self::recv`].
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

    /// Appends up to `max` messages to `into`, waiting for the first one, and returns their number.
    /// 0 means the end, as `None` does for [`Self::recv`], or that `max` is 0.
    ///
    /// Cancel safe: messages are appended only when their number is returned.
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

    /// Receives the next message into `buffer`; `None` as for [`Self::recv`]. What does not fit is
    /// discarded, which [`ReceivedInto::is_truncated`] reports.
    ///
    /// Cancel safe as [`Self::recv`] is; the buffer is written only when the call returns.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_into(&self, buffer: &mut [u8]) -> Result<Option<ReceivedInto>, Error> {
        Ok(self.recv_with_meta().await?.map(|received| received.copy_into(buffer)))
    }

    /// Returns the next message and leaves it in the queue (`MSG_PEEK`); `None` as for
    /// [`Self::recv`]. The data is not copied.
    ///
    /// Cancel safe: it takes nothing.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn peek(&self) -> Result<Option<Bytes>, Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_peek(w))).await
    }

    /// Waits until there is a message to read, or the end has come.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// Only if the runtime that drives the socket has shut down.
    pub async fn readable(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_readable(w))).await
    }

    /// Waits until the send queue is empty: each message sent so far has been handed to the
    /// network, which may lose it, or was dropped.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Lost`] if the connection ended first.
    pub async fn flushed(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_flushed(w))).await
    }

    /// Waits until the fate of everything sent so far is known: the peer has reported it received,
    /// or it counts as lost. [`Self::stats`] has the numbers.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Lost`] if the connection ended first.
    pub async fn acknowledged(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_acknowledged(w))).await
    }

    /// Closes the connection: sends what is queued, for at most [`Options::close_linger`], then
    /// tells the peer, and waits until the peer has confirmed. What the peer sent before can still
    /// be read. If `close_linger` is zero, the connection ends at once with a Reset.
    ///
    /// The peer has another `close_linger` to confirm, or the time that three Closes take (14
    /// round-trip times) if that is longer. Then the call fails, while Closes are still sent in the
    /// background ([`Options::close_retries`]); [`Self::closed`] waits for the end of that.
    ///
    /// Cancel safe: the first poll begins the close, and it continues without the future. To wait
    /// for it, call this again or call [`Self::closed`].
    ///
    /// # Errors
    /// [`Error::Unsent`] if the time was over before all queued messages had left; [`Error::Lost`]
    /// if the connection had ended otherwise before, or the peer did not confirm.
    pub async fn close(&self) -> Result<(), Error> {
        self.inner.close();
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_closed(w))).await
    }

    /// Waits until the connection has ended, whichever side ends it.
    ///
    /// Cancel safe: it only waits.
    ///
    /// # Errors
    /// [`Error::Lost`] if it was not closed in order.
    pub async fn closed(&self) -> Result<(), Error> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_ended(w))).await
    }

    /// Waits for the next event (anything but a message); `None` after the connection has ended and
    /// all events were read. Up to 64 unread events are kept, of more the newest; the fates of
    /// messages ([`Outgoing::token`]) are all kept until they are read.
    ///
    /// Cancel safe: an event is taken only when it is returned.
    pub async fn event(&self) -> Option<ConnectionEvent> {
        let mut call = self.inner.call();
        poll_fn(|cx| call.poll(cx, |conn, w| conn.poll_event(w))).await
    }

    /// Two more handles of this connection: one to send with and one to receive with.
    pub fn split(&self) -> (SendHalf, RecvHalf) {
        (SendHalf::new(self.clone()), RecvHalf::new(self.clone()))
    }

    /// Splits the connection into a half to send with and a half to receive with, for two tasks.
    /// The connection is closed when both are dropped.
    pub fn into_split(self) -> (SendHalf, RecvHalf) {
        self.split()
    }

    /// The endpoint that carries this connection, also if [`Self::connect`] opened it. Its
    /// [`Endpoint::wait_idle`] waits for connections that were dropped to end.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.inner.handle.clone())
    }
}

as_fd_by_readiness!(Connection: inner);
