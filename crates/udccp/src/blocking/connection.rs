//! Blocking connection.

use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use udccp_proto::ConnectionStats;
use udccp_wire::ServiceCode;

use super::Endpoint;
use super::park::wait;
use crate::connection::{any_port, gather};
use crate::shared::ConnHandle;
use crate::{
    Address, ConnectionEvent, EndpointOptions, Error, Options, Outgoing, Received, TryRecvError,
    TrySendError,
};

/// A DCCP connection whose calls block; see [`crate::Connection`].
///
/// Clones are handles of the same connection, for threads that send and threads that receive.
/// Each handle has its own timeouts. When the last one is dropped, the connection closes in order
/// in the background, as [`crate::Connection`] does; [`Self::close`] says how it went.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<ConnHandle>,
    read_timeout: Option<Duration>,
    write_timeout: Option<Duration>,
}

impl Connection {
    /// Connects over a UDP port of its own, waiting for the handshake.
    ///
    /// # Errors
    /// As [`crate::Endpoint::connect`].
    pub fn connect(peer: impl Into<Address>, service: ServiceCode) -> Result<Self, Error> {
        Self::connect_with(peer, service, &Options::default(), None)
    }

    /// Connects with settings, waiting for at most `timeout` if given.
    ///
    /// # Errors
    /// As [`crate::Endpoint::connect`]; [`Error::TimedOut`].
    pub fn connect_with(
        peer: impl Into<Address>,
        service: ServiceCode,
        options: &Options,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let peer = peer.into();
        let endpoint = Endpoint::bind_with(any_port(peer.udp), &EndpointOptions::for_peer(&peer))?;
        endpoint.connect(peer, service, options, timeout)
    }

    pub(super) fn new(handle: ConnHandle) -> Self {
        Self { inner: Arc::new(handle), read_timeout: None, write_timeout: None }
    }

    /// How long receiving calls of this handle wait (default: for ever).
    pub fn set_read_timeout(&mut self, timeout: Option<Duration>) {
        self.read_timeout = timeout;
    }

    /// How long sending calls of this handle wait for room (default: for ever).
    pub fn set_write_timeout(&mut self, timeout: Option<Duration>) {
        self.write_timeout = timeout;
    }

    /// Sends a message, waiting while the send queue is full.
    ///
    /// # Errors
    /// As [`crate::Connection::send`]; [`Error::TimedOut`]: the message was not sent.
    pub fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let mut slot = Some(message.into());
        wait(self.write_timeout, |cx| self.inner.poll_send(cx, &mut slot))
    }

    /// Sends one message gathered from several pieces.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<(), Error> {
        self.send(gather(pieces))
    }

    /// Sends messages in order, waiting while the send queue is full, with as few system calls
    /// as possible.
    ///
    /// # Errors
    /// As [`Self::send`]; messages before the failing one were queued.
    pub fn send_batch<I>(&self, messages: I) -> Result<(), Error>
    where
        I: IntoIterator,
        I::Item: Into<Outgoing>,
    {
        let mut messages = messages.into_iter().map(Into::into);
        let mut slot = None;
        wait(self.write_timeout, |cx| self.inner.poll_send_batch(cx, &mut slot, &mut messages))
    }

    /// Sends a message if there is room now.
    ///
    /// # Errors
    /// [`TrySendError::Full`] gives the message back.
    pub fn try_send(&self, message: impl Into<Outgoing>) -> Result<(), TrySendError> {
        self.inner.try_send(message.into())
    }

    /// The next message; `None` once the connection was closed in order and all was read.
    ///
    /// # Errors
    /// [`Error::Lost`]; [`Error::TimedOut`].
    pub fn recv(&self) -> Result<Option<Bytes>, Error> {
        wait(self.read_timeout, |cx| self.inner.poll_recv(cx))
    }

    /// The next message with what is known of it: with [`Options::deliver_corrupt`], whether it was
    /// damaged on the way. `None` as for [`Self::recv`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_with_meta(&self) -> Result<Option<Received>, Error> {
        wait(self.read_timeout, |cx| self.inner.poll_recv_with_meta(cx))
    }

    /// Appends up to `max` messages to `into`, waiting for the first. Returns how many; 0 once
    /// the connection was closed in order and all was read.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_batch(&self, into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error> {
        wait(self.read_timeout, |cx| self.inner.poll_recv_batch(cx, into, max))
    }

    /// The next message if there is one now.
    ///
    /// # Errors
    /// [`TryRecvError::Empty`], or the end of the connection.
    pub fn try_recv(&self) -> Result<Bytes, TryRecvError> {
        self.inner.try_recv()
    }

    /// Waits until everything sent so far is accounted for; see
    /// [`crate::Connection::acknowledged`].
    ///
    /// # Errors
    /// The connection ended before; [`Error::TimedOut`].
    pub fn acknowledged(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait(timeout, |cx| self.inner.poll_acknowledged(cx))
    }

    /// Closes: what is queued is still sent, for at most [`Options::close_linger`], then the peer
    /// is told. Returns when the peer has confirmed.
    ///
    /// # Errors
    /// [`Error::Unsent`]: the time was over before everything queued had left. [`Error::Lost`]: the
    /// connection ended out of order before, or the peer never confirmed.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.close();
        wait(None, |cx| self.inner.poll_closed(cx))
    }

    /// Waits for the end of the connection, whoever causes it.
    ///
    /// # Errors
    /// [`Error::Lost`] where it did not end in order; [`Error::TimedOut`].
    pub fn closed(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait(timeout, |cx| self.inner.poll_ended(cx))
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
    ///
    /// # Errors
    /// [`Error::TimedOut`].
    pub fn event(&self, timeout: Option<Duration>) -> Result<Option<ConnectionEvent>, Error> {
        wait(timeout, |cx| self.inner.poll_event(cx).map(Ok))
    }

    /// Ends the connection at once with Reset, Aborted. Queued messages are dropped.
    pub fn abort(&self) {
        self.inner.abort();
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
