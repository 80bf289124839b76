//! Handles that users hold. Dropping a handle releases its connection, listener or endpoint.

use std::net::SocketAddr;
use std::num::NonZeroU32;
#[cfg(feature = "tokio")]
use std::sync::atomic::AtomicU32;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
#[cfg(feature = "tokio")]
use std::task::Context;
use std::task::{Poll, Waker};

use udccp_base::Instant;
use udccp_proto::{ConnectionId, FourTuple, ListenerId};
use udccp_wire::ServiceCode;

use super::Shared;
use super::core::Core;
use super::waiters::Waiter;
use crate::io::Io;
use crate::readiness::Readiness;
use crate::{Address, Error};

/// Keeps the driver running.
#[derive(Debug)]
pub(crate) struct Handle(Arc<Shared>);

impl Handle {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let _ = shared.with(|core, _, _| core.handles += 1);
        Self(shared)
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.0
    }

    /// Sees the packets of the host from here on, to answer those that are for nobody.
    pub(crate) fn answer_for_host(&self) -> Result<(), Error> {
        self.0.with(|core, io, _| core.want_packets(io))??;
        self.start()
    }

    /// Starts the driver if that has not been done yet.
    pub(super) fn start(&self) -> Result<(), Error> {
        self.0.start()
    }
}

impl Clone for Handle {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.0))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let _ = self.0.with(|core, _, _| {
            core.handles -= 1;
            if core.handles == 0 {
                core.want_driver();
            }
        });
    }
}

/// A connection that a user holds. Dropping it closes in order, in the background.
#[derive(Debug)]
pub(crate) struct ConnHandle {
    pub(crate) handle: Handle,
    pub(crate) id: ConnectionId,
    pub(crate) tuple: FourTuple,
    pub(crate) service: ServiceCode,
    pub(super) readiness: OnceLock<Readiness>,
    /// The drop blocks until the connection has ended.
    pub(crate) waits_on_drop: AtomicBool,
}

impl ConnHandle {
    pub(super) fn new(
        handle: Handle,
        id: ConnectionId,
        tuple: FourTuple,
        service: ServiceCode,
    ) -> Self {
        let (readiness, waits_on_drop) = (OnceLock::new(), AtomicBool::new(false));
        Self { handle, id, tuple, service, readiness, waits_on_drop }
    }

    /// One change to the endpoint that is about this connection.
    pub(super) fn with<R>(
        &self,
        change: impl FnOnce(&mut Core, &Io, Instant) -> R,
    ) -> Result<R, Error> {
        self.shared().with(|core, io, now| {
            core.signals.touch(self.id);
            change(core, io, now)
        })
    }

    /// The same for calls that wait.
    pub(super) fn poll_with<T>(
        &self,
        waiter: Waiter<'_>,
        change: impl FnOnce(&mut Core, &Io, Instant) -> Poll<Result<T, Error>>,
    ) -> Poll<Result<T, Error>> {
        let changed = self.with(|core, io, now| {
            let before = waiter.number();
            if let Some(call) = waiter.call.filter(|_| before.is_none()) {
                call.store(core.next_call().get(), Ordering::Relaxed);
            }
            let result = change(core, io, now);
            // A call that is answered at once has not waited.
            let answered = before.filter(|_| result.is_ready());
            (result, answered.and_then(|call| core.waits_no_more(self.id, call)))
        });
        // Here, without the lock, what is known of the task is let go of.
        changed.map_or_else(|e| Poll::Ready(Err(e)), |(result, _task)| result)
    }

    /// A call that may be given up.
    #[cfg(feature = "tokio")]
    pub(crate) fn call(&self) -> Call<'_> {
        Call { conn: self, number: AtomicU32::new(0), waits: false }
    }

    pub(crate) fn shared(&self) -> &Shared {
        self.handle.shared()
    }

    pub(crate) fn peer(&self) -> Address {
        Address { udp: self.tuple.remote, port: self.tuple.remote_port }
    }

    pub(crate) fn local(&self) -> Address {
        Address { udp: self.tuple.local, port: self.tuple.local_port }
    }
}

/// A call of a future, which leaves no trace when that is dropped.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(crate) struct Call<'a> {
    conn: &'a ConnHandle,
    number: AtomicU32,
    waits: bool,
}

#[cfg(feature = "tokio")]
impl Call<'_> {
    /// Polls once.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&ConnHandle, Waiter<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let result = poll(self.conn, Waiter { waker: cx.waker(), call: Some(&self.number) });
        self.waits = result.is_pending();
        result
    }
}

#[cfg(feature = "tokio")]
impl Drop for Call<'_> {
    fn drop(&mut self) {
        let number = NonZeroU32::new(*self.number.get_mut()).filter(|_| self.waits);
        if let Some(number) = number {
            let conn = self.conn;
            drop(conn.shared().with(|core, _, _| core.waits_no_more(conn.id, number)));
        }
    }
}

impl Core {
    /// A number for a call. Wrapped around, it meets none that still waits.
    fn next_call(&mut self) -> NonZeroU32 {
        self.calls = self.calls.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.calls
    }

    /// This call was answered or given up.
    fn waits_no_more(&mut self, id: ConnectionId, call: NonZeroU32) -> Option<Waker> {
        self.conns.get_mut(id)?.waiting.remove(call)
    }
}

impl Drop for ConnHandle {
    fn drop(&mut self) {
        if self.waits_on_drop.load(Ordering::Relaxed) {
            self.close();
            let _ = crate::blocking::wait(None, |cx| self.poll_closed(cx.into()));
        }
        let forgotten = self.shared().with(|core, io, now| {
            core.close(now, self.id);
            core.endpoint.release(now, self.id);
            let conn = core.forget(self.id);
            core.flush(io, now);
            conn
        });
        // Without the lock: the last trace of a task may own another connection.
        drop(forgotten);
    }
}

/// A listener that a user holds. Dropping it stops listening.
#[derive(Debug)]
pub(crate) struct ListenHandle {
    pub(crate) handle: Handle,
    pub(crate) id: ListenerId,
    pub(crate) port: u16,
    /// Path MTU of accepted connections, before the way back is known.
    pub(crate) path_mtu: u16,
    pub(super) readiness: OnceLock<Readiness>,
}

impl ListenHandle {
    pub(super) fn new(handle: Handle, id: ListenerId, port: u16, path_mtu: u16) -> Self {
        Self { handle, id, port, path_mtu, readiness: OnceLock::new() }
    }

    /// The address bound, with the port to call.
    pub(crate) fn local_addr(&self) -> SocketAddr {
        let io = &self.handle.shared().io;
        let mut local = io.local_addr();
        if io.is_raw() {
            local.set_port(self.port);
        }
        local
    }
}

impl Drop for ListenHandle {
    fn drop(&mut self) {
        let forgotten = self.handle.shared().with(|core, io, now| {
            core.endpoint.unlisten(now, self.id);
            let listening = core.forget_listener(self.id);
            core.conns.retain(|conn| conn.queued_at != Some(self.id));
            core.flush(io, now);
            listening
        });
        // As with a connection.
        drop(forgotten);
    }
}
