//! The calls of the sockets as poll functions: the async sockets await them, the blocking ones
//! park a thread on them.

use std::io;
use std::task::{Context, Poll};

use bytes::Bytes;
use udccp_base::{Instant, Payload};
use udccp_proto as proto;
use udccp_proto::{ConnectionStats, EndpointStats, ListenConfig};
use udccp_wire::ServiceCode;

use super::core::Core;
use super::handle::{ConnHandle, Handle, ListenHandle};
use super::waiters::{Conn, Waiters};
use crate::io::{Io, KERNEL_OVERHEAD_BYTES};
use crate::{Address, ConnectionEvent, Error, IoStats, Options, Outgoing, Received};

impl Handle {
    /// Starts a connection; its outcome is awaited with `poll_connected`.
    pub(crate) fn connect(
        &self,
        peer: Address,
        service: ServiceCode,
        options: &Options,
    ) -> Result<ConnHandle, Error> {
        let shared = self.shared();
        shared.check_process()?;
        let peer = shared.peer(peer)?;
        let route = shared.io.route_to(peer.udp).map_err(|e| unroutable(e, peer))?;
        let mut config = options.config.clone();
        fit_to_system(&mut config, &shared.io);
        //= 4340-14.1-2
        config.path_mtu = config.path_mtu.min(route.mtu.unwrap_or(u16::MAX));
        shared.note_linger(config.close_linger);
        let path_mtu_bytes = config.path_mtu;
        tracing::debug!(%peer, %service, path_mtu_bytes, interface_mtu = route.mtu, "connecting");
        let data = Payload::Bytes(options.request_data.clone());
        let mut options = proto::ConnectOptions {
            local: route.source,
            local_port: options.local_port,
            remote: peer.udp,
            remote_port: peer.port,
            service,
            config,
        };
        let (id, tuple) = shared.with(|core, io, now| {
            core.claim_to_connect(io, &mut options)?;
            let id = core.endpoint.connect_with_data(now, options, data);
            let id = id.map_err(Error::connect)?;
            core.conns.insert(id, Conn::default());
            core.flush(io, now);
            let tuple = core.endpoint.tuple(id);
            tuple.map(|t| (id, t)).ok_or(Error::Unreachable { peer })
        })??;
        let conn = ConnHandle { handle: self.clone(), id, tuple, service };
        self.start()?;
        Ok(conn)
    }

    /// Serves `services` on DCCP port `port`.
    pub(crate) fn listen(
        &self,
        port: u16,
        services: Vec<ServiceCode>,
        options: &Options,
    ) -> Result<ListenHandle, Error> {
        let mut connection = options.config.clone();
        fit_to_system(&mut connection, &self.shared().io);
        let path_mtu = connection.path_mtu;
        self.shared().note_linger(connection.close_linger);
        let config = ListenConfig {
            services,
            backlog: options.backlog,
            init_cookies: options.init_cookies,
            cookie_lifetime: options.cookie_lifetime,
            connection,
        };
        let (id, port) = self.shared().with(|core, io, _| {
            let port = core.claim_to_listen(io, port)?;
            let id = core.endpoint.listen(None, port, config)?;
            core.listeners.insert(id, Waiters::default());
            Ok::<_, Error>((id, port))
        })??;
        let listener = ListenHandle { handle: self.clone(), id, port, path_mtu };
        self.start()?;
        Ok(listener)
    }

    pub(crate) fn endpoint_stats(&self) -> EndpointStats {
        self.shared().with(|core, _, _| core.endpoint.endpoint_stats()).unwrap_or_default()
    }

    /// Waits until no connection is left.
    pub(crate) fn poll_idle(&self, cx: &mut Context<'_>) -> Poll<()> {
        let idle = self.shared().with(|core, _, _| {
            if core.driver.stopped || core.is_idle() {
                return Poll::Ready(());
            }
            core.idlers.add(cx.waker());
            Poll::Pending
        });
        idle.unwrap_or(Poll::Ready(()))
    }

    pub(crate) fn io_stats(&self) -> IoStats {
        self.shared().with(|core, _, _| core.io_stats()).unwrap_or_default()
    }
}

impl ListenHandle {
    /// The next connection whose handshake is done.
    pub(crate) fn poll_accept(&self, cx: &mut Context<'_>) -> Poll<Result<ConnHandle, Error>> {
        let accepted = self.handle.shared().poll_with(|core, _, _| {
            while let Some(id) = core.endpoint.accept(self.id) {
                let conn = core.conns.entry(id).or_default();
                conn.connected = true;
                conn.queued_at = None;
                let found = (core.endpoint.tuple(id), core.endpoint.service(id));
                if let (Some(tuple), Some(service)) = found {
                    return Poll::Ready(Ok((id, tuple, service)));
                }
                core.conns.remove(&id);
            }
            if core.driver.stopped {
                return Poll::Ready(Err(stopped()));
            }
            if let Some(waiters) = core.listeners.get_mut(&self.id) {
                waiters.add(cx.waker());
            }
            Poll::Pending
        });
        accepted.map_ok(|(id, tuple, service)| {
            let conn = ConnHandle { handle: self.handle.clone(), id, tuple, service };
            conn.fit_to_route(self.path_mtu);
            conn
        })
    }
}

impl ConnHandle {
    /// Makes the packets of an accepted connection fit the way back.
    fn fit_to_route(&self, path_mtu: u16) {
        let route = self.shared().io.route_to(self.tuple.remote);
        if let Some(mtu) = route.ok().and_then(|r| r.mtu).filter(|&mtu| mtu < path_mtu) {
            let shared = self.shared();
            let _ = shared.with(|core, _, now| core.endpoint.set_path_mtu(now, self.id, mtu));
        }
    }

    /// Waits for the end of the handshake.
    pub(crate) fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, _, _| {
            let stopped_now = core.driver.stopped;
            let Some(conn) = core.conns.get_mut(&self.id) else {
                return Poll::Ready(Err(Error::Closed));
            };
            if conn.connected {
                return Poll::Ready(Ok(()));
            }
            if let Some(reason) = conn.ended {
                let e = Error::handshake(reason, self.peer(), self.service);
                return Poll::Ready(Err(e));
            }
            if stopped_now {
                return Poll::Ready(Err(stopped()));
            }
            conn.others.add(cx.waker());
            Poll::Pending
        })
    }

    /// Queues one message, once there is room. The message is taken out of `slot`.
    pub(crate) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        slot: &mut Option<Outgoing>,
    ) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, io, now| {
            while let Some(message) = slot.take() {
                match self.offer(core, io, now, message) {
                    Ok(()) => core.flush_burst(io, now),
                    Err(Refused::Full(message)) => {
                        *slot = Some(message);
                        return self.wait_for_room(core, cx);
                    }
                    Err(Refused::Never(e)) => return Poll::Ready(Err(e)),
                }
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Queues messages from an iterator as long as there is room; the first that finds none
    /// waits in `slot`. Everything that was queued is sent with as few writes as possible.
    pub(crate) fn poll_send_batch(
        &self,
        cx: &mut Context<'_>,
        slot: &mut Option<Outgoing>,
        messages: &mut dyn Iterator<Item = Outgoing>,
    ) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, io, now| {
            let result = loop {
                let Some(message) = slot.take().or_else(|| messages.next()) else {
                    break Poll::Ready(Ok(()));
                };
                match self.offer(core, io, now, message) {
                    Ok(()) => {}
                    Err(Refused::Full(message)) => {
                        *slot = Some(message);
                        break self.wait_for_room(core, cx);
                    }
                    Err(Refused::Never(e)) => break Poll::Ready(Err(e)),
                }
            };
            core.flush(io, now);
            result
        })
    }

    /// Queues one message, or says at once why not.
    pub(crate) fn try_send(&self, message: Outgoing) -> Result<(), crate::TrySendError> {
        let sent = self.shared().with(|core, io, now| match self.offer(core, io, now, message) {
            Ok(()) => {
                core.flush_burst(io, now);
                Ok(())
            }
            Err(Refused::Full(message)) => Err(crate::TrySendError::Full(message)),
            Err(Refused::Never(e)) => Err(crate::TrySendError::Failed(e)),
        });
        sent?
    }

    fn offer(
        &self,
        core: &mut Core,
        io: &Io,
        now: Instant,
        message: Outgoing,
    ) -> Result<(), Refused> {
        let len = message.len();
        let first = core.endpoint.send(now, self.id, message.into_message(now));
        let refused = match first {
            Err(proto::SendError::Full(message)) => {
                // A burst may be waiting that the network would take.
                core.flush(io, now);
                core.endpoint.send(now, self.id, message)
            }
            other => other,
        };
        refused.map_err(|e| match e {
            proto::SendError::Full(m) => Refused::Full(Outgoing::from_message(m, now)),
            proto::SendError::TooLarge { max, .. } => {
                Refused::Never(Error::MessageTooLarge { len, max })
            }
            proto::SendError::NotOpen(_) => Refused::Never(self.ended(core)),
        })
    }

    fn wait_for_room(&self, core: &mut Core, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        if core.driver.stopped {
            return Poll::Ready(Err(stopped()));
        }
        match core.conns.get_mut(&self.id) {
            Some(conn) => conn.writers.add(cx.waker()),
            None => return Poll::Ready(Err(Error::Closed)),
        }
        Poll::Pending
    }

    /// Waits until the send queue has room.
    pub(crate) fn poll_writable(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, _, _| {
            if core.endpoint.is_writable(self.id) {
                return Poll::Ready(Ok(()));
            }
            if core.conns.get(&self.id).is_none_or(|c| c.ended.is_some()) {
                return Poll::Ready(Err(self.ended(core)));
            }
            self.wait_for_room(core, cx)
        })
    }

    /// Waits until there is something to read, or the end.
    pub(crate) fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, _, _| {
            if core.endpoint.is_readable(self.id) {
                return Poll::Ready(Ok(()));
            }
            self.wait_to_read(core, cx)
        })
    }

    /// The next message, or `None` at the orderly end.
    pub(crate) fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        self.poll_recv_with_meta(cx).map_ok(|message| message.map(|m| m.data))
    }

    /// The next message with what is known of it, or `None` at the orderly end.
    pub(crate) fn poll_recv_with_meta(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Received>, Error>> {
        self.shared().poll_with(|core, io, now| match core.endpoint.recv_with_meta(now, self.id) {
            Ok(Some(message)) => {
                // Room in the receive queue may release acknowledgements that were held back.
                core.flush(io, now);
                let (data, is_corrupt) = (into_bytes(message.payload), message.is_corrupt);
                Poll::Ready(Ok(Some(Received { data, is_corrupt })))
            }
            Ok(None) => self.wait_to_read(core, cx).map_ok(|()| None),
            Err(e) => Poll::Ready(self.end_of_reading(core, e).map(|()| None)),
        })
    }

    /// Up to `max` messages, at least one; 0 at the orderly end.
    pub(crate) fn poll_recv_batch(
        &self,
        cx: &mut Context<'_>,
        into: &mut Vec<Bytes>,
        max: usize,
    ) -> Poll<Result<usize, Error>> {
        self.shared().poll_with(|core, io, now| {
            let mut count = 0;
            let ended = loop {
                if count == max {
                    break None;
                }
                match core.endpoint.recv(now, self.id) {
                    Ok(Some(payload)) => {
                        into.push(into_bytes(payload));
                        count += 1;
                    }
                    Ok(None) => break None,
                    Err(e) => break Some(e),
                }
            };
            if count > 0 || max == 0 {
                core.flush(io, now);
                return Poll::Ready(Ok(count));
            }
            match ended {
                Some(e) => Poll::Ready(self.end_of_reading(core, e).map(|()| 0)),
                None => self.wait_to_read(core, cx).map_ok(|()| 0),
            }
        })
    }

    /// The next message, or at once why there is none.
    pub(crate) fn try_recv(&self) -> Result<Bytes, crate::TryRecvError> {
        let received = self.shared().with(|core, io, now| match core.endpoint.recv(now, self.id) {
            Ok(Some(payload)) => {
                core.flush(io, now);
                Ok(into_bytes(payload))
            }
            Ok(None) => Err(crate::TryRecvError::Empty),
            Err(e) => {
                let end = self.end_of_reading(core, e).err().unwrap_or(Error::Closed);
                Err(crate::TryRecvError::Ended(end))
            }
        });
        received?
    }

    fn wait_to_read(&self, core: &mut Core, cx: &Context<'_>) -> Poll<Result<(), Error>> {
        if core.driver.stopped {
            return Poll::Ready(Err(stopped()));
        }
        match core.conns.get_mut(&self.id) {
            Some(conn) => conn.readers.add(cx.waker()),
            None => return Poll::Ready(Err(Error::Closed)),
        }
        Poll::Pending
    }

    /// Has a task wait for something that only a living connection brings.
    fn wait_for(&self, core: &mut Core, add: impl FnOnce(&mut Conn)) -> Poll<Result<(), Error>> {
        let stopped_now = core.driver.stopped;
        match core.conns.get_mut(&self.id) {
            None => return Poll::Ready(Err(Error::Closed)),
            Some(Conn { ended: Some(reason), .. }) => {
                return Poll::Ready(Err(Error::ended(*reason)));
            }
            Some(_) if stopped_now => return Poll::Ready(Err(stopped())),
            Some(conn) => add(conn),
        }
        Poll::Pending
    }

    /// Waits until everything that was queued is accounted for.
    pub(crate) fn poll_acknowledged(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, _, _| {
            if core.is_acknowledged(self.id) {
                return Poll::Ready(Ok(()));
            }
            let added = self.wait_for(core, |conn| conn.acknowledged.add(cx.waker()));
            if added.is_pending() && !core.awaiting_acks.contains(&self.id) {
                core.awaiting_acks.push(self.id);
            }
            added
        })
    }

    /// Reads no more.
    pub(crate) fn shutdown_read(&self) {
        let _ = self.shared().with(|core, _, now| {
            core.endpoint.shutdown_read(now, self.id);
            if let Some(conn) = core.conns.get_mut(&self.id) {
                conn.readers.move_to(&mut core.wake);
            }
        });
    }

    /// The application can hardly keep up, or can again.
    pub(crate) fn set_slow_receiver(&self, is_slow: bool) {
        let _ = self
            .shared()
            .with(|core, _, now| core.endpoint.set_slow_receiver(now, self.id, is_slow));
    }

    /// The path is another one now.
    pub(crate) fn path_changed(&self) {
        let _ = self.shared().with(|core, io, now| {
            core.endpoint.path_changed(now, self.id);
            core.flush(io, now);
        });
    }

    /// What the peer's Reset said in words.
    pub(crate) fn reset_text(&self) -> Option<String> {
        let shared = self.shared();
        let text = shared.with(|core, _, _| core.endpoint.reset_text(self.id).map(str::to_owned));
        text.ok().flatten()
    }

    /// The next thing that happened to the connection; `None` at its end.
    pub(crate) fn poll_event(&self, cx: &mut Context<'_>) -> Poll<Option<ConnectionEvent>> {
        let event = self.shared().with(|core, _, _| {
            let stopped_now = core.driver.stopped;
            let Some(conn) = core.conns.get_mut(&self.id) else { return Poll::Ready(None) };
            if let Some(event) = conn.events.pop_front() {
                return Poll::Ready(Some(event));
            }
            if conn.ended.is_some() || stopped_now {
                return Poll::Ready(None);
            }
            conn.others.add(cx.waker());
            Poll::Pending
        });
        event.unwrap_or(Poll::Ready(None))
    }

    /// Waits until the send queue is empty.
    pub(crate) fn poll_flushed(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, io, now| {
            // The rest of a burst may be waiting for company.
            core.flush(io, now);
            if core.is_flushed(self.id) {
                return Poll::Ready(Ok(()));
            }
            let added = self.wait_for(core, |conn| conn.flushers.add(cx.waker()));
            if added.is_pending() && !core.flushing.contains(&self.id) {
                core.flushing.push(self.id);
            }
            added
        })
    }

    /// Starts an orderly close.
    pub(crate) fn close(&self) {
        let _ = self.shared().with(|core, io, now| {
            core.endpoint.close(now, self.id);
            core.flush(io, now);
        });
    }

    /// Ends the connection at once.
    pub(crate) fn abort(&self) {
        let _ = self.shared().with(|core, io, now| {
            core.endpoint.abort(now, self.id);
            core.flush(io, now);
        });
    }

    /// Waits for the end of the connection.
    pub(crate) fn poll_ended(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        self.shared().poll_with(|core, _, _| {
            let stopped_now = core.driver.stopped;
            let Some(conn) = core.conns.get_mut(&self.id) else {
                return Poll::Ready(Ok(()));
            };
            match conn.ended {
                Some(reason) if reason.is_orderly() => Poll::Ready(Ok(())),
                Some(reason) => Poll::Ready(Err(Error::Lost(reason))),
                None if stopped_now => Poll::Ready(Err(stopped())),
                None => {
                    conn.others.add(cx.waker());
                    Poll::Pending
                }
            }
        })
    }

    /// Waits for the end of a close, and says whether everything queued had left before.
    pub(crate) fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        match self.poll_ended(cx) {
            Poll::Ready(Ok(())) => {
                let unsent = self.stats().map_or(0, |s| s.counters.drops.send_unfinished);
                Poll::Ready(match unsent {
                    0 => Ok(()),
                    messages => Err(Error::Unsent { messages }),
                })
            }
            other => other,
        }
    }

    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        self.shared().with(|core, _, _| core.endpoint.stats(self.id)).ok().flatten()
    }

    pub(crate) fn max_message_size(&self) -> usize {
        let mps = self.shared().with(|core, _, _| core.endpoint.max_message_size(self.id));
        mps.ok().flatten().unwrap_or(0)
    }

    /// Why nothing can be sent any more.
    fn ended(&self, core: &Core) -> Error {
        match core.conns.get(&self.id).and_then(|c| c.ended) {
            Some(reason) => Error::ended(reason),
            None if core.driver.stopped => stopped(),
            None => Error::Closed,
        }
    }

    /// What reading gives when everything was read.
    fn end_of_reading(&self, core: &Core, e: proto::RecvError) -> Result<(), Error> {
        let was_open = core.conns.get(&self.id).is_some_and(|c| c.ended.is_none());
        match e {
            // Nobody closed it: its driver ended first.
            proto::RecvError::Closed(_) if core.driver.stopped && was_open => Err(stopped()),
            proto::RecvError::Closed(reason) if !reason.is_orderly() => Err(Error::Lost(reason)),
            _ => Ok(()),
        }
    }
}

/// Why a message was not queued.
enum Refused {
    Full(Outgoing),
    Never(Error),
}

fn into_bytes(payload: Payload) -> Bytes {
    match payload {
        Payload::Bytes(bytes) => bytes,
        zeros @ Payload::Zeros(_) => zeros.to_bytes(),
    }
}

pub(super) fn stopped() -> Error {
    let source = io::Error::new(io::ErrorKind::BrokenPipe, "its runtime has shut down");
    Error::Io { what: "the driver of the socket has stopped", source }
}

pub(super) fn unroutable(source: io::Error, peer: Address) -> Error {
    match source.kind() {
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            Error::Unreachable { peer }
        }
        _ => Error::Io { what: "cannot find the way to the peer", source },
    }
}

/// Leaves out what the system cannot do, and keeps the receive queue, and with it the peer's
/// window, below what the kernel holds while the driver does not run: a burst of a full window must
/// find room there.
pub(super) fn fit_to_system(config: &mut proto::ConnectionConfig, io: &Io) {
    let room = io.recv_buffer_bytes() / 2;
    if io.may_fragment() {
        // Probes that arrive in pieces say nothing of the path.
        config.pmtu_probing = None;
    }
    config.recv_queue_bytes = config.recv_queue_bytes.min(room).max(1);
    config.recv_queue_packets = config.recv_queue_packets.min(room / KERNEL_OVERHEAD_BYTES).max(1);
}
