//! What the descriptors show.

use std::sync::OnceLock;

use udccp_proto::{ConnectionId, ListenerId};

use crate::readiness::{Condition, EarlyReadiness, Readiness, Signal};
use crate::shared::core::Core;
use crate::shared::handle::{ConnHandle, ListenHandle};
use crate::shared::waiters::Conn;
use crate::{Error, errno};

impl Core {
    /// Shows what has changed.
    #[inline]
    pub(in crate::shared) fn show_changes(&mut self) {
        while let Some(id) = self.signals.touched.pop() {
            self.show(id);
        }
        while let Some(id) = self.signals.listeners_touched.pop() {
            self.show_listener(id);
        }
    }

    /// Shows everything again.
    pub(in crate::shared) fn show_all(&mut self) {
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
            Conn { ended: Some(reason), .. } => {
                Condition::end(errno::of_close_reason(*reason) != 0)
            }
            _ if stopped => Condition::end(true),
            // A caller that waits for the end of the close stops waiting.
            _ if self.endpoint.is_close_unconfirmed(id) => Condition::end(true),
            Conn { connected: false, .. } => Condition::default(),
            Conn { read_closed, .. } => Condition {
                readable: self.endpoint.is_readable(id),
                // As for TCP: a send would fail at once.
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
}

/// The descriptor in `kept`. If there is none, stores the one that `make` returns, made from
/// `early` if that is given.
fn once(
    kept: &OnceLock<Readiness>,
    early: Option<EarlyReadiness>,
    make: impl FnOnce(Box<Signal>) -> Result<Readiness, Error>,
) -> Result<&Readiness, Error> {
    if let Some(readiness) = kept.get() {
        return Ok(readiness);
    }
    let readiness = make(early.map_or_else(EarlyReadiness::new, Ok)?.into_signal())?;
    Ok(kept.get_or_init(|| readiness))
}

impl ConnHandle {
    /// The descriptor that shows whether a call would wait: `early`, unless there is one.
    pub(crate) fn readiness(&self, early: Option<EarlyReadiness>) -> Result<&Readiness, Error> {
        once(&self.readiness, early, |signal| {
            self.with(|core, _, _| {
                // Another thread may have created it first.
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
    /// The descriptor that shows whether `accept` would wait: `early`, unless there is one.
    pub(crate) fn readiness(&self, early: Option<EarlyReadiness>) -> Result<&Readiness, Error> {
        once(&self.readiness, early, |signal| {
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
