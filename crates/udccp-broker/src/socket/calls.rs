//! The calls of a program on its socket: addresses, connect, listen, options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use rustix::io::Errno;
use udccp_preload::abi::{SHUT_RD, SHUT_WR};
use udccp_preload::protocol::*;

use super::{Command, Socket};
use crate::options::{self, OptionContext, SocketOptions, Value};
use crate::shared::SharedRing;
use crate::{address, errno, pair, ports};

impl Socket {
    /// Takes the pending error, or 0 if there is none.
    pub(crate) fn take_error(&self) -> i32 {
        let error = self.inner().error.take();
        self.publish(SLOT_ERROR_AT, 0);
        error.map_or(0, Errno::raw_os_error)
    }

    /// `bind`; `again` if the program's socket has stopped listening at this address.
    pub(crate) fn bind(&self, bytes: &[u8], again: bool) -> Result<(), Errno> {
        let written = address::read_to_bind(bytes, self.is_v6)?;
        let local = address::unmap_ipv4(written);
        let (is_free, sharing, is_v6_only) = {
            let inner = self.inner();
            let is_free = inner.state == STATE_CLOSED && inner.bound.is_none();
            (is_free, inner.options.sharing(), inner.options.is_v6_only())
        };
        let is_mapped = local != written;
        // For IPv4, Linux checks the address first; for IPv6, the socket.
        if self.is_v6 && (!is_free || is_mapped && is_v6_only) {
            return Err(Errno::INVAL);
        }
        ports::may_bind(local)?;
        if !is_free {
            return Err(Errno::INVAL);
        }
        let mut ports = self.broker.ports.lock().expect("never poisoned");
        let local = ports.bind(self.cookie, local, sharing, is_v6_only, again)?;
        {
            let mut inner = self.inner();
            inner.bound = Some(local);
            if local.is_ipv6() && !local.ip().is_unspecified() {
                inner.options.take_v6_only();
            }
        }
        self.publish_local(local);
        Ok(())
    }

    fn bind_if_unbound(&self) -> Result<SocketAddr, Errno> {
        if let Some(local) = self.inner().bound {
            return Ok(local);
        }
        self.bind(&address::write(SocketAddr::new(self.any_ip(), 0), self.is_v6), false)?;
        self.inner().bound.ok_or(Errno::INVAL)
    }

    /// `listen`.
    pub(crate) fn listen(&self, backlog: i32) -> Result<(), Errno> {
        let state = self.inner().state;
        if !options::may_listen(state) || self.inner().error.is_some() {
            return Err(Errno::INVAL);
        }
        if state == STATE_LISTENING {
            return Ok(());
        }
        let listening = self.start_listening(self.bind_if_unbound()?, backlog)?;
        self.inner().listening = listening.clone();
        self.broker.ports.lock().expect("never poisoned").listen(self.cookie);
        self.set_state(STATE_LISTENING);
        self.command(Command::Listen(listening));
        Ok(())
    }

    /// `connect`: returns EINPROGRESS if the handshake starts.
    pub(crate) fn connect(&self, bytes: &[u8]) -> Errno {
        let state = self.inner().state;
        if let Some(e) = options::connect_refusal(state) {
            return e;
        }
        let to = match address::read(bytes, self.is_v6) {
            Ok(to) => to,
            Err(e) => return self.refuse(state, e),
        };
        let is_mapped = address::unmap_ipv4(to) != to;
        let mut to = address::unmap_ipv4(to);
        if to.ip().is_unspecified() {
            // As in Linux, the wildcard address means this host.
            to.set_ip(match to.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        let is_broadcast = matches!(to.ip(), IpAddr::V4(ip) if ip.is_broadcast());
        let is_v6_only = is_mapped && self.inner().options.is_v6_only();
        if to.ip().is_multicast() || is_broadcast || is_v6_only {
            return self.refuse(state, Errno::NETUNREACH);
        }
        if to.port() == 0 {
            return self.refuse(state, Errno::CONNREFUSED);
        }
        let (from, is_chosen) = {
            let inner = self.inner();
            (inner.bound, inner.options.device().is_some())
        };
        if !is_chosen && let Err(e) = address::route(from, to) {
            return self.refuse(state, e);
        }
        self.set_error(None);
        self.set_state(STATE_CONNECTING);
        self.command(Command::Connect(to));
        Errno::INPROGRESS
    }

    /// Handles a `connect` that cannot start.
    fn refuse(&self, state: u32, e: Errno) -> Errno {
        if state == STATE_CLOSED {
            self.unplug();
        }
        e
    }

    /// Makes the program's end writable again after a call for which the program plugged it failed.
    pub(crate) fn unplug(&self) {
        self.changed.notify_one();
    }

    fn command(&self, command: Command) {
        self.inner().command = Some(command);
        self.changed.notify_one();
    }

    fn with_around<T>(&self, run: impl FnOnce(&mut SocketOptions, &OptionContext<'_>) -> T) -> T {
        let mut inner = self.inner();
        let connection = inner.connection.clone();
        let around = OptionContext {
            state: inner.state,
            is_server: inner.is_server,
            is_bound: inner.bound.is_some(),
            connection: connection.as_deref(),
        };
        run(&mut inner.options, &around)
    }

    /// `getsockopt`.
    pub(crate) fn option(&self, level: i32, name: i32, room: usize) -> Result<Value, Errno> {
        self.with_around(|options, around| options.get(level, name, room, around))
    }

    /// `setsockopt`. Returns the new send buffer size of the program's end, if it changes.
    pub(crate) fn set_option(
        &self,
        level: i32,
        name: i32,
        bytes: &[u8],
    ) -> Result<Option<usize>, Errno> {
        let (before, after) = self.with_around(|options, around| {
            let before = options.queues();
            options.set(level, name, bytes, around)?;
            if let Some(connection) = around.connection {
                options.apply(level, name, connection);
            }
            Ok::<_, Errno>((before, options.queues()))
        })?;
        self.publish_queue();
        let (services, listening) = {
            let inner = self.inner();
            (inner.options.service_codes(), inner.listening.clone())
        };
        listening.set_services(&services)?;
        // With a ring, the pair holds no messages.
        if before.0 == after.0 || self.ring().is_some() {
            Ok(None)
        } else {
            pair::buffer_for(after.0).map(Some).map_err(errno::of_io)
        }
    }

    /// Returns the shared memory for a connection's messages, and the send buffer size that the
    /// program's end needs with it.
    pub(crate) fn open_ring(&self) -> Result<(Arc<SharedRing>, usize), Errno> {
        let buffer = pair::buffer_for(RING_PAIR_FRAMES).map_err(errno::of_io)?;
        let mut inner = self.inner();
        let ring = match (&inner.ring, inner.state) {
            (Some(ring), _) => Arc::clone(ring),
            (None, STATE_OPEN) => Arc::new(SharedRing::new(self.cookie).map_err(errno::of_io)?),
            (None, _) => return Err(Errno::NOTCONN),
        };
        inner.ring = Some(Arc::clone(&ring));
        Ok((ring, buffer))
    }

    /// `shutdown` of a connection.
    pub(crate) fn shutdown(&self, how: i32) {
        let (connection, is_over) = {
            let mut inner = self.inner();
            inner.reads_no_more |= how != SHUT_WR;
            inner.sends_no_more |= how != SHUT_RD;
            (inner.connection.clone(), inner.reads_no_more && inner.sends_no_more)
        };
        if is_over {
            // Publish the state first, so that the hang-up of the pair does not look like a dead
            // broker.
            self.publish(SLOT_STATE_AT, STATE_ENDED);
        }
        if let Some(connection) = connection.filter(|_| how != SHUT_WR) {
            connection.shutdown_read();
        }
    }

    /// `shutdown` without a connection: aborts the handshake or stops listening.
    pub(crate) fn disconnect(&self) {
        let state = self.inner().state;
        match state {
            STATE_CONNECTING => {
                self.set_error(Some(Errno::CONNRESET));
                self.set_state(STATE_CLOSED);
                self.changed.notify_one();
            }
            STATE_LISTENING => self.end(None),
            _ => {}
        }
    }

    /// Waits until the current handshake is aborted.
    pub(super) async fn wait_handshake_aborted(&self) {
        let goes_on = || {
            let inner = self.inner();
            inner.state == STATE_CONNECTING && inner.command.is_none()
        };
        while goes_on() {
            self.changed.notified().await;
        }
    }

    /// Whether the program has shut down reading.
    pub(crate) fn reads_no_more(&self) -> bool {
        self.inner().reads_no_more
    }

    /// Bytes that have not been sent yet.
    pub(crate) fn unsent_bytes(&self) -> usize {
        let inner = self.inner();
        inner.connection.as_ref().and_then(|c| c.stats()).map_or(0, |s| s.send_queue_bytes)
    }
}
