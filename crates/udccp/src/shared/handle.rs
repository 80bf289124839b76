//! Handles that users hold. Dropping a handle releases its connection, listener or endpoint.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use udccp_base::Instant;
use udccp_proto::{ConnectionId, FourTuple, ListenerId};
use udccp_wire::ServiceCode;

use super::Shared;
use super::caller_driver::CallerDriver;
use super::core::Core;
use super::waiters::{Place, Waiter, Waiting};
use crate::io::{Claims, Io};
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

    /// Receives packets of the host from now on, to answer those to unclaimed ports.
    pub(crate) fn answer_for_host(&self) -> Result<(), Error> {
        self.0.with(|core, io, _| core.update_packet_filter(io))??;
        self.start()
    }

    /// A call that can be cancelled.
    pub(crate) fn call(&self, place: Place) -> Call<'_, Self> {
        Call::new(self, &self.0, place)
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
                core.request_driver();
                let claims = core.is_finished().then_some(core.claims.as_mut()).flatten();
                claims.into_iter().for_each(Claims::release_all);
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
    /// The largest path MTU that its settings allow, on any interface.
    pub(super) path_mtu: u16,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is none"))]
    pub(super) readiness: OnceLock<Readiness>,
    /// Whether dropping it blocks until the connection has ended.
    pub(crate) waits_on_drop: AtomicBool,
}

impl ConnHandle {
    pub(super) fn new(
        handle: Handle,
        id: ConnectionId,
        tuple: FourTuple,
        service: ServiceCode,
        path_mtu: u16,
    ) -> Self {
        let (readiness, waits_on_drop) = (OnceLock::new(), AtomicBool::new(false));
        Self { handle, id, tuple, service, path_mtu, readiness, waits_on_drop }
    }

    /// Makes a change to the endpoint that concerns this connection.
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
        self.shared().poll_at(self.place(), waiter, |core, io, now| {
            core.signals.touch(self.id);
            change(core, io, now)
        })
    }

    /// The place where its calls wait.
    const fn place(&self) -> Place {
        Place::Connection(self.id)
    }

    /// A call that can be cancelled.
    pub(crate) fn call(&self) -> Call<'_, Self> {
        Call::new(self, self.shared(), self.place())
    }

    /// Removes a task that waits by hand-written polls.
    pub(crate) fn remove_waker(&self, task: &Waker) {
        self.shared().remove_waker(self.place(), task);
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

/// A call of a future or a thread, which removes its waker if it is cancelled.
#[derive(Debug)]
pub(crate) struct Call<'a, H> {
    of: &'a H,
    shared: &'a Shared,
    place: Place,
    number: AtomicU32,
    waits: bool,
}

impl<'a, H> Call<'a, H> {
    fn new(of: &'a H, shared: &'a Shared, place: Place) -> Self {
        Self { of, shared, place, number: AtomicU32::new(0), waits: false }
    }

    /// Polls once.
    pub(crate) fn poll<T>(
        &mut self,
        cx: &mut Context<'_>,
        poll: impl FnOnce(&H, Waiter<'_>) -> Poll<T>,
    ) -> Poll<T> {
        self.poll_from(cx.waker(), None, poll)
    }

    /// The same for a thread that may drive while it waits.
    pub(crate) fn poll_from<T>(
        &mut self,
        waker: &Waker,
        caller_driver: Option<&CallerDriver<'_>>,
        poll: impl FnOnce(&H, Waiter<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let result = poll(self.of, Waiter { waker, call: Some(&self.number), caller_driver });
        self.waits = result.is_pending();
        result
    }
}

impl<H> Drop for Call<'_, H> {
    fn drop(&mut self) {
        let number = NonZeroU32::new(*self.number.get_mut()).filter(|_| self.waits);
        if let Some(number) = number {
            let place = self.place;
            drop(self.shared.with(|core, _, _| core.waiting_at(place)?.remove(number)));
        }
    }
}

impl Core {
    /// A number for a call. After it wraps around, no waiting call has the same number.
    pub(super) fn next_call(&mut self) -> NonZeroU32 {
        self.calls = self.calls.checked_add(1).unwrap_or(NonZeroU32::MIN);
        self.calls
    }

    /// The tasks that wait at a place.
    pub(super) fn waiting_at(&mut self, place: Place) -> Option<&mut Waiting> {
        match place {
            Place::Connection(id) => self.conns.get_mut(id).map(|conn| &mut conn.waiting),
            Place::Listener(id) => self.listeners.get_mut(&id).map(|its| &mut its.waiting),
            Place::Stun => Some(&mut self.stun.readers),
            Place::Idle => Some(&mut self.idle_waiters),
        }
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
            self.flush_close(core, io, now);
            conn
        });
        // Dropped without the lock: the last reference to a task may own another connection.
        drop(forgotten);
    }
}

/// A listener that a user holds. Dropping it stops listening.
#[derive(Debug)]
pub(crate) struct ListenHandle {
    pub(crate) handle: Handle,
    pub(crate) id: ListenerId,
    pub(crate) port: u16,
    /// Path MTU of accepted connections, before their route is known.
    pub(crate) path_mtu: u16,
    #[cfg_attr(not(unix), expect(dead_code, reason = "there is none"))]
    pub(super) readiness: OnceLock<Readiness>,
}

impl ListenHandle {
    pub(super) fn new(handle: Handle, id: ListenerId, port: u16, path_mtu: u16) -> Self {
        Self { handle, id, port, path_mtu, readiness: OnceLock::new() }
    }

    /// A call that can be cancelled.
    pub(crate) fn call(&self) -> Call<'_, Self> {
        Call::new(self, self.handle.shared(), Place::Listener(self.id))
    }

    /// Removes a task that waits by hand-written polls.
    pub(crate) fn remove_waker(&self, task: &Waker) {
        self.handle.shared().remove_waker(Place::Listener(self.id), task);
    }

    /// The bound address, with the port to connect to.
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
        // Without the lock, as for a connection.
        drop(forgotten);
    }
}
