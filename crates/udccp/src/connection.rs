//! A connection: messages both ways, with boundaries, without retransmission.

use std::future::poll_fn;
use std::io::IoSlice;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use udccp_proto::ConnectionStats;
use udccp_wire::ServiceCode;

use crate::shared::ConnHandle;
use crate::{
    Address, ConnectionEvent, Endpoint, EndpointOptions, Error, Options, Outgoing, Received,
    TryRecvError, TrySendError,
};

/// A DCCP connection.
///
/// Every method takes `&self`, so tasks may share a connection (in an `Arc`, or by
/// [`Self::into_split`]). Messages keep their boundaries and are sent once: what the network loses
/// stays lost, and [`Self::stats`] counts it.
///
/// [`Self::close`] delivers what was accepted, waits for the end, and says how it went. Dropping a
/// connection does the same in the background, and nobody hears how it went; the end of the process
/// (the return of `main`, `std::process::exit`) waits for it within [`Options::close_linger`].
#[derive(Debug)]
pub struct Connection {
    inner: Arc<ConnHandle>,
}

impl Connection {
    /// Connects over a UDP port of its own (RFC 6773 section 3.8 recommends one for each
    /// connection), or over a raw socket of its own to an [`Address::raw`]. `peer` is a
    /// [`SocketAddr`] or an [`Address`].
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
    /// # Errors
    /// As [`Endpoint::connect`].
    pub async fn connect_with(
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
    ) -> Result<Self, Error> {
        let peer = peer.into();
        Endpoint::bind_with(any_port(peer.udp), &EndpointOptions::for_peer(&peer))?
            .connect(peer, service, options)
            .await
    }

    pub(crate) fn new(handle: ConnHandle) -> Self {
        Self { inner: Arc::new(handle) }
    }

    /// Sends a message, waiting while the send queue is full. It has left, or will as soon as
    /// congestion control lets it.
    ///
    /// Cancel safe: if the future is dropped before it is ready, the message was not sent.
    ///
    /// # Errors
    /// [`Error::MessageTooLarge`]; [`Error::Closed`] or [`Error::Lost`] once the connection ended.
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let mut slot = Some(message.into());
        poll_fn(|cx| self.inner.poll_send(cx, &mut slot)).await
    }

    /// Sends one message gathered from several pieces.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub async fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<(), Error> {
        self.send(gather(pieces)).await
    }

    /// Sends messages in order, waiting while the send queue is full, with as few system calls
    /// as possible.
    ///
    /// # Errors
    /// As [`Self::send`]; messages before the failing one were queued.
    pub async fn send_batch<I>(&self, messages: I) -> Result<(), Error>
    where
        I: IntoIterator,
        I::Item: Into<Outgoing>,
    {
        let mut messages = messages.into_iter().map(Into::into);
        let mut slot = None;
        poll_fn(|cx| self.inner.poll_send_batch(cx, &mut slot, &mut messages)).await
    }

    /// Sends a message if there is room now.
    ///
    /// # Errors
    /// [`TrySendError::Full`] gives the message back.
    pub fn try_send(&self, message: impl Into<Outgoing>) -> Result<(), TrySendError> {
        self.inner.try_send(message.into())
    }

    /// Waits until the send queue has room for a message.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn writable(&self) -> Result<(), Error> {
        poll_fn(|cx| self.inner.poll_writable(cx)).await
    }

    /// The next message; `None` once the connection was closed in order and all was read.
    ///
    /// Cancel safe.
    ///
    /// # Errors
    /// [`Error::Lost`] once all was read and the connection ended out of order.
    pub async fn recv(&self) -> Result<Option<Bytes>, Error> {
        poll_fn(|cx| self.inner.poll_recv(cx)).await
    }

    /// The next message with what is known of it: with [`Options::deliver_corrupt`], whether it was
    /// damaged on the way. `None` as for [`Self::recv`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_with_meta(&self) -> Result<Option<Received>, Error> {
        poll_fn(|cx| self.inner.poll_recv_with_meta(cx)).await
    }

    /// Appends up to `max` messages to `into`, waiting for the first. Returns how many; 0 once
    /// the connection was closed in order and all was read.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub async fn recv_batch(&self, into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error> {
        poll_fn(|cx| self.inner.poll_recv_batch(cx, into, max)).await
    }

    /// The next message if there is one now.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`], or the end of the connection.
    pub fn try_recv(&self) -> Result<Bytes, TryRecvError> {
        self.inner.try_recv()
    }

    /// Waits until there is a message to read, or the end.
    ///
    /// # Errors
    /// Only if the runtime that drives the socket has shut down.
    pub async fn readable(&self) -> Result<(), Error> {
        poll_fn(|cx| self.inner.poll_readable(cx)).await
    }

    /// Waits until the send queue is empty: everything sent so far has gone to the network (which
    /// may lose it), or was dropped.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn flushed(&self) -> Result<(), Error> {
        poll_fn(|cx| self.inner.poll_flushed(cx)).await
    }

    /// Waits until everything sent so far has left and is accounted for: reported received by
    /// the peer, or judged lost. `stats` then tells how much of which.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn acknowledged(&self) -> Result<(), Error> {
        poll_fn(|cx| self.inner.poll_acknowledged(cx)).await
    }

    /// Closes: what is queued is still sent, for at most [`Options::close_linger`], then the peer
    /// is told. Ready when the peer has confirmed. What the peer sent before can still be read.
    ///
    /// # Errors
    /// [`Error::Unsent`]: the time was over before everything queued had left. [`Error::Lost`]: the
    /// connection ended out of order before, or the peer never confirmed.
    pub async fn close(&self) -> Result<(), Error> {
        self.inner.close();
        poll_fn(|cx| self.inner.poll_closed(cx)).await
    }

    /// Waits for the end of the connection, whoever causes it.
    ///
    /// # Errors
    /// [`Error::Lost`] where it did not end in order.
    pub async fn closed(&self) -> Result<(), Error> {
        poll_fn(|cx| self.inner.poll_ended(cx)).await
    }

    /// Reads no more: what waits is thrown away, [`Self::recv`] gives `None`, and the peer is told
    /// when it sends on (Drop Code 1, RFC 4340 section 11.7.2). Sending goes on. This is all that
    /// DCCP has of a half-closed connection.
    pub fn shutdown_read(&self) {
        self.inner.shutdown_read();
    }

    /// Asks the peer not to go faster (Slow Receiver, RFC 4340 section 11.6), until taken back. A
    /// receive queue that fills does so by itself.
    pub fn set_slow_receiver(&self, is_slow: bool) {
        self.inner.set_slow_receiver(is_slow);
    }

    /// The next event in addition to messages, waiting for it; `None` once the connection has
    /// ended. The latest 64 are kept for who asks late.
    pub async fn event(&self) -> Option<ConnectionEvent> {
        poll_fn(|cx| self.inner.poll_event(cx)).await
    }

    /// Ends the connection at once with Reset, Aborted. Queued messages are dropped.
    pub fn abort(&self) {
        self.inner.abort();
    }

    /// A half to send with and a half to receive with, beside the connection itself.
    pub fn split(&self) -> (SendHalf, RecvHalf) {
        let half = || Self { inner: Arc::clone(&self.inner) };
        (SendHalf(half()), RecvHalf(half()))
    }

    /// A half to send with and a half to receive with, for two tasks. The connection is closed
    /// when both are dropped.
    pub fn into_split(self) -> (SendHalf, RecvHalf) {
        self.split()
    }

    /// The path to the peer is another one now (another network or route under the same addresses):
    /// congestion control and the search for the path's MTU begin anew (RFC 4340 section 10.5).
    pub fn path_changed(&self) {
        self.inner.path_changed();
    }

    /// What the peer said in words when it reset the connection (the Error Text of RFC 4340 section
    /// 5.6); `None` where it said nothing.
    pub fn reset_text(&self) -> Option<String> {
        self.inner.reset_text()
    }

    /// Everything that can be said about the connection in numbers; `None` only after its end.
    pub fn stats(&self) -> Option<ConnectionStats> {
        self.inner.stats()
    }

    /// The endpoint below, that of [`Self::connect`] too: [`Endpoint::wait_idle`] waits for the end
    /// of connections that were dropped.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.inner.handle.clone())
    }

    /// The service code that client and server agreed on.
    pub fn service_code(&self) -> ServiceCode {
        self.inner.service
    }

    /// The peer's address and ports.
    pub fn peer_addr(&self) -> Address {
        self.inner.peer()
    }

    /// Our address and ports.
    pub fn local_addr(&self) -> Address {
        self.inner.local()
    }

    /// The largest message in bytes that fits in one packet of this path now.
    pub fn max_message_size(&self) -> usize {
        self.inner.max_message_size()
    }
}

/// The sending half of a connection.
#[derive(Debug)]
pub struct SendHalf(Connection);

/// The receiving half of a connection.
#[derive(Debug)]
pub struct RecvHalf(Connection);

impl SendHalf {
    /// See [`Connection::send`].
    ///
    /// # Errors
    /// See [`Connection::send`].
    pub async fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        self.0.send(message).await
    }

    /// See [`Connection::send_batch`].
    ///
    /// # Errors
    /// See [`Connection::send_batch`].
    pub async fn send_batch<I>(&self, messages: I) -> Result<(), Error>
    where
        I: IntoIterator,
        I::Item: Into<Outgoing>,
    {
        self.0.send_batch(messages).await
    }

    /// See [`Connection::try_send`].
    ///
    /// # Errors
    /// See [`Connection::try_send`].
    pub fn try_send(&self, message: impl Into<Outgoing>) -> Result<(), TrySendError> {
        self.0.try_send(message)
    }

    /// See [`Connection::close`].
    ///
    /// # Errors
    /// See [`Connection::close`].
    pub async fn close(&self) -> Result<(), Error> {
        self.0.close().await
    }

    /// The whole connection.
    pub fn connection(&self) -> &Connection {
        &self.0
    }
}

impl RecvHalf {
    /// See [`Connection::recv`].
    ///
    /// # Errors
    /// See [`Connection::recv`].
    pub async fn recv(&self) -> Result<Option<Bytes>, Error> {
        self.0.recv().await
    }

    /// See [`Connection::recv_batch`].
    ///
    /// # Errors
    /// See [`Connection::recv_batch`].
    pub async fn recv_batch(&self, into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error> {
        self.0.recv_batch(into, max).await
    }

    /// See [`Connection::try_recv`].
    ///
    /// # Errors
    /// See [`Connection::try_recv`].
    pub fn try_recv(&self) -> Result<Bytes, TryRecvError> {
        self.0.try_recv()
    }

    /// Reads no more; see [`Connection::shutdown_read`].
    pub fn close(self) {
        self.0.shutdown_read();
    }

    /// The whole connection.
    pub fn connection(&self) -> &Connection {
        &self.0
    }
}

/// Any port of the family of `peer`.
pub(crate) fn any_port(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}

pub(crate) fn gather(pieces: &[IoSlice<'_>]) -> Bytes {
    let mut whole = BytesMut::with_capacity(pieces.iter().map(|p| p.len()).sum());
    pieces.iter().for_each(|p| whole.extend_from_slice(p));
    whole.freeze()
}
