//! Keeps the descriptors of connections and listeners up to date.

#[cfg(unix)]
mod shown;

use udccp_base::Instant;
use udccp_proto::{ConnectionId, ListenerId};

use super::core::Core;
use super::waiters::{Conn, Listening};

/// What may have changed since it was last shown. Empty if there are no descriptors.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Descriptors that exist.
    count: usize,
    touched: Vec<ConnectionId>,
    listeners_touched: Vec<ListenerId>,
}

impl Signals {
    /// Whether there are descriptors.
    pub(super) fn are_watched(&self) -> bool {
        self.count > 0
    }

    /// The result of a call on this connection may have changed.
    #[inline]
    pub(super) fn touch(&mut self, id: ConnectionId) {
        if self.count > 0 && self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// The result of a call on this listener may have changed.
    pub(super) fn touch_listener(&mut self, id: ListenerId) {
        if self.count > 0 {
            self.listeners_touched.push(id);
        }
    }
}

impl Core {
    /// Starts a close: in order or, with no time to linger, with a Reset.
    pub(super) fn close(&mut self, now: Instant, id: ConnectionId) {
        if self.endpoint.close_linger(id).is_some_and(|linger| linger.is_zero()) {
            self.endpoint.abort(now, id);
        } else {
            self.endpoint.close(now, id);
        }
    }

    /// Removes a connection whose handles are dropped.
    pub(super) fn forget(&mut self, id: ConnectionId) -> Option<Conn> {
        let conn = self.conns.remove(id)?;
        self.signals.count -= usize::from(conn.signal.is_some());
        Some(conn)
    }

    /// Removes a listener whose handles are dropped.
    pub(super) fn forget_listener(&mut self, id: ListenerId) -> Option<Listening> {
        let listening = self.listeners.remove(&id)?;
        self.signals.count -= usize::from(listening.signal.is_some());
        Some(listening)
    }
}

#[cfg(not(unix))]
impl Core {
    #[inline]
    pub(super) fn show_changes(&mut self) {}

    pub(super) fn show_all(&mut self) {}
}
