//! Blocking connections.

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
/// Clones are handles of the same connection, for threads that send and threads that receive. Each
/// handle has its own timeouts. When the last one is dropped, the connection closes in the
/// background, as a [`crate::Connection`] does. To learn how the close went, call [`Self::close`];
/// to have the drop wait for it, [`Self::set_wait_on_drop`].
///
/// The `poll_` methods do not block and work on any runtime.
#[derive(Clone, Debug)]
pub struct Connection {
    inner: Arc<ConnHandle>,
    read_timeout: Timeout,
    write_timeout: Timeout,
}

impl Connection {
    /// Connects over a UDP port of its own, and waits for the handshake.
    ///
    /// # Errors
    /// As [`crate::Endpoint::connect`].
    pub fn connect(peer: impl Into<Address>, service: ServiceCode) -> Result<Self, Error> {
        Self::connect_with(peer, service, &Options::default(), None)
    }

    /// Connects with settings, and waits for the handshake, for at most `timeout` if given.
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
    /// [`crate::Connection::connect_host`]. Waits for at most `timeout` if given, not counting the
    /// lookup.
    ///
    /// # Errors
    /// As that method; [`Error::TimedOut`].
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

    /// As [`Self::connect_any`], with settings of the socket. Whether to use raw IP is taken from
    /// each address, not from `socket`.
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
                // Another address is left, and there is time to try it.
                Ok(None) => {}
                Err(Error::TimedOut) if left.is_none_or(|left| turn < Some(left)) => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Starts to connect and returns the handshake, which can be waited for, watched or cancelled.
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

    /// Whether dropping the last handle blocks until the connection has ended (default false: the
    /// close goes on in the background).
    pub fn set_wait_on_drop(&self, waits: bool) {
        self.inner.waits_on_drop.store(waits, std::sync::atomic::Ordering::Relaxed);
    }

    /// Sets how long receiving calls of this handle wait before [`Error::TimedOut`] (default
    /// `None`: for ever). Zero: they do not wait.
    pub fn set_read_timeout(&self, timeout: Option<Duration>) {
        self.read_timeout.set(timeout);
    }

    /// Sets how long sending calls of this handle wait for room before [`Error::TimedOut`] (default
    /// `None`: for ever). Zero: they do not wait.
    pub fn set_write_timeout(&self, timeout: Option<Duration>) {
        self.write_timeout.set(timeout);
    }

    /// Queues a message, waiting while the send queue is full.
    ///
    /// # Errors
    /// As [`crate::Connection::send`]; [`Error::TimedOut`], and the message was not sent.
    pub fn send(&self, message: impl Into<Outgoing>) -> Result<(), Error> {
        let mut slot = Some(message.into());
        let call = self.inner.call();
        wait_for(self.write_timeout.get(), call, |conn, w| conn.poll_send(w, &mut slot))
    }

    /// Sends one message that is gathered from several buffers.
    ///
    /// # Errors
    /// As [`Self::send`].
    pub fn send_vectored(&self, pieces: &[IoSlice<'_>]) -> Result<(), Error> {
        self.send(gather(pieces))
    }

    /// Sends messages in order, waiting while the send queue is full, with as few system calls as
    /// possible.
    ///
    /// # Errors
    /// As [`Self::send`]; the messages before the one that failed were queued.
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

    /// Waits for a message. A call that times out leaves no waker behind.
    fn wait_to_read<T>(
        &self,
        timeout: Option<Duration>,
        mut poll: impl FnMut(&ConnHandle, Waiter<'_>) -> Poll<Result<T, Error>>,
    ) -> Result<T, Error> {
        let mut call = self.inner.call();
        wait_to_read(self.inner.shared(), timeout, move |waker, caller_driver| {
            call.poll_from(waker, caller_driver, &mut poll)
        })
    }

    /// Receives the next message; see [`crate::Connection::recv`] for `None`.
    ///
    /// # Errors
    /// [`Error::Lost`] if the connection was not closed in order and everything was read;
    /// [`Error::TimedOut`] after the read timeout.
    pub fn recv(&self) -> Result<Option<Bytes>, Error> {
        self.wait_to_read(self.read_timeout.get(), ConnHandle::poll_recv)
    }

    /// Receives the next message and whether it was damaged on the way, which is possible only with
    /// [`Options::deliver_corrupt`]. `None` as for [`Self::recv`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_with_meta(&self) -> Result<Option<Received>, Error> {
        self.wait_to_read(self.read_timeout.get(), ConnHandle::poll_recv_with_meta)
    }

    /// Appends up to `max` messages to `into`, waiting for the first one, and returns their number.
    /// 0 means the end, as `None` does for [`Self::recv`], or that `max` is 0.
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_batch(&self, into: &mut Vec<Bytes>, max: usize) -> Result<usize, Error> {
        let timeout = self.read_timeout.get();
        self.wait_to_read(timeout, |conn, waiter| conn.poll_recv_batch(waiter, into, max))
    }

    /// Receives the next message into `buffer`; see [`crate::Connection::recv_into`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn recv_into(&self, buffer: &mut [u8]) -> Result<Option<ReceivedInto>, Error> {
        Ok(self.recv_with_meta()?.map(|received| received.copy_into(buffer)))
    }

    /// Returns the next message and leaves it in the queue; see [`crate::Connection::peek`].
    ///
    /// # Errors
    /// As [`Self::recv`].
    pub fn peek(&self) -> Result<Option<Bytes>, Error> {
        self.wait_to_read(self.read_timeout.get(), ConnHandle::poll_peek)
    }

    /// Waits until there is a message to read, or the end has come, for at most `timeout` if given.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Io`] if the socket's thread has ended.
    pub fn readable(&self, timeout: Option<Duration>) -> Result<(), Error> {
        self.wait_to_read(timeout, ConnHandle::poll_readable)
    }

    /// Waits until the send queue has room for a message, for at most `timeout` if given.
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Lost`] if nothing more can be sent; [`Error::TimedOut`].
    pub fn writable(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_writable)
    }

    /// Waits until the send queue is empty, for at most `timeout` if given; see
    /// [`crate::Connection::flushed`].
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Lost`] if the connection ended first; [`Error::TimedOut`].
    pub fn flushed(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_flushed)
    }

    /// Waits until the fate of everything sent so far is known, for at most `timeout` if given; see
    /// [`crate::Connection::acknowledged`].
    ///
    /// # Errors
    /// [`Error::Closed`] or [`Error::Lost`] if the connection ended first; [`Error::TimedOut`].
    pub fn acknowledged(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_acknowledged)
    }

    /// Closes the connection: sends what is queued, for at most [`Options::close_linger`], then
    /// tells the peer. Returns when the peer has confirmed, or when its time to do so is over: see
    /// [`crate::Connection::close`].
    ///
    /// # Errors
    /// [`Error::Unsent`] if the time was over before all queued messages had left; [`Error::Lost`]
    /// if the connection had ended otherwise before, or the peer did not confirm.
    pub fn close(&self) -> Result<(), Error> {
        self.inner.close();
        wait(None, |cx| self.inner.poll_closed(cx.into()))
    }

    /// Waits until the connection has ended, whichever side ends it, for at most `timeout` if
    /// given.
    ///
    /// # Errors
    /// [`Error::Lost`] if it was not closed in order; [`Error::TimedOut`].
    pub fn closed(&self, timeout: Option<Duration>) -> Result<(), Error> {
        wait_for(timeout, self.inner.call(), ConnHandle::poll_ended)
    }

    /// Waits for the next event (anything but a message), for at most `timeout` if given. `None`
    /// after the connection has ended and all events were read. See [`crate::Connection::event`]
    /// for how many are kept.
    ///
    /// # Errors
    /// [`Error::TimedOut`]; [`Error::Forked`].
    pub fn event(&self, timeout: Option<Duration>) -> Result<Option<ConnectionEvent>, Error> {
        if !self.inner.shared().is_own_process() {
            return Err(Error::Forked);
        }
        let call = self.inner.call();
        wait_for(timeout, call, |conn, waiter| conn.poll_event(waiter).map(Ok))
    }

    /// The endpoint that carries this connection, also if [`Self::connect`] opened it. Its
    /// [`Endpoint::wait_idle`] waits for connections that were dropped to end.
    pub fn endpoint(&self) -> Endpoint {
        Endpoint::of(self.inner.handle.clone())
    }
}

as_fd_by_readiness!(Connection: inner);
