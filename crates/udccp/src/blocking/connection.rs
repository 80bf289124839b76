//! Blocking connection.

use std::io::IoSlice;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use udccp_wire::ServiceCode;

use super::park::{Timeout, now};
use super::shared_driver::wait_to_read;
use super::{Connecting, Endpoint, wait, wait_for};
use crate::address::any_port;
use crate::message::gather;
use crate::methods::{as_fd_by_readiness, connection_methods};
use crate::names::{ATTEMPT_DELAY, Race, unresolved};
use crate::shared::{ConnHandle, Waiter};
use crate::{
    Address, ConnectionEvent, EndpointOptions, Error, Options, Outgoing, Received, ReceivedInto,
};

/// A DCCP connection whose calls block; see [`crate::Connection`].
///
/// Clones are handles of the same connection, for threads that send and threads that receive.
/// Each handle has its own timeouts. When the last one is dropped, the connection closes in order
/// in the background, as [`crate::Connection`] does; [`Self::close`] says how it went, and
/// [`Self::set_drop_waits`] has the drop wait.
///
/// The `poll_` methods need no thread: they work on any runtime.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<ConnHandle>,
    read_timeout: Timeout,
    write_timeout: Timeout,
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
        let below = EndpointOptions::new().for_peer(peer)?;
        Endpoint::bind_with(any_port(peer.udp), &below)?.connect(peer, service, options, timeout)
    }

    pub(super) fn new(handle: ConnHandle) -> Self {
        let (read_timeout, write_timeout) = (Timeout::default(), Timeout::default());
        Self { inner: Arc::new(handle), read_timeout, write_timeout }
    }

    connection_methods!();

    /// Connects to a host by name, trying its addresses in turn; see
    /// [`crate::Connection::connect_host`]. Waits for at most `timeout` if given, beyond the
    /// lookup.
    ///
    /// # Errors
    /// As there; [`Error::TimedOut`].
    pub fn connect_host(
        host: &str,
        service: ServiceCode,
        options: &Options,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let found = Address::resolve(host).map_err(unresolved)?;
        Self::connect_any(&found, service, options, timeout)
    }

    /// Connects to the first of several addresses of one host that answers.
    ///
    /// # Errors
    /// As [`Self::connect_host`].
    pub fn connect_any(
        addresses: &[Address],
        service: ServiceCode,
        options: &Options,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        Self::connect_any_with(addresses, service, options, &EndpointOptions::new(), timeout)
    }

    /// As [`Self::connect_any`], with settings of the socket below. Each address says itself
    /// whether it is one of raw IP.
    ///
    /// # Errors
    /// As [`Self::connect_host`].
    pub fn connect_any_with(
        addresses: &[Address],
        service: ServiceCode,
        options: &Options,
        below: &EndpointOptions,
        timeout: Option<Duration>,
    ) -> Result<Self, Error> {
        let start = |peer: Address| {
            let below = below.clone().for_peer(peer)?;
            let endpoint = Endpoint::bind_with(any_port(peer.udp), &below)?;
            endpoint.start_connect(peer, service, options)
        };
        let mut race = Race::new(addresses);
        let deadline = timeout.and_then(|timeout| now().checked_add(timeout));
        loop {
            race.start_next(start);
            let left = deadline.map(|at| at.saturating_duration_since(now()));
            let next = race.has_more().then_some(ATTEMPT_DELAY);
            let turn = left.into_iter().chain(next).min();
            match wait(turn, |cx| race.poll(cx, Connecting::poll_connect)) {
                Ok(Some(connection)) => return Ok(connection),
                // Another address is left, and there is time for it.
                Ok(None) => {}
                Err(Error::TimedOut) if left.is_none_or(|left| turn < Some(left)) => {}
                Err(e) => return Err(e),
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

    /// Whether the drop of the last handle blocks until the close is done, for at most the time to
    /// linger and what the peer takes to confirm (default: no, it goes on in the background).
    pub fn set_drop_waits(&self, waits: bool) {
        self.inner.waits_on_drop.store(waits, std::sync::atomic::Ordering::Relaxed);
    }

    /// How long receiving calls of this handle wait (default: for ever).
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.read_timeout.set(timeout);
    }

    /// How long sending calls of this handle wait for room (default: for ever).
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.write_timeout.set(timeout);
    }

    /// Sends a message, waiting while the send queue is full.
    ///
    /// # Errors
    /// As [`crate::Connection::send`]; [`Error::TimedOut`]: the message was not sent.
    pub fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let mut slot = Some(message.into());
        let call = self.inner.call();
        wait_for(self.write_timeout.get(), call, |conn, w| conn.poll_send(w, &mut slot))
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
        wait_for(self.write_timeout.get(), self.inner.call(), |conn, waiter| {
            conn.poll_send_batch(waiter, &mut slot, &mut messages)
        })
    }

    /// Waits for a message. A call that runs out of time leaves nothing of its thread behind.
    fn wait_to_read<T>(
        &self,
        timeout: Option<Duration>,
        mut poll: impl FnMut(&ConnHandle, Waiter<'_>) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut call = self.inner.call();
        wait_to_read(self.inner.shared(), timeout, move |waker, seat| {
            call.poll_from(waker, seat, &mut poll)
        })
    }

    /// The next message; `None` once the connection was closed in order and all was read.
    ///
    /// # Errors
    /// [`Error::Lost`]; [`Error::TimedOut`].
    pub fn recv(&self) -> Result<Option<Bytes>, Error> {
        self.wait_to_read(self.read_timeout.get(), ConnHandle::poll_recv)
    }

    /// The next message with what is known of it: with [`Options::deliver_corrupt`], whether it was
    /// damaged on the way. `None` as for [`Self::recv`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_with_meta(&self) -> Result<Option<Received>, Error> {
        self.wait_to_read(self.read_timeout.get(), ConnHandle::poll_recv_with_meta)
    }

    /// Appends up to `max` messages to `into`, waiting for the first. Returns how many; 0 once
    /// the connection was closed in order and all was read.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_batch(&self, into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error> {
        let timeout = self.read_timeout.get();
        self.wait_to_read(timeout, |conn, waiter| conn.poll_recv_batch(waiter, into, max))
    }

    /// The next message, copied into `buffer`; see [`crate::Connection::recv_into`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_into(&self, buffer: &mut [u8]) -> Result<Option<ReceivedInto>, Error> {
        Ok(self.recv_with_meta()?.map(|received| received.copy_into(buffer)))
    }

    /// The next message, which stays; see [`crate::Connection::peek`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn peek(&self) -> Result<Option<Bytes>, Error> {
        self.wait_to_read(self.read_timeout.get(), ConnHandle::poll_peek)
    }

    /// Waits until there is a message to read, or the end.
    ///
    /// # Errors
    /// Only if the socket's thread has ended; [`Error::TimedOut`].
    pub fn readable(&self, timeout: Option<Duration>) -> Result<(), Error> {
        self.wait_to_read(timeout, ConnHandle::poll_readable)
    }

    /// Waits until the send queue has room for a message.
    ///
    /// # Errors
    /// The connection ended; [`Error::TimedOut`].
    pub fn writable(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_writable)
    }

    /// Waits until the send queue is empty; see [`crate::Connection::flushed`].
    ///
    /// # Errors
    /// The connection ended before; [`Error::TimedOut`].
    pub fn flushed(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_flushed)
    }

    /// Waits until everything sent so far is accounted for; see
    /// [`crate::Connection::acknowledged`].
    ///
    /// # Errors
    /// The connection ended before; [`Error::TimedOut`].
    pub fn acknowledged(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_acknowledged)
    }

    /// Closes: what is queued is still sent, for at most [`Options::close_linger`], then the peer
    /// is told. Returns when the peer has confirmed, or has had the time for it:
    /// [`crate::Connection::close`] says how long.
    ///
    /// # Errors
    /// [`Error::Unsent`]: the time was over before everything queued had left. [`Error::Lost`]: the
    /// connection ended out of order before, or the peer did not confirm.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.close();
        wait(None, |cx| self.inner.poll_closed(cx.into()))
    }

    /// Waits for the end of the connection, whoever causes it.
    ///
    /// # Errors
    /// [`Error::Lost`] where it did not end in order; [`Error::TimedOut`].
    pub fn closed(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_ended)
    }

    /// The next event in addition to messages, waiting for it; `None` once the connection has
    /// ended and all were read. The latest 64 are kept for who asks late, and the fates of messages
    /// ([`Outgoing::token`]) until they are read.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Forked`].
    pub fn event(&self, timeout: Option<Duration>) -> Result<Option<ConnectionEvent>, Error> {
        if !self.inner.shared().is_at_home() {
            return Err(Error::Forked);
        }
        let call = self.inner.call();
        wait_for(timeout, call, |conn, waiter| conn.poll_event(waiter).map(Ok))
    }

    /// The endpoint below, that of [`Self::connect`] too: [`Endpoint::wait_idle`] waits for the end
    /// of connections that were dropped.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.inner.handle.clone())
    }
}

as_fd_by_readiness!(Connection: inner);
