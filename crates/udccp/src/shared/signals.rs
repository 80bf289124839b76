//! Keeps the descriptors of connections and listeners true.

use std::sync::OnceLock;

use udccp_base::Instant;
use udccp_proto::{ConnectionId, ListenerId};

use super::core::Core;
use super::handle::{ConnHandle, ListenHandle};
use super::waiters::{Conn, Listening};
use crate::readiness::{Condition, Readiness, Signal};
use crate::{Error, errno};

/// What may have changed since it was last shown. Empty where nobody has a descriptor.
#[derive(Debug, Default)]
pub(super) struct Signals {
    /// Descriptors made and not dropped.
    count: usize,
    touched: Vec<ConnectionId>,
    listeners_touched: Vec<ListenerId>,
}

impl Signals {
    /// Whether there are descriptors that somebody may wait on.
    pub(super) fn are_watched(&self) -> bool {
        self.count > 0
    }

    /// A call of this connection may now find something else.
    #[inline]
    pub(super) fn touch(&mut self, id: ConnectionId) {
        if self.count > 0 && self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// A call of this listener may now find something else.
    pub(super) fn touch_listener(&mut self, id: ListenerId) {
        if self.count > 0 {
            self.listeners_touched.push(id);
        }
    }
}

impl Core {
    /// Shows what has changed.
    #[inline]
    pub(super) fn show_changes(&mut self) {
        while let Some(id) = self.signals.touched.pop() {
            self.show(id);
        }
        while let Some(id) = self.signals.listeners_touched.pop() {
            self.show_listener(id);
        }
    }

    /// Shows everything again.
    pub(super) fn show_all(&mut self) {
        if self.signals.count > 0 {
            self.signals.touched = self.conns.ids();
            self.signals.listeners_touched = self.listeners.keys().copied().collect();
            self.show_changes();
        }
    }

    fn show(&mut self, id: ConnectionId) {
        let stopped = self.driver.stopped;
        let Some(conn) = self.conns.get_mut(id) else { return };
        let Some(signal) = &mut conn.signal else { return };
        let condition = match conn {
            Conn { ended: Some(reason), .. } => Condition::end(errno::of_end(*reason) != 0),
            _ if stopped => Condition::end(true),
            Conn { connected: false, .. } => Condition::default(),
            Conn { read_closed, .. } => Condition {
                readable: self.endpoint.is_readable(id),
                // As for TCP: a send would say at once that nothing more can be sent.
                writable: self.endpoint.is_writable(id) || !self.endpoint.may_send(id),
                read_closed: *read_closed,
                ..Condition::default()
            },
        };
        signal.show(condition);
        self.endpoint.watch_writable(id);
    }

    fn show_listener(&mut self, id: ListenerId) {
        let stopped = self.driver.stopped;
        let Some(listening) = self.listeners.get_mut(&id) else { return };
        let Some(signal) = &mut listening.signal else { return };
        let readable = self.endpoint.is_acceptable(id);
        signal.show(match stopped {
            true => Condition::end(true),
            false => Condition { readable, ..Condition::default() },
        });
    }

    /// Starts a close: in order, or, with no time to linger, by a Reset.
    pub(super) fn close(&mut self, now: Instant, id: ConnectionId) {
        if self.endpoint.close_linger(id).is_some_and(|linger| linger.is_zero()) {
            self.endpoint.abort(now, id);
        } else {
            self.endpoint.close(now, id);
        }
    }

    /// Its user has let go.
    pub(super) fn forget(&mut self, id: ConnectionId) -> Option<Conn> {
        let conn = self.conns.remove(id)?;
        self.signals.count -= usize::from(conn.signal.is_some());
        Some(conn)
    }

    /// Its user has let go.
    pub(super) fn forget_listener(&mut self, id: ListenerId) -> Option<Listening> {
        let listening = self.listeners.remove(&id)?;
        self.signals.count -= usize::from(listening.signal.is_some());
        Some(listening)
    }
}

/// The descriptor in `kept`, or else the one that `make` gives.
fn once(
    kept: &OnceLock<Readiness>,
    make: impl FnOnce(Box<Signal>) -> Result<Readiness, Error>,
) -> Result<&Readiness, Error> {
    if let Some(readiness) = kept.get() {
        return Ok(readiness);
    }
    let signal = Signal::new()
        .map_err(|source| Error::Io { what: "cannot make a descriptor to wait on", source })?;
    let readiness = make(Box::new(signal))?;
    Ok(kept.get_or_init(|| readiness))
}

impl ConnHandle {
    /// The descriptor that shows whether a call would wait.
    pub(crate) fn readiness(&self) -> Result<&Readiness, Error> {
        once(&self.readiness, |signal| {
            self.with(|core, _, _| {
                // Another thread may have been first.
                let conn = core.conns.get_mut(self.id).ok_or(Error::Closed)?;
                core.signals.count += usize::from(conn.signal.is_none());
                let readiness = conn.signal.get_or_insert(signal).readiness();
                core.signals.touch(self.id);
                Ok(readiness)
            })?
        })
    }
}

impl ListenHandle {
    /// The descriptor that shows whether `accept` would wait.
    pub(crate) fn readiness(&self) -> Result<&Readiness, Error> {
        once(&self.readiness, |signal| {
            self.handle.shared().with(|core, _, _| {
                let listening = core.listeners.get_mut(&self.id).ok_or(Error::Closed)?;
                core.signals.count += usize::from(listening.signal.is_none());
                let readiness = listening.signal.get_or_insert(signal).readiness();
                core.signals.touch_listener(self.id);
                Ok(readiness)
            })?
        })
    }
}
