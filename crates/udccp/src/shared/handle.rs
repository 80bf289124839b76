//! What users hold. Dropping a handle lets go of what it stands for.

use std::net::SocketAddr;
use std::sync::Arc;

use udccp_proto::{ConnectionId, FourTuple, ListenerId};
use udccp_wire::ServiceCode;

use super::Shared;
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
}

impl ConnHandle {
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

impl Drop for ConnHandle {
    fn drop(&mut self) {
        let _ = self.shared().with(|core, io, now| {
            core.endpoint.release(now, self.id);
            core.conns.remove(&self.id);
            core.flush(io, now);
        });
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
}

impl ListenHandle {
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
        let _ = self.handle.shared().with(|core, io, now| {
            core.endpoint.unlisten(now, self.id);
            core.listeners.remove(&self.id);
            core.conns.retain(|_, conn| conn.queued_at != Some(self.id));
            core.flush(io, now);
        });
    }
}
